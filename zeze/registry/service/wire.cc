#include "zeze/registry/service/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "zeze/net/frame.h"
#include "zeze/registry/messages.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::registry::wire {

namespace {

// Four lengths of texts and two numbers.
constexpr std::size_t kServiceBytesMin = 6;
constexpr std::uint32_t kFamilyMask = 0x1f;
constexpr std::uint32_t kHasResultCode = 0x20;

std::int32_t ReadInt(ByteReader& in) {
  return static_cast<std::int32_t>(in.ReadLong());
}

std::string ReadText(ByteReader& in) {
  return std::string(in.ReadBytes());
}

void WriteCount(std::size_t count, ByteWriter& out) {
  out.WriteUint(static_cast<std::uint32_t>(count));
}

void EncodeServices(const std::vector<ServiceInfo>& services, ByteWriter& out) {
  WriteCount(services.size(), out);
  for (const ServiceInfo& info : services) EncodeService(info, out);
}

std::vector<ServiceInfo> DecodeServices(ByteReader& in) {
  const std::size_t count = in.ReadCount(kServiceBytesMin);
  std::vector<ServiceInfo> services;
  // In memory a service is much larger than on the wire: let it grow with what there really is.
  constexpr std::size_t kReserveMax = 1024;
  services.reserve(std::min(count, kReserveMax));
  for (std::size_t i = 0; i < count && in.ok(); ++i) services.push_back(DecodeService(in));
  return services;
}

}  // namespace

void EncodeService(const ServiceInfo& info, ByteWriter& out) {
  out.WriteBytes(info.name);
  out.WriteBytes(info.identity);
  out.WriteLong(info.version);
  out.WriteBytes(info.passive_ip);
  out.WriteLong(info.passive_port);
  out.WriteBytes(info.extra_info);
}

ServiceInfo DecodeService(ByteReader& in) {
  ServiceInfo info;
  info.name = in.ReadBytes();
  info.identity = in.ReadBytes();
  info.version = in.ReadLong();
  info.passive_ip = in.ReadBytes();
  info.passive_port = ReadInt(in);
  info.extra_info = in.ReadBytes();
  return info;
}

void EditArgument::Encode(ByteWriter& out) const {
  EncodeServices(edit.remove, out);
  EncodeServices(edit.add, out);
}

void EditArgument::Decode(ByteReader& in) {
  edit.remove = DecodeServices(in);
  edit.add = DecodeServices(in);
}

void SubscribeArgument::Encode(ByteWriter& out) const {
  WriteCount(subscriptions.size(), out);
  for (const Subscription& one : subscriptions) {
    out.WriteBytes(one.name);
    out.WriteLong(one.version);
  }
}

void SubscribeArgument::Decode(ByteReader& in) {
  subscriptions.clear();
  const std::size_t count = in.ReadCount(2);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Subscription& one = subscriptions.emplace_back();
    one.name = in.ReadBytes();
    one.version = in.ReadLong();
  }
}

void SubscribeResult::Encode(ByteWriter& out) const {
  WriteCount(services.size(), out);
  for (const auto& [name, versions] : services) {
    out.WriteBytes(name);
    WriteCount(versions.size(), out);
    for (const auto& [version, list] : versions) {
      out.WriteLong(version);
      EncodeServices(list, out);
    }
  }
}

void SubscribeResult::Decode(ByteReader& in) {
  services.clear();
  const std::size_t names = in.ReadCount(2);
  for (std::size_t i = 0; i < names && in.ok(); ++i) {
    ServicesByVersion& versions = services[ReadText(in)];
    const std::size_t count = in.ReadCount(2);
    for (std::size_t j = 0; j < count && in.ok(); ++j) {
      const std::int64_t version = in.ReadLong();
      versions[version] = DecodeServices(in);
    }
  }
}

void UnsubscribeArgument::Encode(ByteWriter& out) const {
  WriteCount(names.size(), out);
  for (const std::string& name : names) out.WriteBytes(name);
}

void UnsubscribeArgument::Decode(ByteReader& in) {
  names.clear();
  const std::size_t count = in.ReadCount();
  for (std::size_t i = 0; i < count && in.ok(); ++i) names.push_back(ReadText(in));
}

void AllocateIdArgument::Encode(ByteWriter& out) const {
  out.WriteBytes(name);
  out.WriteLong(count);
}

