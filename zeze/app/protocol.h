// ProtocolDescriptor: what the schema says about a protocol or rpc; written by the generator.
//
// A generated protocol is a struct that names its types and carries its descriptor:
//
//   struct Login {                                      // rpc demo.Game.Login
//     using Argument = BLoginArgument;
//     using Result = BLoginResult;
//     static constexpr zeze::ProtocolDescriptor kDescriptor{.module_id = 1, ...};
//   };
//   static_assert(Login::kDescriptor.type_id() == Login::kTypeId);

#pragma once

#include <cstdint>
#include <string_view>

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

// A service of a project and a module of it, in start order; written by the generator.
struct ServiceDescriptor {
  std::string_view name = {};
  HandledBy handles = {};
};

struct ModuleDescriptor {
  std::int32_t id = 0;
  std::string_view full_name = {};
  std::string_view service = {};  // Empty: none, its protocols are not registered.
};

}  // namespace zeze
