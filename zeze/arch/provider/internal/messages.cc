#include "zeze/arch/provider/internal/messages.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/net/protocol.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::arch::internal {

Result<DispatchView> DecodeDispatch(std::string_view payload) {
  DispatchView view;
  ByteReader in(payload);
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.base) continue;
    switch (tag.id) {
      case 1:
        view.link_sid = in.ReadIntegerAs<std::int64_t>(tag.type);
        break;
      case 2:
        view.account = in.ReadBytesAs(tag.type);
        break;
      case 3:
        view.type_id = in.ReadIntegerAs<std::int64_t>(tag.type);
        break;
      case 4:
        view.body = in.ReadBytesAs(tag.type);
        break;
      case 5:
        view.context = in.ReadBytesAs(tag.type);
        break;
      case 6:
        view.context_bytes = in.ReadBytesAs(tag.type);
        break;
      case 7:
        view.online_set_name = in.ReadBytesAs(tag.type);
        break;
      default:
        in.Skip(tag);
    }
  }
  if (!in.ok()) return in.ToError(Zeze::Builtin::Provider::Dispatch::kFullName);
  return view;
}

void EncodeSend(std::span<const std::int64_t> link_sids, std::int64_t type_id,
                std::string_view frame, ByteWriter& out) {
  int last_id = 0;
  if (!link_sids.empty()) {
    out.WriteTag(last_id, 1, TypeCode::kList);
    out.WriteListHeader(link_sids.size(), TypeCode::kInteger);
    for (const std::int64_t sid : link_sids) out.WriteLong(sid);
  }
  if (type_id != 0) {
    out.WriteTag(last_id, 2, TypeCode::kInteger);
    out.WriteLong(type_id);
  }
  if (!frame.empty()) {
    out.WriteTag(last_id, 3, TypeCode::kBytes);
    out.WriteBytes(frame);
  }
  out.WriteEnd();
}

void EncodeUnheardSend(std::int64_t link_sid, std::int64_t type_id, std::string_view frame,
                       ByteWriter& out) {
  constexpr const ProtocolDescriptor& kSend = Zeze::Builtin::Provider::Send::kDescriptor;
  out.Reserve(kFrameHeaderBytes + 64 + frame.size());
  out.WriteInt4(kSend.module_id);
  out.WriteInt4(kSend.protocol_id);
  const std::size_t body = out.BeginSize4();
  out.WriteUint(static_cast<std::uint32_t>(FrameFamily::kRequest));
  out.WriteLong(0);
  EncodeSend(std::span(&link_sid, 1), type_id, frame, out);
  out.EndSize4(body);
}

Result<std::int64_t> TypeOfFrame(std::string_view frame) {
  if (frame.size() < kFrameHeaderBytes) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} bytes are no frame: a header has {}",
                                                          frame.size(), kFrameHeaderBytes));
  }
  ByteReader in(frame);
  const std::int32_t module_id = in.ReadInt4();
  return ProtocolTypeId(module_id, in.ReadInt4());
}

}  // namespace zeze::arch::internal
