// The messages of the service manager on the wire, those of Zeze 1.6. All are raw beans: values one
// after the other, without tags.
//
//   connection->Call<wire::Subscribe>({.subscriptions = {{.name = "Shop"}}}, {}, completion);

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/name_hash.h"
#include "zeze/net/protocol.h"
#include "zeze/registry/messages.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::registry::wire {

// Answers of an agent to OfflineNotify; the last one is ours. To whoever asks, everything but 0
// means: ask the next one.
inline constexpr std::int64_t kTaken = 0;
inline constexpr std::int64_t kNoHandler = 2;
inline constexpr std::int64_t kHandlerFailed = 3;
inline constexpr std::int64_t kRefused = 4;

// Of the service manager, from the common list of result codes: nothing has changed.
inline constexpr std::int64_t kNotPossible = -1;  // What must be saved cannot be saved now.
inline constexpr std::int64_t kNotAllowed = -6;   // Too long.
inline constexpr std::int64_t kTooMany = -19;

// The empty bean.
struct Empty {
  void Encode(ByteWriter& out) const { out.WriteEnd(); }
  void Decode(ByteReader& in) { in.ReadByte(); }
};

void EncodeService(const ServiceInfo& info, ByteWriter& out);
ServiceInfo DecodeService(ByteReader& in);

struct EditArgument {
  ServiceEdit edit = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct SubscribeArgument {
  std::vector<Subscription> subscriptions = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct SubscribeResult {
  ServicesByName services = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct UnsubscribeArgument {
  std::vector<std::string> names = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AllocateIdArgument {
  std::string name = {};
  std::int64_t count = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AllocateIdResult {
  std::int64_t start = 0;
  std::int64_t count = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// Of AllocateId128, which travels in datagrams: the rest is as in AllocateId.
struct AllocateId128Result {
  Id128 start = {};
  std::int64_t count = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct LoadArgument {
  ServerLoad load = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct OfflineArgument {
  OfflineNotice notice = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AnnounceArgument {
  Announcement announcement = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

namespace internal {

consteval ProtocolDescriptor Describe(std::string_view full_name, bool is_rpc = true) {
  return {.module_id = 0,
          .protocol_id = HashName32(full_name),
          .full_name = full_name,
          .is_rpc = is_rpc,
          .level = HandlerLevel::kNone,
          .dispatch_mode = DispatchMode::kDirect};
}

}  // namespace internal

struct EditService {
  using Argument = EditArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.EditService");
};
struct Subscribe {
  using Argument = SubscribeArgument;
  using Result = SubscribeResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.Subscribe");
};
struct Unsubscribe {
  using Argument = UnsubscribeArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.UnSubscribe");
};
struct KeepAlive {
  using Argument = Empty;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.KeepAlive");
};
struct AllocateId {
  using Argument = AllocateIdArgument;
  using Result = AllocateIdResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.AllocateId");
};
struct SetServerLoad {
  using Argument = LoadArgument;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.SetServerLoad", false);
};
struct OfflineRegister {
  using Argument = OfflineArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.OfflineRegister");
};
struct OfflineNotify {
  using Argument = OfflineArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.OfflineNotify");
};
struct NormalClose {
  using Argument = Empty;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.NormalClose");
};
struct AnnounceServers {
  using Argument = AnnounceArgument;
  using Result = Empty;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Describe("Zeze.Services.ServiceManager.AnnounceServers");
};

static_assert(EditService::kDescriptor.protocol_id == -1344046521);
static_assert(Subscribe::kDescriptor.protocol_id == 1138220698);
static_assert(Unsubscribe::kDescriptor.protocol_id == -1962944542);
static_assert(KeepAlive::kDescriptor.protocol_id == 1337189598);
static_assert(AllocateId::kDescriptor.protocol_id == -282549003);
static_assert(SetServerLoad::kDescriptor.protocol_id == -790028280);
static_assert(OfflineRegister::kDescriptor.protocol_id == -1713644993);
static_assert(OfflineNotify::kDescriptor.protocol_id == 1813026175);
static_assert(NormalClose::kDescriptor.protocol_id == 190287739);
static_assert(AnnounceServers::kDescriptor.protocol_id == 893380350);

// --- Datagrams: one or more bodies of requests, or of answers, without the header of a frame. ---

struct DatagramRequest {
  std::int64_t session_id = 0;
  AllocateIdArgument argument = {};
};
void EncodeDatagramRequest(const DatagramRequest& request, ByteWriter& out);
// The next one; look at in.ok().
DatagramRequest DecodeDatagramRequest(ByteReader& in);

struct DatagramAnswer {
  std::int64_t session_id = 0;
  std::int64_t result_code = 0;
  AllocateId128Result result = {};
};
void EncodeDatagramAnswer(const DatagramAnswer& answer, ByteWriter& out);
DatagramAnswer DecodeDatagramAnswer(ByteReader& in);

}  // namespace zeze::registry::wire
