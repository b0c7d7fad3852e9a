// HeldBean: the bean of an AnyBean whose type the caller is sure of.
//
//   BMail mail = HeldBean<BMail>(any, "queue 'mail'");    // Throws if it holds something else.

#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/bean/any_bean.h"

namespace zeze {

// Thrown inside of transactions, which it rolls back.
class WrongBeanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void ThrowWrongBean(std::string_view where, std::int64_t found,
                                        std::string_view wanted) {
  throw WrongBeanError(std::string(where) + " holds a bean of type id " + std::to_string(found) +
                       " that is no " + std::string(wanted));
}

template <typename Bean>
Bean HeldBean(const AnyBean& any, std::string_view where) {
  if constexpr (std::same_as<Bean, AnyBean>) {
    return any;
  } else {
    std::optional<Bean> bean = any.As<Bean>();
    if (!bean) ThrowWrongBean(where, any.type_id(), Bean::kFullName);
    return std::move(*bean);
  }
}

template <typename Bean>
AnyBean HoldBean(const Bean& bean) {
  if constexpr (std::same_as<Bean, AnyBean>) {
    return bean;
  } else {
    return AnyBean::Of(bean);
  }
}

}  // namespace zeze
