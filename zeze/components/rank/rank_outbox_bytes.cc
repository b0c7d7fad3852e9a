// What outboxes send each other, as bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/components/rank/rank_outbox.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

std::string RankOutbox::EncodeDelivery(const Delivery& delivery) {
  ByteWriter out;
  delivery.group.Encode(out);
  out.WriteLong(delivery.generation);
  out.WriteLong(delivery.sender);
  out.WriteLong(delivery.number);
  out.WriteUint(delivery.level);
  out.WriteUint(static_cast<std::uint32_t>(delivery.updates.size()));
  for (const Update& update : delivery.updates) {
    out.WriteLong(update.role);
    out.WriteBytes(update.value);
  }
  return out.Release();
}

bool RankOutbox::DecodeDelivery(std::string_view bytes, Delivery& delivery) {
  ByteReader in(bytes);
  delivery.group.Decode(in);
  delivery.generation = in.ReadLong();
  delivery.sender = in.ReadLong();
  delivery.number = in.ReadLong();
  delivery.level = in.ReadUint();
  const std::size_t count = in.ReadCount(2);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::int64_t role = in.ReadLong();
    delivery.updates.push_back({role, std::string(in.ReadBytes())});
  }
  return in.ok() && in.remaining() == 0;
}

std::string RankOutbox::EncodeReceipt(const Receipt& receipt) {
  ByteWriter out;
  out.WriteBool(receipt.accepted);
  out.WriteLong(receipt.generation);
  return out.Release();
}

bool RankOutbox::DecodeReceipt(std::string_view bytes, Receipt& receipt) {
  ByteReader in(bytes);
  receipt.accepted = in.ReadBool();
  receipt.generation = in.ReadLong();
  return in.ok();
}

}  // namespace zeze
