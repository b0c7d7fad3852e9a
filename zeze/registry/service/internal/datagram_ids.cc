#include "zeze/registry/service/internal/datagram_ids.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/datagram_socket.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/wire.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::registry {

namespace {

constexpr std::chrono::nanoseconds kAskAgain = std::chrono::milliseconds(500);

}  // namespace

DatagramIds::DatagramIds(IoThreads& io)
    : io_(io), last_session_(static_cast<std::int64_t>(io.Random() >> 2)) {}

DatagramIds::~DatagramIds() {
  std::shared_ptr<DatagramSocket> socket;
  {
    const MutexLock lock(mutex_);
    socket = socket_;
  }
  if (socket != nullptr) socket->Close();
}

Result<std::shared_ptr<DatagramSocket>> DatagramIds::Socket() {
  const MutexLock lock(mutex_);
  if (socket_ != nullptr) return socket_;
  Result<std::shared_ptr<DatagramSocket>> opened = DatagramSocket::Open(
      io_, {}, [this](DatagramSocket&, std::string_view bytes, const NetAddress& from) {
        OnDatagram(bytes, from);
      });
  if (opened.ok()) socket_ = opened.value();
  return opened;
}

void DatagramIds::OnDatagram(std::string_view bytes, const NetAddress& from) {
  ByteReader in(bytes);
  const MutexLock lock(mutex_);
  while (in.ok() && in.remaining() > 0) {
    const wire::DatagramAnswer answer = wire::DecodeDatagramAnswer(in);
    const auto waiting = waiting_.find(answer.session_id);
    if (!in.ok() || waiting == waiting_.end() || waiting->second.manager != from) continue;
    waiting->second.answer = answer;
  }
  answered_.NotifyAll();
}

Result<IdBlock> DatagramIds::Allocate(const NetAddress& manager, const std::string& name,
                                      std::uint32_t count, std::chrono::nanoseconds timeout) {
  Result<std::shared_ptr<DatagramSocket>> socket = Socket();
  if (!socket.ok()) return socket.error();
  Clock& clock = io_.clock();
  const std::chrono::nanoseconds deadline = clock.Now() + timeout;
  const MutexLock lock(mutex_);
  const std::int64_t session = ++last_session_;
  waiting_[session].manager = manager;
  const std::optional<wire::DatagramAnswer>& answer = waiting_[session].answer;
  ByteWriter out;
  wire::EncodeDatagramRequest(
      {.session_id = session,
       .argument = {.name = name, .count = static_cast<std::int64_t>(count)}},
      out);
  while (!answer.has_value() && clock.Now() < deadline) {
    socket.value()->Send(out.view(), manager);
    const std::chrono::nanoseconds again = std::min(clock.Now() + kAskAgain, deadline);
    while (!answer.has_value() && clock.WaitUntil(answered_, mutex_, again)) {
    }
  }
  const std::optional<wire::DatagramAnswer> got = answer;
  waiting_.erase(session);
  if (!got.has_value()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("the service manager at {} (UDP) gave no ids of \"{}\"",
                             manager.ToString(), name));
  }
  const std::int64_t granted = got->result.count;
  if (got->result_code != 0 || granted < 0 || granted > UINT32_MAX) {
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("the service manager refused ids of \"{}\" (code {})", name, got->result_code));
  }
  return IdBlock{.start = got->result.start, .count = static_cast<std::uint32_t>(granted)};
}

}  // namespace zeze::registry
