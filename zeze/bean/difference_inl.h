// Bodies of difference.h.

#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "zeze/base/check.h"
#include "zeze/bean/any_bean.h"
#include "zeze/bean/difference.h"
#include "zeze/bean/dynamic.h"
#include "zeze/bean/field.h"
#include "zeze/bean/hash.h"
#include "zeze/bean/internal/list_script.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"

namespace zeze {

namespace internal {

// Compares two values of type T and applies changes to one. The primary template is for values
// that are replaced as a whole: scalars, texts, vectors, keys.
template <typename T>
struct Differ {
  // False when the values are equal; else fills in action and children.
  static bool Compare(const T& a, const T& b, Change& change) {
    change.action = Change::Action::kReplaced;
    return !SameKey(a, b);
  }
  static void Apply(T& value, const Change& change) { value = *change.new_value.template As<T>(); }
};

// Compares into a new child, which is kept if there is a difference.
template <typename T>
void CompareChild(const T& a, const T& b, Change child, Change& parent) {
  if (!Differ<T>::Compare(a, b, child)) return;
  child.old_value = ValueView::Of(a);
  child.new_value = ValueView::Of(b);
  parent.children.push_back(std::move(child));
}

template <typename T>
  requires(BeanType<T> && !BeanKeyType<T>)
struct Differ<T> {
  static bool Compare(const T& a, const T& b, Change& change) {
    change.action = Change::Action::kEdited;
    if (&a == &b) return false;
    T::ForEachField([&](const Field& field, auto member) {
      CompareChild(a.*member, b.*member,
                   Change{.step = Change::Step::kField,
                          .field_id = field.id,
                          .field_name = field.name,
                          .key = {},
                          .old_value = {},
                          .new_value = {},
                          .children = {}},
                   change);
    });
    if constexpr (HasBaseBean<T>) CompareChild(a.base, b.base, Step(Change::Step::kBase), change);
    if constexpr (HasUnknownFields<T>) {
      CompareChild(a.unknown_fields, b.unknown_fields, Step(Change::Step::kUnknownFields), change);
    }
    return !change.children.empty();
  }

  static void Apply(T& value, const Change& change) {
    if (change.action != Change::Action::kEdited) {
      value = *change.new_value.template As<T>();
      return;
    }
    T::ForEachField([&](const Field& field, auto member) {
      if (const Change* child = change.FindField(field.id)) ApplyTo(value.*member, *child);
    });
    for (const Change& child : change.children) {
      if constexpr (HasBaseBean<T>) {
        if (child.step == Change::Step::kBase) ApplyTo(value.base, child);
      }
      if constexpr (HasUnknownFields<T>) {
        if (child.step == Change::Step::kUnknownFields) ApplyTo(value.unknown_fields, child);
      }
    }
  }

 private:
  static Change Step(Change::Step step) {
    Change change;
    change.step = step;
    return change;
  }

  template <typename M>
  static void ApplyTo(M& member, const Change& change) {
    Differ<M>::Apply(member, change);
  }
};

template <typename T>
struct Differ<List<T>> {
  static bool Compare(const List<T>& a, const List<T>& b, Change& change) {
    if (a.IsSameAs(b)) return false;
    if (b.empty()) {
      change.action = Change::Action::kCleared;
      return true;
    }
    change.action = Change::Action::kEdited;
    const std::size_t prefix = a.CommonPrefix(b);
    if (prefix == a.size() && prefix == b.size()) return false;
    const std::size_t suffix = a.CommonSuffix(b, prefix);
    ListScript script(
        a.size() - prefix - suffix, b.size() - prefix - suffix,
        [&](std::size_t i, std::size_t j) { return SameKey(a[prefix + i], b[prefix + j]); });
    for (const ListStep& step : script.steps()) {
      Change child;
      child.step = Change::Step::kListIndex;
      child.index = prefix + step.position;
      if (step.kind == ListStep::Kind::kModify) {
        CompareChild(a[prefix + step.old_index], b[prefix + step.new_index], std::move(child),
                     change);
        continue;
      }
      const bool added = step.kind == ListStep::Kind::kInsert;
      child.action = added ? Change::Action::kAdded : Change::Action::kRemoved;
      if (added) child.new_value = ValueView::Of(b[prefix + step.new_index]);
      if (!added) child.old_value = ValueView::Of(a[prefix + step.old_index]);
      change.children.push_back(std::move(child));
    }
    return true;
  }

  static void Apply(List<T>& list, const Change& change) {
    if (change.action == Change::Action::kCleared) list.Clear();
    for (const Change& child : change.children) {
      if (child.action == Change::Action::kAdded) {
        list.Insert(child.index, *child.new_value.template As<T>());
      } else if (child.action == Change::Action::kRemoved) {
        list.Erase(child.index);
      } else {
        list.Update(child.index, [&](T& element) { Differ<T>::Apply(element, child); });
      }
    }
  }
};

template <typename M>
struct MapDiffer {
  using K = typename M::key_type;
  using V = typename M::mapped_type;

