// The messages of Global on the wire: those of Zeze 1.6, and our own additions, which an old peer
// never gets to see.
//
//   connection->Call<wire::Acquire>({.key = key, .state = 2}, {}, completion);
//
// All are raw beans: values one after the other, without tags.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/name_hash.h"
#include "zeze/global/directory.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global::wire {

// Both ends close a connection on which the other machine confirms nothing for so long: the network
// loses everything without a word. A KeepAlive of each server comes several times a second.
inline constexpr std::chrono::seconds kUnconfirmedMax{3};

// Result codes, as old peers know them.
inline constexpr std::int64_t kHolderFresh = 16;
inline constexpr std::int64_t kShareDeadlock = 21;  // The caller is being asked for the key itself.
inline constexpr std::int64_t kShareOfModify = 22;  // Share asked for, the caller has Modify.
inline constexpr std::int64_t kModifyDeadlock = 23;
inline constexpr std::int64_t kBadState = 24;
inline constexpr std::int64_t kAlreadyModify = 25;
inline constexpr std::int64_t kShareFailed = 26;
inline constexpr std::int64_t kModifyFailed = 27;
inline constexpr std::int64_t kNotLoggedIn = 30;
inline constexpr std::int64_t kReduceBadState = 41;
inline constexpr std::int64_t kCleanupRefused = 60;
inline constexpr std::int64_t kReloginRefused = 80;
inline constexpr std::int64_t kCloseNotBound = 100;
inline constexpr std::int64_t kLoginRefused = 120;

// Of our own messages.
inline constexpr std::int64_t kNoTermYet = 140;

// A state beyond the rights, in the answer to a Reduce.
inline constexpr std::uint32_t kStateFailed = 12;
inline constexpr std::uint32_t kStateFresh = 16;

// The empty bean.
struct Empty {
  void Encode(ByteWriter& out) const { out.WriteEnd(); }
  void Decode(ByteReader& in) { in.ReadByte(); }
};

// Refers to the received bytes when decoded.
struct KeyState {
  std::string_view key;
  std::uint32_t state = 0;

  void Encode(ByteWriter& out) const {
    out.WriteBytes(key);
    out.WriteUint(state);
    out.WriteUlong(0);  // The id of the last writer's transaction, which nobody sets.
    out.WriteUlong(0);
  }
  void Decode(ByteReader& in) {
    key = in.ReadBytes();
    state = in.ReadUint();
    in.ReadUlong();
    in.ReadUlong();
  }
};

struct LoginArgument {
  std::int32_t server_id = 0;
  std::int32_t hash_index = 0;
  bool debug_mode = false;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// Milliseconds.
struct LoginResult {
  std::int32_t max_net_ping = 3000;
  std::int32_t server_process_time = 14000;
  std::int32_t server_release_timeout = 60000;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct CleanupArgument {
  std::int32_t server_id = 0;
  std::string secure_key;
  std::int32_t hash_index = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// Ours. The first message of a connection: who are you?
struct GreetingArgument {
  std::string nonce;  // 16 bytes that were never used before.

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// The code is kNoTermYet while the Global does not know itself who it is.
struct GreetingResult {
  std::int32_t shard = 0;
  std::int64_t term = 0;
  std::string cluster;  // The identity of its database.
  std::string nonce;
  std::string proof;  // ProofOfTerm over both nonces.

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// Ours. The rights may come in several parts; the last one logs in.
struct FencedLoginArgument {
  std::int32_t server_id = 0;
  std::int32_t hash_index = 0;
  std::int64_t epoch = 0;
  std::int64_t start_term = 0;
  bool last = true;
  std::vector<HeldRight> rights;
  // Earlier builds do not send what follows.
  std::int64_t lease_ms = 0;  // 0: it does not say.
  std::string cluster = {};   // The identity of its database.
  std::string proof = {};     // ProofOfEpoch over the nonces of the greeting.
  std::int64_t serial = 0;    // See LoginRequest, as the next.
  std::int64_t yields = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct FencedLoginResult {
  std::uint32_t outcome = 0;  // LoginOutcome.
  std::int64_t term = 0;
  std::string text = {};  // Why it is refused. At the end: earlier builds do not send it.

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

namespace internal {

consteval ProtocolDescriptor Rpc(std::string_view full_name) {
  return {.module_id = 0,
          .protocol_id = HashName32(full_name),
          .full_name = full_name,
          .is_rpc = true,
          .level = HandlerLevel::kNone,
          .dispatch_mode = DispatchMode::kDirect};
}

}  // namespace internal

struct Login {
  using Argument = LoginArgument;
  using Result = LoginResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.Login");
};
struct ReLogin {
  using Argument = LoginArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.ReLogin");
};
struct NormalClose {
  using Argument = Empty;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.NormalClose");
};
struct Acquire {
  using Argument = KeyState;
  using Result = KeyState;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.Acquire");
};
struct Reduce {
  using Argument = KeyState;
  using Result = KeyState;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.Reduce");
};
struct KeepAlive {
  using Argument = Empty;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.KeepAlive");
};
struct Cleanup {
  using Argument = CleanupArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.Cleanup");
};
struct Greeting {
  using Argument = GreetingArgument;
  using Result = GreetingResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.Greeting");
};
struct FencedLogin {
  using Argument = FencedLoginArgument;
  using Result = FencedLoginResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.FencedLogin");
};

static_assert(Login::kDescriptor.protocol_id == -1420506365);
static_assert(ReLogin::kDescriptor.protocol_id == 1197409195);
static_assert(NormalClose::kDescriptor.protocol_id == -532299976);
static_assert(Acquire::kDescriptor.protocol_id == 1225831619);
static_assert(Reduce::kDescriptor.protocol_id == -1004125491);
static_assert(KeepAlive::kDescriptor.protocol_id == 560224048);
static_assert(Cleanup::kDescriptor.protocol_id == -1903349850);

}  // namespace zeze::global::wire
