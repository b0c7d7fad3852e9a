// Value: a committed or working copy of a bean, as the transaction layer keeps it.

#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "zeze/base/function_ref.h"
#include "zeze/bean/field.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/reclaimer.h"
#include "zeze/transaction/record.h"
#include "zeze/transaction/transaction.h"

namespace zeze::internal {

template <typename V>
struct Value final : ValueHeader {
  explicit Value(V&& v) : value(std::move(v)) {}
  explicit Value(const V& v) : value(v) {}
  V value;
};

template <typename V>
Value<V>* NewValue(Participant& by, V&& value) {
  return new (by.Allocate(sizeof(Value<V>))) Value<V>(std::forward<V>(value));
}

template <typename V>
void DisposeValue(Participant& by, void* object) {
  auto* value = static_cast<Value<V>*>(static_cast<ValueHeader*>(object));
  value->~Value<V>();
  by.Free(value, sizeof(Value<V>));
}

template <typename V>
const ValueOperations& ValueOperationsOf() {
  static const ValueOperations operations = [] {
    ValueOperations o{};
    o.bytes = sizeof(Value<V>);
    o.copy = [](Participant& by, const ValueHeader& from) -> ValueHeader* {
      return new (by.Allocate(sizeof(Value<V>))) Value<V>(static_cast<const Value<V>&>(from).value);
    };
    o.assign = [](ValueHeader& to, const ValueHeader& from) {
      static_cast<Value<V>&>(to).value = static_cast<const Value<V>&>(from).value;
    };
    o.dispose = &DisposeValue<V>;
    if constexpr (requires { V::kVersion; }) {
      o.raise_version = [](ValueHeader& to, const ValueHeader* old) {
        const auto before =
            old == nullptr ? 0 : static_cast<const Value<V>*>(old)->value.*V::kVersion;
        static_cast<Value<V>&>(to).value.*V::kVersion = before + 1;
      };
    }
    return o;
  }();
  return operations;
}

inline constexpr std::size_t kElementBytesGuess = 64;

// False: the encoding of the bean is certainly, or in all likelihood, shorter than `bytes`. Looks
// at the lengths of its own strings and containers only, because every commit asks; whoever gets
// true measures exactly.
template <typename V>
bool MayExceed(const V& bean, std::size_t bytes) {
  std::size_t sum = 0;
  V::ForEachField([&](const Field&, auto member) {
    using T = std::remove_cvref_t<decltype(bean.*member)>;
    if constexpr (std::is_same_v<T, std::string>) {
      sum += (bean.*member).size();
    } else if constexpr (std::is_same_v<T, Binary>) {
      sum += (bean.*member).bytes.size();
    } else if constexpr (requires { (bean.*member).size(); }) {
      sum += (bean.*member).size() * kElementBytesGuess;
    }
  });
  return sum > bytes / 16;
}

// Runs a listener; what it throws is logged with the table's name.
void CallListener(const std::string& table, FunctionRef<void()> call);

}  // namespace zeze::internal
