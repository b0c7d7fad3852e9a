// ProtocolDescriptor: what the schema says about a protocol or rpc; written by the generator, or by
// hand for the framework's own messages.
//
//   struct Login {                                      // rpc demo.Game.Login
//     using Argument = BLoginArgument;
//     using Result = BLoginResult;
//     static constexpr zeze::ProtocolDescriptor kDescriptor{.module_id = 1, ...};
//   };
//   static_assert(zeze::RpcProtocol<Login>);

#pragma once

#include <cstdint>
#include <string_view>

#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

// Where a handler runs.
enum class DispatchMode : std::uint8_t {
  kNormal,    // In the worker pool.
  kCritical,  // In the pool that serves what others wait for.
  kDirect,    // On the network thread: it must never wait.
};

// What overload sheds first. The numbers travel: never renumber.
enum class CriticalLevel : std::uint8_t {
  kCriticalPlus = 0,  // Never shed.
  kCritical = 1,
  kNormal = 2,
  kSheddable = 3,
};

// The transaction around a handler.
enum class HandlerLevel : std::uint8_t {
  kNone,  // Runs outside a transaction.
  kSerializable,
  kAllowDirtyWhenAllRead,  // A handler that wrote nothing is believed without checking its reads.
};

// Who processes a protocol, or what a service processes.
struct HandledBy {
  bool server = false;
  bool client = false;
  bool server_script = false;
  bool client_script = false;
  bool servlet = false;

  // Whether a service with these flags processes a protocol with those.
  constexpr bool Overlaps(const HandledBy& other) const {
    return (server && other.server) || (client && other.client) ||
           (server_script && other.server_script) || (client_script && other.client_script) ||
           (servlet && other.servlet);
  }
};

// All views must outlive the program: literals in generated code.
struct ProtocolDescriptor {
  std::int32_t module_id = 0;
  std::int32_t protocol_id = 0;
  std::string_view full_name = {};
  bool is_rpc = false;
  HandlerLevel level = HandlerLevel::kSerializable;
  CriticalLevel critical_level = CriticalLevel::kCriticalPlus;
  DispatchMode dispatch_mode = DispatchMode::kNormal;
  std::int64_t timeout_ms = 0;  // Of callers; 0: the framework's.
  bool one_by_one = false;      // Requests of one session are handled in their order.
  HandledBy handled_by = {};

  // What stands in a frame's header: module id above, protocol id below.
  constexpr std::int64_t type_id() const {
    return (std::int64_t{module_id} << 32) | static_cast<std::uint32_t>(protocol_id);
  }
};

// What can stand in a body: beans, or hand-written sequences of values.
template <typename T>
concept Payload = requires(T value, const T& constant, ByteReader& in, ByteWriter& out) {
  constant.Encode(out);
  value.Decode(in);
};

template <typename P>
concept OneWayProtocol = Payload<typename P::Argument> && !P::kDescriptor.is_rpc;

template <typename P>
concept RpcProtocol =
    Payload<typename P::Argument> && Payload<typename P::Result> && P::kDescriptor.is_rpc;

}  // namespace zeze
