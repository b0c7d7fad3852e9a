#include "zeze/base/hash.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <sys/random.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/base/name_hash.h"

namespace zeze {

namespace internal {

namespace {

constexpr std::uint64_t Mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9FB21C651E98DF25U;
  value ^= value >> 29;
  value *= 0xD6E8FEB86659FD93U;
  value ^= value >> 32;
  return value;
}

HashSecret SecretOf(std::uint64_t seed) {
  const auto part = [seed](std::uint64_t n) {
    return Mix(Mix(seed + n * 0x9E3779B97F4A7C15U) + n);
  };
  return {.start = part(1), .first = part(2) | 1, .second = part(3) | 1, .chain = part(4) | 1};
}

std::uint64_t RandomSeed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed)) return seed;
  // A kernel without random numbers: the place of the stack and the time are hard to guess.
  const auto now = SystemClock().Now().count();
  return Mix(reinterpret_cast<std::uintptr_t>(&seed)) ^ Mix(static_cast<std::uint64_t>(now)) ^
         static_cast<std::uint64_t>(getpid());
}

HashSecret FirstSecret() {
  const char* fixed = std::getenv("ZEZE_HASH_SEED");  // NOLINT(concurrency-mt-unsafe): no threads.
  if (fixed == nullptr || *fixed == '\0') return SecretOf(RandomSeed());
  return SecretOf(static_cast<std::uint64_t>(HashName64(std::string_view(fixed))));
}

}  // namespace

// Before the constructors of all other files: they may fill maps.
[[gnu::init_priority(101)]] HashSecret hash_secret = FirstSecret();

namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void Add(std::uint64_t word) {
    v3 ^= word;
    Round();
    v0 ^= word;
  }
};

}  // namespace

}  // namespace internal

std::uint64_t HashBytes(std::string_view bytes) {
  const std::uint64_t k0 = internal::hash_secret.start;
  const std::uint64_t k1 = internal::hash_secret.chain;
  internal::SipState state{k0 ^ 0x736F6D6570736575U, k1 ^ 0x646F72616E646F6DU,
                           k0 ^ 0x6C7967656E657261U, k1 ^ 0x7465646279746573U};
  const char* data = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    state.Add(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t i = 0; i < left; ++i) {
    last |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  }
  state.Add(last);
  state.v2 ^= 0xFF;
  for (int i = 0; i < 3; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

void SetHashSeed(std::uint64_t seed) {
  internal::hash_secret = internal::SecretOf(seed);
}

}  // namespace zeze
