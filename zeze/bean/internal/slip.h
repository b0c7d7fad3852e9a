// What containers throw when they are used against their contract: a UsageError that names the
// index or the key.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace zeze::internal {

inline constexpr char kEditedInUpdate[] =
    "a container or dynamic variable was edited inside its own Update";
inline constexpr char kFull[] = "a container holds at most 2,147,483,647 elements";

[[noreturn]] void ThrowBadIndex(std::size_t index, std::size_t size);
[[noreturn]] void ThrowEnd();
[[noreturn]] void ThrowNoKeyText(const std::string& key);
[[noreturn]] void ThrowWrongChoice(std::int64_t wanted, std::int64_t held);

template <typename K>
[[noreturn]] void ThrowNoKey(const K& key) {
  if constexpr (std::is_arithmetic_v<K>) {
    ThrowNoKeyText(std::to_string(key));
  } else if constexpr (requires { std::string(key); }) {
    ThrowNoKeyText('"' + std::string(key) + '"');
  } else if constexpr (requires {
                         { key.ToString() } -> std::convertible_to<std::string>;
                       }) {
    ThrowNoKeyText(key.ToString());
  } else {
    ThrowNoKeyText("that was asked for");
  }
}

}  // namespace zeze::internal
