#include "zeze/bean/hash.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace zeze {

namespace internal {

std::uint64_t hash_seed = 0x2545F4914F6CDD1DU;

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

std::uint64_t HashBytes(std::string_view bytes) {
  const std::uint64_t k0 = hash_seed;
  const std::uint64_t k1 = MixHash(hash_seed);
  SipState state{k0 ^ 0x736F6D6570736575U, k1 ^ 0x646F72616E646F6DU, k0 ^ 0x6C7967656E657261U,
                 k1 ^ 0x7465646279746573U};
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

}  // namespace internal

void SetHashSeed(std::uint64_t seed) {
  internal::hash_seed = internal::MixHash(seed) ^ seed;
}

}  // namespace zeze
