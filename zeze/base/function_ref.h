// FunctionRef: a callable that is borrowed for the duration of a call, two pointers wide.
//
// For callbacks that are used before the called function returns: unlike std::function it never
// allocates and never copies the callable.
//
//   void ForEach(FunctionRef<bool(int)> visit);
//   ForEach([&](int value) { sum += value; return true; });

#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace zeze {

template <typename Signature>
class FunctionRef;

// Never store one beyond the call it was passed to: it does not own what it refers to.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_object_v<std::remove_reference_t<F>> &&
             std::is_invocable_r_v<R, F&, Args...> &&
             (!std::is_void_v<R> || std::is_void_v<std::invoke_result_t<F&, Args...>>))
  FunctionRef(F&& function) noexcept  // NOLINT: implicit, so that a lambda can be passed
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): call_ gives the const back.
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> R {
          return std::invoke(*static_cast<std::remove_reference_t<F>*>(object),
                             std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace zeze
