#include "zeze/arch/linkd/gateway_messages.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::arch {

namespace {

void WriteBytesField(int& last_id, int id, std::string_view bytes, ByteWriter& out) {
  if (bytes.empty()) return;
  out.WriteTag(last_id, id, TypeCode::kBytes);
  out.WriteBytes(bytes);
}

void WriteLongField(int& last_id, int id, std::int64_t value, ByteWriter& out) {
  if (value == 0) return;
  out.WriteTag(last_id, id, TypeCode::kInteger);
  out.WriteLong(value);
}

}  // namespace

void WriteDispatch(const DispatchFields& fields, ByteWriter& out) {
  int last_id = 0;
  WriteLongField(last_id, 1, fields.link_sid, out);
  WriteBytesField(last_id, 2, fields.account, out);
  WriteLongField(last_id, 3, fields.type, out);
  WriteBytesField(last_id, 4, fields.body, out);
  WriteBytesField(last_id, 5, fields.context, out);
  WriteBytesField(last_id, 6, fields.context_bytes, out);
  WriteBytesField(last_id, 7, fields.online_set_name, out);
  out.WriteEnd();
}

void SendView::ForEachSid(FunctionRef<void(std::int64_t sid)> visit) const {
  ByteReader in(sids);
  for (std::size_t i = 0; i < sid_count; ++i) visit(in.ReadIntegerAs<std::int64_t>(sid_type));
}

Result<SendView> ParseSend(std::string_view payload) {
  SendView send;
  ByteReader in(payload);
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.id == 1 && tag.type == TypeCode::kList) {
      send.sid_count = in.ReadListHeader(send.sid_type);
      const std::size_t begin = in.position();
      for (std::size_t i = 0; i < send.sid_count; ++i)
        in.ReadIntegerAs<std::int64_t>(send.sid_type);
      send.sids = in.Since(begin);
    } else if (tag.id == 2) {
      send.type = in.ReadIntegerAs<std::int64_t>(tag.type);
    } else if (tag.id == 3) {
      send.frame = in.ReadBytesAs(tag.type);
    } else {
      in.Skip(tag);
    }
  }
  if (!in.ok()) return in.ToError("Zeze.Builtin.Provider.Send");
  return send;
}

Result<BroadcastView> ParseBroadcast(std::string_view payload) {
  BroadcastView broadcast;
  ByteReader in(payload);
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.id == 1) {
      broadcast.type = in.ReadIntegerAs<std::int64_t>(tag.type);
    } else if (tag.id == 2) {
      broadcast.frame = in.ReadBytesAs(tag.type);
    } else if (tag.id == 4) {
      broadcast.only_same_version = in.ReadBoolAs(tag.type);
    } else {
      in.Skip(tag);
    }
  }
  if (!in.ok()) return in.ToError("Zeze.Builtin.Provider.Broadcast");
  return broadcast;
}

ClientFrames ParseClientFrames(std::string_view bytes) {
  ClientFrames frames{.bytes = bytes};
  while (!bytes.empty()) {
    Frame frame;
    if (TakeUsualFrame(bytes, kEncodedBytesMax, frame)) {
      if (frame.family != FrameFamily::kResponse) continue;
      frames.answers.push_back(
          {.type = ProtocolTypeId(frame.module_id, frame.protocol_id), .call = frame.session_id});
      continue;
    }
    // What is in a whole frame is for the client to judge.
    Result<std::optional<RawFrame>> raw = TakeFrame(bytes, kEncodedBytesMax);
    if (!raw.ok() || !raw.value().has_value() || raw.value()->body.empty()) return frames;
  }
  frames.whole = !frames.bytes.empty();
  return frames;
}

}  // namespace zeze::arch
