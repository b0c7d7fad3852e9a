// What `zeze admin` and a Global say to each other; rpcs of our own, as raw beans like those of
// wire.h. Every answer with a code other than 0 has a text for the person who asked.
//
//   connection->CallAndWait<wire::AdminPreview>({.server_id = 7});

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeze/admin/admin_desk.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::global::wire {

inline constexpr std::int64_t kAdminRefused = 200;

struct AdminPreviewArgument {
  std::int32_t server_id = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// A draft of a request, and what it would mean. The draft belongs to the connection.
struct AdminPreviewResult {
  std::string text = {};  // Why not, if the code is not 0.
  admin::AdminRequest request = {};
  std::string holder = {};  // As the server said it in the database: host, process.
  std::string peer = {};    // Address of its connection; empty: none.
  bool unfenced = false;
  bool live = true;
  bool announced = true;
  std::int64_t silent_ms = 0;
  std::uint64_t share = 0;
  std::uint64_t modify = 0;
  std::uint32_t approvals = 0;
  std::int64_t delay_ms = 0;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// The draft of this connection becomes a request. Signed: ApprovalText.
struct AdminProposeArgument {
  std::string id = {};
  std::string name = {};
  std::string reason = {};
  std::string signature = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

// Signed: ApprovalText or CancellationText.
struct AdminSignArgument {
  std::string id = {};
  std::string name = {};
  std::string signature = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AdminAnswer {
  std::string text = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AdminListResult {
  struct Item {
    admin::AdminRequest request = {};
    admin::RequestState state = admin::RequestState::kWaiting;
    std::string approved_by = {};   // Names with commas.
    std::int64_t remaining_ms = 0;  // Until it expires or is carried out.
    std::string outcome = {};
  };

  std::string text = {};
  std::uint32_t approvals = 0;
  std::vector<Item> items = {};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
};

struct AdminPreview {
  using Argument = AdminPreviewArgument;
  using Result = AdminPreviewResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.AdminPreview");
};
struct AdminPropose {
  using Argument = AdminProposeArgument;
  using Result = AdminAnswer;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.AdminPropose");
};
struct AdminApprove {
  using Argument = AdminSignArgument;
  using Result = AdminAnswer;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.AdminApprove");
};
struct AdminCancel {
  using Argument = AdminSignArgument;
  using Result = AdminAnswer;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.AdminCancel");
};
struct AdminList {
  using Argument = Empty;
  using Result = AdminListResult;
  static constexpr ProtocolDescriptor kDescriptor =
      internal::Rpc("Zeze.Services.GlobalCacheManager.AdminList");
};

}  // namespace zeze::global::wire
