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

std::optional<std::int64_t> CallOfRequest(std::string_view body) {
  if (FamilyOfBody(body) != FrameFamily::kRequest) return std::nullopt;
  const Result<Frame> request = ParseFrame({.body = body});
  if (!request.ok()) return std::nullopt;
  return request.value().session_id;
}

bool AreWholeFrames(std::string_view bytes) {
  if (bytes.empty()) return false;
  while (!bytes.empty()) {
    Result<std::optional<RawFrame>> frame = TakeFrame(bytes, kEncodedBytesMax);
    if (!frame.ok() || !frame.value().has_value() || frame.value()->body.empty()) return false;
  }
  return true;
}

}  // namespace zeze::arch
