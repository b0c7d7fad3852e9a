// UniqueFunction: a move-only callable of any signature that keeps small callables inside itself.
//
//   UniqueFunction<void(int)> done = [promise = std::move(promise)](int code) mutable { ... };
//   done(0);
//
// Like Task (see executor.h), for callbacks with arguments or a result.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "zeze/base/check.h"

namespace zeze {

template <typename Signature>
class UniqueFunction;

// Callables of up to kInlineBytes are kept inside, without an allocation. Calling an empty one is a
// programming error.
template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  static constexpr std::size_t kInlineBytes = 48;

  UniqueFunction() = default;

  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, UniqueFunction> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  UniqueFunction(F&& function)  // NOLINT: implicit, so that a lambda can be passed
  {
    using Callable = std::decay_t<F>;
    if constexpr (kIsInline<Callable>) {
      ::new (static_cast<void*>(storage_)) Callable(std::forward<F>(function));
      operations_ = &kInlineOperations<Callable>;
    } else {
      auto callable = std::make_unique<Callable>(std::forward<F>(function));
      ::new (static_cast<void*>(storage_)) Callable*(callable.release());
      operations_ = &kHeapOperations<Callable>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { MoveFrom(other); }

  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      Reset();
      MoveFrom(other);
    }
    return *this;
  }

  ~UniqueFunction() { Reset(); }

  R operator()(Args... args) {
    ZEZE_CHECK(operations_ != nullptr);
    return operations_->call(storage_, std::forward<Args>(args)...);
  }

  explicit operator bool() const { return operations_ != nullptr; }

 private:
  struct Operations {
    R (*call)(void* callable, Args... args);
    void (*relocate)(void* from, void* to) noexcept;  // Move, then destroy what was moved from.
    void (*destroy)(void* callable) noexcept;
  };

  template <typename F>
  static constexpr bool kIsInline = sizeof(F) <= kInlineBytes && alignof(F) <= alignof(void*) &&
                                    std::is_nothrow_move_constructible_v<F>;

  template <typename F>
  static constexpr Operations kInlineOperations = {
      .call = [](void* callable, Args... args) -> R {
        return (*static_cast<F*>(callable))(std::forward<Args>(args)...);
      },
      .relocate =
          [](void* from, void* to) noexcept {
            F* source = static_cast<F*>(from);
            ::new (to) F(std::move(*source));
            source->~F();
          },
      .destroy = [](void* callable) noexcept { static_cast<F*>(callable)->~F(); },
  };

  template <typename F>
  static constexpr Operations kHeapOperations = {
      .call = [](void* callable, Args... args) -> R {
        return (**static_cast<F**>(callable))(std::forward<Args>(args)...);
      },
      .relocate = [](void* from, void* to) noexcept { std::memcpy(to, from, sizeof(F*)); },
      .destroy = [](void* callable) noexcept { delete *static_cast<F**>(callable); },
  };

  void MoveFrom(UniqueFunction& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ != nullptr) operations_->relocate(other.storage_, storage_);
  }

  void Reset() noexcept {
    const Operations* operations = std::exchange(operations_, nullptr);
    if (operations != nullptr) operations->destroy(storage_);
  }

  const Operations* operations_ = nullptr;
  alignas(void*) std::byte storage_[kInlineBytes];
};

}  // namespace zeze