  static bool Compare(const M& a, const M& b, Change& change) {
    b.ForEachChangeSince(a, [&](const V* old_value, const V* new_value, const K& key) {
      Change child;
      child.step = Change::Step::kMapKey;
      child.key = ValueView::Of(key);
      if (old_value != nullptr && new_value != nullptr) {
        CompareChild(*old_value, *new_value, std::move(child), change);
        return;
      }
      child.action = new_value != nullptr ? Change::Action::kAdded : Change::Action::kRemoved;
      if (new_value != nullptr) child.new_value = ValueView::Of(*new_value);
      if (old_value != nullptr) child.old_value = ValueView::Of(*old_value);
      change.children.push_back(std::move(child));
    });
    change.action = b.empty() ? Change::Action::kCleared : Change::Action::kEdited;
    return !change.children.empty();
  }

  static void Apply(M& map, const Change& change) {
    for (const Change& child : change.children) {
      const K& key = *child.key.template As<K>();
      if (child.action == Change::Action::kAdded) {
        map.Put(key, *child.new_value.template As<V>());
      } else if (child.action == Change::Action::kRemoved) {
        map.Erase(key);
      } else {
        map.Update(key, [&](V& value) { Differ<V>::Apply(value, child); });
      }
    }
  }
};

template <typename K, typename V>
struct Differ<Map<K, V>> : MapDiffer<Map<K, V>> {};
template <typename K, typename V>
struct Differ<SortedMap<K, V>> : MapDiffer<SortedMap<K, V>> {};

template <typename T>
struct Differ<Set<T>> {
  static bool Compare(const Set<T>& a, const Set<T>& b, Change& change) {
    b.ForEachChangeSince(a, [&](const T& element, bool added) {
      Change child;
      child.step = Change::Step::kSetElement;
      child.key = ValueView::Of(element);
      child.action = added ? Change::Action::kAdded : Change::Action::kRemoved;
      (added ? child.new_value : child.old_value) = child.key;
      change.children.push_back(std::move(child));
    });
    change.action = b.empty() ? Change::Action::kCleared : Change::Action::kEdited;
    return !change.children.empty();
  }

  static void Apply(Set<T>& set, const Change& change) {
    for (const Change& child : change.children) {
      const T& element = *child.key.template As<T>();
      if (child.action == Change::Action::kAdded) {
        set.Add(element);
      } else {
        set.Erase(element);
      }
    }
  }
};

// As a whole: its type is not known here.
template <>
struct Differ<AnyBean> {
  static bool Compare(const AnyBean& a, const AnyBean& b, Change& change) {
    change.action = b.empty() ? Change::Action::kCleared : Change::Action::kReplaced;
    return a != b;
  }
  static void Apply(AnyBean& value, const Change& change) {
    value = *change.new_value.As<AnyBean>();
  }
};

template <DynamicType D>
struct Differ<D> {
  static bool Compare(const D& a, const D& b, Change& change) {
    if (a.IsSameAs(b)) return false;
    if (a.type_id() != b.type_id()) {
      change.action = b.empty() ? Change::Action::kCleared : Change::Action::kReplaced;
      return true;
    }
    bool differs = false;
    a.Visit([&](const auto& bean) {
      using Bean = std::remove_cvref_t<decltype(bean)>;
      differs = Differ<Bean>::Compare(bean, *b.template As<Bean>(), change);
    });
    return differs;
  }

  static void Apply(D& dynamic, const Change& change) {
    if (change.action != Change::Action::kEdited) {
      dynamic = *change.new_value.template As<D>();
      return;
    }
    const D held = dynamic;  // Keeps what is visited while it is replaced.
    held.Visit([&](const auto& bean) {
      auto edited = bean;
      Differ<std::remove_cvref_t<decltype(bean)>>::Apply(edited, change);
      dynamic.Set(std::move(edited));
    });
  }
};

}  // namespace internal

template <BeanType B>
Difference<B>::Difference(const B& old_value, const B& new_value) {
  internal::Differ<B>::Compare(old_value, new_value, root_);
  root_.old_value = ValueView::Of(old_value);
  root_.new_value = ValueView::Of(new_value);
}

template <BeanType B>
template <typename T>
const Change* Difference<B>::Find(T B::* member) const {
  const Change* found = nullptr;
  B::ForEachField([&](const Field& field, auto candidate) {
    if constexpr (std::same_as<decltype(candidate), T B::*>) {
      if (candidate == member) found = root_.FindField(field.id);
    }
  });
  return found;
}

template <BeanType B>
template <typename M, typename Visit>
void Difference<B>::ForEachEntry(M B::* member, Visit&& visit) const {
  const Change* change = Find(member);
  if (change == nullptr) return;
  for (const Change& child : change->children) {
    visit(*child.key.template As<typename M::key_type>(),
          child.old_value.template As<typename M::mapped_type>(),
          child.new_value.template As<typename M::mapped_type>());
  }
}

template <BeanType B>
template <typename S, typename Visit>
void Difference<B>::ForEachElement(S B::* member, Visit&& visit) const {
  const Change* change = Find(member);
  if (change == nullptr) return;
  for (const Change& child : change->children) {
    visit(*child.key.template As<typename S::value_type>(), child.action == Change::Action::kAdded);
  }
}

template <BeanType B>
B Apply(B value, const Difference<B>& difference) {
  internal::Differ<B>::Apply(value, difference.root());
  return value;
}

}  // namespace zeze
