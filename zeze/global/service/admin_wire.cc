#include "zeze/global/service/admin_wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "zeze/admin/admin_desk.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::global::wire {

namespace {

void Write(ByteWriter& out, const admin::AdminRequest& request) {
  out.WriteBytes(request.id);
  out.WriteLong(request.shard);
  out.WriteLong(request.term);
  out.WriteLong(request.server_id);
  out.WriteLong(request.epoch);
  out.WriteUlong(request.session);
  out.WriteBytes(request.proposer);
  out.WriteBytes(request.reason);
}

void Read(ByteReader& in, admin::AdminRequest& request) {
  request.id = in.ReadBytes();
  request.shard = static_cast<std::int32_t>(in.ReadLong());
  request.term = in.ReadLong();
  request.server_id = static_cast<std::int32_t>(in.ReadLong());
  request.epoch = in.ReadLong();
  request.session = in.ReadUlong();
  request.proposer = in.ReadBytes();
  request.reason = in.ReadBytes();
}

// Eight fields of a request and four more.
constexpr std::size_t kItemBytesMin = 12;

}  // namespace

void AdminPreviewArgument::Encode(ByteWriter& out) const {
  out.WriteLong(server_id);
}

void AdminPreviewArgument::Decode(ByteReader& in) {
  server_id = static_cast<std::int32_t>(in.ReadLong());
}

void AdminPreviewResult::Encode(ByteWriter& out) const {
  out.WriteBytes(text);
  Write(out, request);
  out.WriteBytes(holder);
  out.WriteBytes(peer);
  out.WriteBool(unfenced);
  out.WriteBool(live);
  out.WriteBool(announced);
  out.WriteLong(silent_ms);
  out.WriteUlong(share);
  out.WriteUlong(modify);
  out.WriteUint(approvals);
  out.WriteLong(delay_ms);
}

void AdminPreviewResult::Decode(ByteReader& in) {
  text = in.ReadBytes();
  Read(in, request);
  holder = in.ReadBytes();
  peer = in.ReadBytes();
  unfenced = in.ReadBool();
  live = in.ReadBool();
  announced = in.ReadBool();
  silent_ms = in.ReadLong();
  share = in.ReadUlong();
  modify = in.ReadUlong();
  approvals = in.ReadUint();
  delay_ms = in.ReadLong();
}

void AdminProposeArgument::Encode(ByteWriter& out) const {
  out.WriteBytes(id);
  out.WriteBytes(name);
  out.WriteBytes(reason);
  out.WriteBytes(signature);
}

void AdminProposeArgument::Decode(ByteReader& in) {
  id = in.ReadBytes();
  name = in.ReadBytes();
  reason = in.ReadBytes();
  signature = in.ReadBytes();
}

void AdminSignArgument::Encode(ByteWriter& out) const {
  out.WriteBytes(id);
  out.WriteBytes(name);
  out.WriteBytes(signature);
}

void AdminSignArgument::Decode(ByteReader& in) {
  id = in.ReadBytes();
  name = in.ReadBytes();
  signature = in.ReadBytes();
}

void AdminAnswer::Encode(ByteWriter& out) const {
  out.WriteBytes(text);
}

void AdminAnswer::Decode(ByteReader& in) {
  text = in.ReadBytes();
}

void AdminListResult::Encode(ByteWriter& out) const {
  out.WriteBytes(text);
  out.WriteUint(approvals);
  out.WriteUint(static_cast<std::uint32_t>(items.size()));
  for (const Item& item : items) {
    Write(out, item.request);
    out.WriteByte(static_cast<std::uint8_t>(item.state));
    out.WriteBytes(item.approved_by);
    out.WriteLong(item.remaining_ms);
    out.WriteBytes(item.outcome);
  }
}

void AdminListResult::Decode(ByteReader& in) {
  text = in.ReadBytes();
  approvals = in.ReadUint();
  const std::size_t count = in.ReadCount(kItemBytesMin);
  items.clear();
  items.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Item& item = items.emplace_back();
    Read(in, item.request);
    // States of a newer Global are all the same to us: over.
    item.state = static_cast<admin::RequestState>(std::min<std::uint8_t>(
        in.ReadByte(), static_cast<std::uint8_t>(admin::RequestState::kExpired)));
    item.approved_by = in.ReadBytes();
    item.remaining_ms = in.ReadLong();
    item.outcome = in.ReadBytes();
  }
}

}  // namespace zeze::global::wire