void AllocateIdArgument::Decode(ByteReader& in) {
  name = in.ReadBytes();
  count = in.ReadLong();
}

void AllocateIdResult::Encode(ByteWriter& out) const {
  out.WriteLong(start);
  out.WriteLong(count);
}

void AllocateIdResult::Decode(ByteReader& in) {
  start = in.ReadLong();
  count = in.ReadLong();
}

void AllocateId128Result::Encode(ByteWriter& out) const {
  out.WriteUlong(start.high);
  out.WriteUlong(start.low);
  out.WriteLong(count);
}

void AllocateId128Result::Decode(ByteReader& in) {
  start.high = in.ReadUlong();
  start.low = in.ReadUlong();
  count = in.ReadLong();
}

void LoadArgument::Encode(ByteWriter& out) const {
  out.WriteBytes(load.ip);
  out.WriteLong(load.port);
  out.WriteBytes(load.param);
}

void LoadArgument::Decode(ByteReader& in) {
  load.ip = in.ReadBytes();
  load.port = ReadInt(in);
  load.param = in.ReadBytes();
}

void OfflineArgument::Encode(ByteWriter& out) const {
  out.WriteLong(notice.server_id);
  out.WriteBytes(notice.notify_id);
  out.WriteLong(notice.serial);
  out.WriteBytes(notice.context);
}

void OfflineArgument::Decode(ByteReader& in) {
  notice.server_id = ReadInt(in);
  notice.notify_id = in.ReadBytes();
  notice.serial = in.ReadLong();
  notice.context = in.ReadBytes();
}

void AnnounceArgument::Encode(ByteWriter& out) const {
  out.WriteLong(0);  // The version of this message.
  out.WriteBytes(announcement.notify_id);
  out.WriteLong(announcement.server_id);
  WriteCount(announcement.watched.size(), out);
  for (const Announcement::Watched& one : announcement.watched) out.WriteLong(one.server_id);
  WriteCount(announcement.watched.size(), out);
  for (const Announcement::Watched& one : announcement.watched) out.WriteLong(one.serial);
}

void AnnounceArgument::Decode(ByteReader& in) {
  in.ReadLong();
  announcement.notify_id = in.ReadBytes();
  announcement.server_id = ReadInt(in);
  announcement.watched.clear();
  const std::size_t ids = in.ReadCount();
  for (std::size_t i = 0; i < ids && in.ok(); ++i) {
    announcement.watched.push_back({.server_id = ReadInt(in)});
  }
  const std::size_t serials = in.ReadCount();
  if (serials != ids) return in.Fail("servers and their serials are not equally many");
  for (std::size_t i = 0; i < serials && in.ok(); ++i) {
    announcement.watched[i].serial = in.ReadLong();
  }
}

void EncodeDatagramRequest(const DatagramRequest& request, ByteWriter& out) {
  out.WriteUint(static_cast<std::uint32_t>(FrameFamily::kRequest));
  out.WriteLong(request.session_id);
  request.argument.Encode(out);
}

DatagramRequest DecodeDatagramRequest(ByteReader& in) {
  DatagramRequest request;
  const std::uint32_t header = in.ReadUint();
  if ((header & kFamilyMask) != static_cast<std::uint32_t>(FrameFamily::kRequest)) {
    in.Fail("this is no request");
    return request;
  }
  if ((header & kHasResultCode) != 0) in.ReadLong();
  request.session_id = in.ReadLong();
  request.argument.Decode(in);
  return request;
}

void EncodeDatagramAnswer(const DatagramAnswer& answer, ByteWriter& out) {
  const auto family = static_cast<std::uint32_t>(FrameFamily::kResponse);
  out.WriteUint(answer.result_code == 0 ? family : family | kHasResultCode);
  if (answer.result_code != 0) out.WriteLong(answer.result_code);
  out.WriteLong(answer.session_id);
  answer.result.Encode(out);
}

DatagramAnswer DecodeDatagramAnswer(ByteReader& in) {
  DatagramAnswer answer;
  const std::uint32_t header = in.ReadUint();
  if ((header & kFamilyMask) != static_cast<std::uint32_t>(FrameFamily::kResponse)) {
    in.Fail("this is no answer");
    return answer;
  }
  if ((header & kHasResultCode) != 0) answer.result_code = in.ReadLong();
  answer.session_id = in.ReadLong();
  answer.result.Decode(in);
  return answer;
}

}  // namespace zeze::registry::wire
