// The two messages of which there is one for each request of a client, without intermediate beans.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch::internal {

// A BDispatch whose views point into the received bytes.
struct DispatchView {
  std::int64_t link_sid = 0;
  std::string_view account = {};
  std::int64_t type_id = 0;
  std::string_view body = {};  // Of the client's frame.
  std::string_view context = {};
  std::string_view context_bytes = {};
  std::string_view online_set_name = {};
};

// Fails with kCorrupt.
Result<DispatchView> DecodeDispatch(std::string_view payload);

// A BSend.
void EncodeSend(std::span<const std::int64_t> link_sids, std::int64_t type_id,
                std::string_view frame, ByteWriter& out);

// The whole frame of a Send to one client whose outcome nobody waits for: its session id, 0, is of
// no call.
void EncodeUnheardSend(std::int64_t link_sid, std::int64_t type_id, std::string_view frame,
                       ByteWriter& out);

// What a frame is, from its header. Fails with kInvalidArgument if it is too short for one.
Result<std::int64_t> TypeOfFrame(std::string_view frame);

}  // namespace zeze::arch::internal
