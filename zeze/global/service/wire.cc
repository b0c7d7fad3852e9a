#include "zeze/global/service/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "zeze/global/directory.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global::wire {

namespace {

std::int32_t ReadInt(ByteReader& in) {
  return static_cast<std::int32_t>(in.ReadLong());
}

// A key of no bytes, its length and the right.
constexpr std::size_t kHeldRightBytesMin = 2;

}  // namespace

void LoginArgument::Encode(ByteWriter& out) const {
  out.WriteLong(server_id);
  out.WriteLong(hash_index);
  out.WriteBool(debug_mode);
}

void LoginArgument::Decode(ByteReader& in) {
  server_id = ReadInt(in);
  hash_index = ReadInt(in);
  debug_mode = in.ReadBool();
}

void LoginResult::Encode(ByteWriter& out) const {
  out.WriteLong(max_net_ping);
  out.WriteLong(server_process_time);
  out.WriteLong(server_release_timeout);
}

void LoginResult::Decode(ByteReader& in) {
  max_net_ping = ReadInt(in);
  server_process_time = ReadInt(in);
  server_release_timeout = ReadInt(in);
}

void CleanupArgument::Encode(ByteWriter& out) const {
  out.WriteLong(server_id);
  out.WriteBytes(secure_key);
  out.WriteLong(hash_index);
}

void CleanupArgument::Decode(ByteReader& in) {
  server_id = ReadInt(in);
  secure_key = in.ReadBytes();
  hash_index = ReadInt(in);
}

void GreetingArgument::Encode(ByteWriter& out) const {
  out.WriteBytes(nonce);
}

void GreetingArgument::Decode(ByteReader& in) {
  nonce = in.ReadBytes();
}

void GreetingResult::Encode(ByteWriter& out) const {
  out.WriteLong(shard);
  out.WriteLong(term);
  out.WriteBytes(cluster);
  out.WriteBytes(nonce);
  out.WriteBytes(proof);
}

void GreetingResult::Decode(ByteReader& in) {
  shard = ReadInt(in);
  term = in.ReadLong();
  cluster = in.ReadBytes();
  nonce = in.ReadBytes();
  proof = in.ReadBytes();
}

void FencedLoginArgument::Encode(ByteWriter& out) const {
  out.WriteLong(server_id);
  out.WriteLong(hash_index);
  out.WriteLong(epoch);
  out.WriteLong(start_term);
  out.WriteBool(last);
  out.WriteUint(static_cast<std::uint32_t>(rights.size()));
  for (const HeldRight& one : rights) {
    out.WriteBytes(one.key);
    out.WriteByte(static_cast<std::uint8_t>(one.right));
  }
  out.WriteLong(lease_ms);
  out.WriteBytes(cluster);
  out.WriteBytes(proof);
  out.WriteLong(serial);
  out.WriteLong(yields);
}

void FencedLoginArgument::Decode(ByteReader& in) {
  server_id = ReadInt(in);
  hash_index = ReadInt(in);
  epoch = in.ReadLong();
  start_term = in.ReadLong();
  last = in.ReadBool();
  const std::size_t count = in.ReadCount(kHeldRightBytesMin);
  rights.clear();
  rights.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    HeldRight& one = rights.emplace_back();
    one.key = in.ReadBytes();
    const std::uint8_t right = in.ReadByte();
    one.right = static_cast<Right>(std::min<std::uint8_t>(right, 2));
  }
  lease_ms = in.remaining() == 0 ? 0 : in.ReadLong();
  cluster = in.remaining() == 0 ? std::string_view() : in.ReadBytes();
  proof = in.remaining() == 0 ? std::string_view() : in.ReadBytes();
  serial = in.remaining() == 0 ? 0 : in.ReadLong();
  yields = in.remaining() == 0 ? 0 : in.ReadLong();
}

void FencedLoginResult::Encode(ByteWriter& out) const {
  out.WriteUint(outcome);
  out.WriteLong(term);
  out.WriteBytes(text);
}

void FencedLoginResult::Decode(ByteReader& in) {
  outcome = in.ReadUint();
  term = in.ReadLong();
  text = in.remaining() == 0 ? std::string_view() : in.ReadBytes();
}

}  // namespace zeze::global::wire
