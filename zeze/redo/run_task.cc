#include "zeze/redo/run_task.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "zeze/bean/codec.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::redo {

namespace {

static_assert(std::endian::native == std::endian::little, "chains are made of little-endian words");

// The finalizer of splitmix64.
std::uint64_t Mix(std::uint64_t state, std::uint64_t word) {
  std::uint64_t x = state * 0x9e3779b97f4a7c15 + word + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t MixBytes(std::uint64_t state, std::string_view bytes) {
  state = Mix(state, bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = bytes.size() < sizeof(word) ? bytes.size() : sizeof(word);
    std::memcpy(&word, bytes.data(), count);
    state = Mix(state, word);
    bytes.remove_prefix(count);
  }
  return state;
}

// Zero means that nothing is known.
std::int64_t NotZero(std::uint64_t state) {
  return std::bit_cast<std::int64_t>(state == 0 ? std::uint64_t{1} : state);
}

}  // namespace

void Task::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void Task::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}
void Answer::Encode(ByteWriter& out) const {
  EncodeFields(*this, out);
}
void Answer::Decode(ByteReader& in) {
  DecodeFields(*this, in);
}

std::int64_t FirstChain(std::int64_t store_id, std::string_view queue) {
  return NotZero(MixBytes(std::bit_cast<std::uint64_t>(store_id), queue));
}

std::int64_t NextChain(std::int64_t chain, std::int64_t task_id, std::int32_t type,
                       std::int64_t added_ms, std::string_view param) {
  std::uint64_t state =
      Mix(std::bit_cast<std::uint64_t>(chain), std::bit_cast<std::uint64_t>(task_id));
  state = Mix(state, static_cast<std::uint32_t>(type));
  state = Mix(state, std::bit_cast<std::uint64_t>(added_ms));
  return NotZero(MixBytes(state, param));
}

}  // namespace zeze::redo
