// The two messages that a gateway writes and reads for every message of a client, without beans and
// without copies: Dispatch to a server, and Send from one.
//
//   connection->SendOneWay(Dispatch::kDescriptor, 0, [&](ByteWriter& out) {
//     WriteDispatch({.link_sid = 5, .type = type, .body = frame.body}, out);
//   });
//   Result<SendView> send = ParseSend(frame.payload);

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/container/small_vector.hpp>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::arch {

// The fields of BDispatch.
struct DispatchFields {
  std::int64_t link_sid = 0;
  std::string_view account = {};
  std::int64_t type = 0;
  std::string_view body = {};
  std::string_view context = {};
  std::string_view context_bytes = {};
  std::string_view online_set_name = {};
};
void WriteDispatch(const DispatchFields& fields, ByteWriter& out);

// The fields of BSend, as views into what was parsed.
struct SendView {
  std::int64_t type = 0;
  std::string_view frame = {};
  std::size_t sid_count = 0;
  std::string_view sids = {};  // Encoded.
  TypeCode sid_type = TypeCode::kInteger;

  void ForEachSid(FunctionRef<void(std::int64_t sid)> visit) const;
};
Result<SendView> ParseSend(std::string_view payload);

// Likewise of BBroadcast. `time` is passed over, as Zeze 1.6 does.
struct BroadcastView {
  std::int64_t type = 0;
  std::string_view frame = {};
  bool only_same_version = false;
};
Result<BroadcastView> ParseBroadcast(std::string_view payload);

// What a server has for clients, looked at once however many of them get it.
struct ClientFrames {
  struct Answer {
    std::int64_t type = 0;
    std::int64_t call = 0;  // The client's number for its request.
  };

  std::string_view bytes = {};

  // They are whole frames and nothing else: anything else would put what comes behind it on a
  // client's connection out of step for ever.
  bool whole = false;

  boost::container::small_vector<Answer, 4> answers = {};
};
ClientFrames ParseClientFrames(std::string_view bytes);

}  // namespace zeze::arch
