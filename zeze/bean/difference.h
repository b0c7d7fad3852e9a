// Difference: what changed from one value of a bean to another, as a tree.
//
//   zeze::Difference<BRole> difference(old_role, new_role);
//   if (difference.Changed(&BRole::level)) NotifyLevel(new_role.level);
//   difference.ForEachEntry(&BRole::bag, [](std::int32_t id, const BItem* was, const BItem* is) {
//     if (is == nullptr) NotifyGone(id);        // was == nullptr: it is new.
//   });
//   Log(difference.ToString());                 // level: 3 -> 4
//                                               // bag[7].count: 1 -> 2
//                                               // items[0]: added {"id":9}
//
// Containers are compared through what they share, so the cost is about that of the changes, not of
// the size. Apply(old_role, difference) is equal to new_role.
//
// A difference points into both values: they must outlive it and stay as they are meanwhile.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/bean/field.h"
#include "zeze/bean/format.h"
#include "zeze/bean/internal/list_script.h"
#include "zeze/bean/unknown_fields.h"

namespace zeze {

// A value of any type that a variable can have, without owning it.
class ValueView {
 public:
  ValueView() = default;  // No value.

  template <typename T>
  static ValueView Of(const T& value) {
    return ValueView(&value, &kTypeOf<T>);
  }

  bool has_value() const { return value_ != nullptr; }

  // Null when there is no value or it is of another type.
  template <typename T>
  const T* As() const {
    return type_ == &kTypeOf<T> ? static_cast<const T*>(value_) : nullptr;
  }

  // As FormatValue; empty when there is no value.
  std::string ToString() const { return has_value() ? type_->format(value_) : std::string(); }

 private:
  struct Type {
    std::string (*format)(const void* value);
  };

  template <typename T>
  static std::string Format(const void* value) {
    if constexpr (std::same_as<T, UnknownFields>) {
      return std::to_string(static_cast<const UnknownFields*>(value)->count()) + " unknown fields";
    } else {
      return FormatValue(*static_cast<const T*>(value));
    }
  }

  template <typename T>
  static constexpr Type kTypeOf{&Format<T>};

  ValueView(const void* value, const Type* type) : value_(value), type_(type) {}

  const void* value_ = nullptr;
  const Type* type_ = nullptr;
};

// One node of a difference: a variable, an element or an entry that changed, or that holds changes.
struct Change {
  // How the node is reached from the one above it.
  enum class Step : std::uint8_t {
    kRoot,
    kField,          // field_id, field_name
    kBase,           // The base bean.
    kUnknownFields,  // The fields that the schema does not have, as a whole.
    kListIndex,      // index
    kMapKey,         // key
    kSetElement,     // key
  };
  enum class Action : std::uint8_t {
    kReplaced,  // Another value, or another bean in a dynamic variable: old_value, new_value.
    kAdded,     // An element or an entry that was not there: new_value.
    kRemoved,   // One that is no longer there: old_value.
    kEdited,    // The same bean, container or dynamic bean, with the changes in `children`.
    kCleared,   // A container or dynamic variable is empty now. A map's and a set's children say
                // what was in it; a list has none.
  };

  Step step = Step::kRoot;
  Action action = Action::kEdited;
  int field_id = 0;
  const char* field_name = "";
  // The operations of a list are to be done one after the other: an index counts the elements as
  // they are when the operations before it are done.
  std::size_t index = 0;
  ValueView key;
  ValueView old_value;
  ValueView new_value;
  std::vector<Change> children;

  // The change of the variable with this id; null when it did not change.
  const Change* FindField(int id) const;

  // "level", "[7]", "base": the step alone.
  std::string StepText() const;
};

// Calls visit with the path of each node that has no children: the root first, the change itself
// last.
void VisitChanges(const Change& root,
                  const std::function<void(std::span<const Change* const> path)>& visit);

// One line for each change, "path: old -> new".
std::string FormatChanges(const Change& root);

template <BeanType B>
class Difference {
 public:
  Difference(const B& old_value, const B& new_value);

  bool empty() const { return root_.children.empty(); }
  const B& old_value() const { return *root_.old_value.template As<B>(); }
  const B& new_value() const { return *root_.new_value.template As<B>(); }

  // The tree: a node without a step whose children are the changed variables.
  const Change& root() const { return root_; }

  template <typename T>
  bool Changed(T B::* member) const {
    return Find(member) != nullptr;
  }

  // The change of a variable; null when it did not change.
  template <typename T>
  const Change* Find(T B::* member) const;

  // Calls visit(key, const V* old_value, const V* new_value) for each entry of a map that was added
  // (no old value), removed (no new value) or changed.
  template <typename M, typename Visit>
  void ForEachEntry(M B::* member, Visit&& visit) const;

  // Calls visit(element, bool added) for each element that a set gained or lost.
  template <typename S, typename Visit>
  void ForEachElement(S B::* member, Visit&& visit) const;

  std::string ToString() const { return FormatChanges(root_); }

 private:
  Change root_;
};

// The value after the changes; for the old value of the difference that is its new value.
template <BeanType B>
B Apply(B value, const Difference<B>& difference);

}  // namespace zeze

#include "zeze/bean/difference_inl.h"  // IWYU pragma: export
