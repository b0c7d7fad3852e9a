// Dynamic: a variable that holds one of several beans, or nothing.
//
//   struct ExtraChoices {                         // Generated code writes Choices (choices.h).
//     using List = zeze::TypeList<zeze::Choice<BSword, 1>, zeze::Choice<BShield, 2>>;
//   };
//
//   zeze::Dynamic<ExtraChoices> extra;
//   extra.Set(BSword{.edge = 7});
//   if (const BSword* sword = extra.As<BSword>()) Use(*sword);
//   extra.Update<BSword>([](BSword& sword) { sword.edge += 1; });
//   extra.Visit([](const auto& bean) { Log(bean.ToString()); });
//
// One pointer to a shared, immutable value: copying costs one increment, editing a copy leaves the
// original as it is. Thread-safety: as a plain value. The choices and their beans may be incomplete
// where the variable is declared.

#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "zeze/base/usage_error.h"
#include "zeze/bean/internal/slip.h"
#include "zeze/bean/internal/slot.h"

namespace zeze {

template <typename... Types>
struct TypeList {};

// A bean that a dynamic variable may hold, and the id that says so in stored and sent bytes.
template <typename B, std::int64_t Id>
struct Choice {
  using Bean = B;
  static constexpr std::int64_t kTypeId = Id;
};

namespace internal {

struct DynamicNode {
  DynamicNode(std::int64_t id, void (*drop)(DynamicNode*) noexcept) : type_id(id), destroy(drop) {}

  RefCount refs{1};
  std::int64_t type_id;
  void (*destroy)(DynamicNode* node) noexcept;
};

template <typename Bean>
struct DynamicValue : DynamicNode {
  DynamicValue(std::int64_t id, Bean bean) : DynamicNode(id, &Destroy), value(std::move(bean)) {}

  static void Destroy(DynamicNode* node) noexcept { delete static_cast<DynamicValue*>(node); }

  Bean value;
};

template <typename Bean, typename List>
struct ChoiceIdOf;
// 0, which no choice may have, when the bean is not among them.
template <typename Bean, typename... Choices>
struct ChoiceIdOf<Bean, TypeList<Choices...>> {
  static constexpr std::int64_t kValue =
      (std::int64_t{0} + ... +
       (std::same_as<Bean, typename Choices::Bean> ? Choices::kTypeId : std::int64_t{0}));
};

}  // namespace internal

// A variable of the schema's type dynamic: Dynamic, or InlineDynamic (inline_dynamic.h).
template <typename T>
concept DynamicType = requires { requires T::kIsDynamic; };

template <typename ChoicesT>
class Dynamic {
 public:
  using Choices = ChoicesT;
  static constexpr bool kIsDynamic = true;

  Dynamic() noexcept = default;
  Dynamic(const Dynamic& other) noexcept : node_(other.node_) {
    if (node_ != nullptr) internal::AddRef(node_->refs);
  }
  Dynamic(Dynamic&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Dynamic& operator=(Dynamic other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Dynamic() { Clear(); }

  // 0 when empty, else the id of the choice.
  std::int64_t type_id() const { return node_ == nullptr ? 0 : node_->type_id; }
  bool empty() const { return node_ == nullptr; }

  template <typename Bean>
  static constexpr std::int64_t TypeIdOf() {
    constexpr std::int64_t kId = internal::ChoiceIdOf<Bean, typename Choices::List>::kValue;
    static_assert(kId != 0, "this dynamic variable cannot hold a bean of this type");
    return kId;
  }

  template <typename Bean>
  bool Is() const {
    return type_id() == TypeIdOf<Bean>();
  }

  // The bean; null when the variable is empty or holds another type. Good until the variable is
  // next edited, assigned or destroyed.
  template <typename Bean>
  const Bean* As() const {
    if (!Is<Bean>()) return nullptr;
    return &static_cast<const internal::DynamicValue<Bean>*>(node_)->value;
  }

  // The bean of a variable that must hold one of this type; throws UsageError when it does not.
  template <typename Bean>
  const Bean& Get() const {
    const Bean* bean = As<Bean>();
    if (bean == nullptr) [[unlikely]]
      internal::ThrowWrongChoice(TypeIdOf<Bean>(), type_id());
    return *bean;
  }

  template <typename Bean>
  void Set(Bean bean) {
    auto* node = new internal::DynamicValue<Bean>(TypeIdOf<Bean>(), std::move(bean));
    Clear();
    node_ = node;
  }

  template <typename Bean>
    requires(!std::same_as<Bean, Dynamic>)
  Dynamic& operator=(Bean bean) {
    Set(std::move(bean));
    return *this;
  }

  // Calls edit(Bean&); false when the variable does not hold that type. The callback must not touch
  // this variable.
  template <typename Bean, typename Edit>
  bool Update(Edit&& edit) {
    if (!Is<Bean>()) return false;
    auto* node = static_cast<internal::DynamicValue<Bean>*>(node_);
    if (!internal::IsUnique(node->refs)) {
      Set(Bean(std::as_const(node->value)));
      node = static_cast<internal::DynamicValue<Bean>*>(node_);
    }
    const Dynamic guard(*this);  // An assignment inside the callback cannot free the value.
    std::forward<Edit>(edit)(node->value);
    ZEZE_REQUIRE(node_ == guard.node_, internal::kEditedInUpdate);
    return true;
  }

  // Calls visit(const Bean&) with the bean that is held; false when empty.
  template <typename Visitor>
  bool Visit(Visitor&& visit) const {
    return VisitChoice(visit, static_cast<typename Choices::List*>(nullptr));
  }

  void Clear() {
    internal::DynamicNode* node = std::exchange(node_, nullptr);
    if (node != nullptr && internal::DropRef(node->refs)) node->destroy(node);
  }

  // Whether both share the same value in memory: then they are equal, at no cost.
  bool IsSameAs(const Dynamic& other) const { return node_ == other.node_; }

  friend bool operator==(const Dynamic& a, const Dynamic& b) {
    if (a.node_ == b.node_) return true;
    if (a.type_id() != b.type_id()) return false;
    bool equal = true;
    a.Visit([&](const auto& bean) {
      equal = bean == *b.template As<std::remove_cvref_t<decltype(bean)>>();
    });
    return equal;
  }

  // For decoders: holds a new bean of the choice with this id and calls fill(Bean&); false when no
  // choice has it.
  template <typename Fill>
  bool SetById(std::int64_t id, Fill&& fill) {
    return SetChoice(id, fill, static_cast<typename Choices::List*>(nullptr));
  }

 private:
  template <typename Visitor, typename... Cases>
  bool VisitChoice(Visitor& visit, TypeList<Cases...>*) const {
    const std::int64_t id = type_id();
    (void)id;
    (void)visit;
    return ((id == Cases::kTypeId && (visit(*As<typename Cases::Bean>()), true)) || ...);
  }

  template <typename Fill, typename... Cases>
  bool SetChoice(std::int64_t id, Fill& fill, TypeList<Cases...>*) {
    (void)id;
    (void)fill;
    return ((id == Cases::kTypeId && FillChoice<typename Cases::Bean>(fill)) || ...);
  }

  template <typename Bean, typename Fill>
  bool FillChoice(Fill& fill) {
    Bean bean;
    fill(bean);
    Set(std::move(bean));
    return true;
  }

  internal::DynamicNode* node_ = nullptr;
};

}  // namespace zeze
