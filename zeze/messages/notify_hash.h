// NotifyHash: a short proof of which reliable notifies a client has handled since its login.
//
//   std::int64_t hash = kNotifyHashAtLogin;
//   for (const std::string& frame : frames) hash = ExtendNotifyHash(hash, frame);
//
// Servers number the notifies of a login. A crash may take back the last numbers, which then go to
// other notifies: a client that only counts would take those for notifies that it has seen. So
// clients send this hash with the index that they confirm.

#pragma once

#include <cstdint>
#include <string_view>

namespace zeze {

// FNV-1a of 32 bits over the frames, one after the other, with bit 32 set: 0 means that a client
// does not say. It travels and is stored: never change it.
inline constexpr std::int64_t kNotifyHashAtLogin = (std::int64_t{1} << 32) | 2166136261;

inline std::int64_t ExtendNotifyHash(std::int64_t hash, std::string_view frame) {
  constexpr std::uint32_t kPrime = 16777619;
  auto low = static_cast<std::uint32_t>(hash);
  for (const char byte : frame) low = (low ^ static_cast<unsigned char>(byte)) * kPrime;
  return (std::int64_t{1} << 32) | low;
}

}  // namespace zeze
