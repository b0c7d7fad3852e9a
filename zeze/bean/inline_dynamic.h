// InlineDynamic: a Dynamic whose bean lies inside the variable, for long lists of small beans.
//
//   zeze::InlineDynamic<BRankValue_Choices> value;        // Choices as in dynamic.h.
//   value.Set(BScore{.points = 7});
//   if (const BScore* score = value.As<BScore>()) Use(*score);
//
// Stored and sent like a Dynamic. It takes the room of the largest choice, and a list of such
// variables is copied without touching what each of them holds: plain bytes if all choices are.

#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <variant>

#include "zeze/bean/dynamic.h"
#include "zeze/bean/internal/slip.h"

namespace zeze {

namespace internal {

template <typename List>
struct InlineChoices;
template <typename... Choices>
struct InlineChoices<TypeList<Choices...>> {
  using Variant = std::variant<std::monostate, typename Choices::Bean...>;
  // By the index in the variant.
  static constexpr std::int64_t kTypeIds[] = {0, Choices::kTypeId...};
};

}  // namespace internal

// Thread-safety: as a plain value. The beans must be complete where the variable is declared.
template <typename ChoicesT>
class InlineDynamic {
  using Inline = internal::InlineChoices<typename ChoicesT::List>;

 public:
  using Choices = ChoicesT;
  static constexpr bool kIsDynamic = true;

  InlineDynamic() noexcept = default;
  template <typename Bean>
    requires(internal::ChoiceIdOf<Bean, typename ChoicesT::List>::kValue != 0)
  InlineDynamic(Bean bean) : held_(std::move(bean)) {}  // NOLINT: implicit, as an assignment is

  // 0 when empty, else the id of the choice.
  std::int64_t type_id() const { return Inline::kTypeIds[held_.index()]; }
  bool empty() const { return held_.index() == 0; }

  template <typename Bean>
  bool Is() const {
    return std::holds_alternative<Bean>(held_);
  }

  // The bean; null when the variable is empty or holds another type. Good until the variable is
  // next edited, assigned or destroyed.
  template <typename Bean>
  const Bean* As() const {
    return std::get_if<Bean>(&held_);
  }

  // The bean of a variable that must hold one of this type; throws UsageError when it does not.
  template <typename Bean>
  const Bean& Get() const {
    const Bean* bean = As<Bean>();
    if (bean == nullptr) [[unlikely]] {
      internal::ThrowWrongChoice(internal::ChoiceIdOf<Bean, typename Choices::List>::kValue,
                                 type_id());
    }
    return *bean;
  }

  template <typename Bean>
  void Set(Bean bean) {
    held_ = std::move(bean);
  }

  // Calls edit(Bean&); false when the variable does not hold that type. The callback must not touch
  // this variable.
  template <typename Bean, typename Edit>
  bool Update(Edit&& edit) {
    Bean* bean = std::get_if<Bean>(&held_);
    if (bean != nullptr) std::forward<Edit>(edit)(*bean);
    return bean != nullptr;
  }

  // Calls visit(const Bean&) with the bean that is held; false when empty.
  template <typename Visitor>
  bool Visit(Visitor&& visit) const {
    return std::visit(
        [&visit]<typename Bean>(const Bean& bean) {
          if constexpr (std::same_as<Bean, std::monostate>) return false;
          if constexpr (!std::same_as<Bean, std::monostate>) return visit(bean), true;
        },
        held_);
  }

  void Clear() { held_ = std::monostate(); }

  // Nothing is shared between two of them.
  bool IsSameAs(const InlineDynamic& other) const { return this == &other; }

  friend bool operator==(const InlineDynamic& a, const InlineDynamic& b) {
    if (a.held_.index() != b.held_.index()) return false;
    bool equal = true;
    a.Visit([&]<typename Bean>(const Bean& bean) { equal = bean == *b.template As<Bean>(); });
    return equal;
  }

  // For decoders: holds a new bean of the choice with this id and calls fill(Bean&); false when no
  // choice has it.
  template <typename Fill>
  bool SetById(std::int64_t id, Fill&& fill) {
    return SetChoice(id, fill, static_cast<typename Choices::List*>(nullptr));
  }

 private:
  template <typename Fill, typename... Cases>
  bool SetChoice(std::int64_t id, Fill& fill, TypeList<Cases...>* /*choices*/) {
    return (
        (id == Cases::kTypeId && (fill(held_.template emplace<typename Cases::Bean>()), true)) ||
        ...);
  }

  typename Inline::Variant held_;
};

}  // namespace zeze
