#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/rpc_table.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::internal {

namespace {

// What an idle connection may keep of its buffers.
constexpr std::size_t kKeepWireBytes = 32 << 10;
// Answers that may wait, and as many of them as leave at once all the same.
constexpr std::size_t kWaitingBytesMax = 16 << 10;

// Everything in front of the payload, and the payload straight behind it.
void WriteFrame(const ProtocolDescriptor& protocol, FrameFamily family, std::int64_t result_code,
                std::int64_t session_id, Connection::PayloadWriter payload, ByteWriter& out) {
  constexpr std::uint32_t kHasResultCode = 0x20;
  constexpr std::size_t kEnvelopeBytesMax = kFrameHeaderBytes + 32;
  out.Reserve(kEnvelopeBytesMax);
  out.WriteInt4(protocol.module_id);
  out.WriteInt4(protocol.protocol_id);
  const std::size_t body = out.BeginSize4();
  const auto bits = static_cast<std::uint32_t>(family);
  out.WriteUint(result_code == 0 ? bits : bits | kHasResultCode);
  if (result_code != 0) out.WriteLong(result_code);
  if (family != FrameFamily::kOneWay) out.WriteLong(session_id);
  payload(out);
  out.EndSize4(body);
}

// One message of a WebSocket for each frame: so do other servers, and a client may rely on it.
void WriteMessages(const WebSocketEncoder& encoder, std::string_view frames, ByteWriter& out) {
  while (!frames.empty()) {
    std::string_view rest = frames;
    const Result<std::optional<RawFrame>> frame = TakeFrame(rest, kEncodedBytesMax);
    if (!frame.ok() || !frame.value().has_value()) rest = {};  // Not for us to judge.
    encoder.Write(frames.substr(0, frames.size() - rest.size()), out);
    frames = rest;
  }
}

}  // namespace

// What is written is one frame. Errors: kOverloaded; kInvalidArgument, the peer could not read it.
template <typename Write>
Result<void> ConnectionImpl::Enqueue(const ProtocolDescriptor* protocol, Write&& write) {
  try {
    const bool queued =
        websocket_ == nullptr ? output_.Append(write) : output_.Append([&](ByteWriter& out) {
          const std::size_t begin = websocket_->encoder.Begin(out);
          write(out);
          websocket_->encoder.End(begin, out);
        });
    if (queued) [[likely]]
      return {};
  } catch (const EncodeError& error) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} was not sent: {}", Describe(),
                                                          protocol->full_name, error.what()));
  }
  return OverloadedError(protocol);
}

Error ConnectionImpl::ClosedError() const {
  if (close_reason_.empty()) {
    return {ErrorCode::kUnavailable, fmt::format("{} is not ready to send on", Describe())};
  }
  return {ErrorCode::kUnavailable, fmt::format("{} is closed: {}", Describe(), close_reason_)};
}

Error ConnectionImpl::OverloadedError(const ProtocolDescriptor* protocol) const {
  ++service_->sends_refused;
  return {ErrorCode::kOverloaded,
          fmt::format("{}: {} was not sent: {} bytes of output wait already (limit {})", Describe(),
                      protocol == nullptr ? "a frame" : protocol->full_name, output_.bytes(),
                      options().output_bytes_max)};
}

ConnectionImpl::FlushBy ConnectionImpl::PrepareFlush() {
  may_wait_ = false;
  // Somebody flushes soon, or as soon as the socket takes more.
  if (flush_requested_ || write_blocked_) return FlushBy::kNobody;
  flush_requested_ = true;
  return may_flush_from_caller_ && !loop_.IsCurrent() ? FlushBy::kCaller : FlushBy::kLoop;
}

void ConnectionImpl::RunFlush(FlushBy by) {
  if (by == FlushBy::kLoop) loop_.RequestFlush(Self());
  if (by == FlushBy::kCaller) Flush();
}

Result<void> ConnectionImpl::SendOneWay(const ProtocolDescriptor& protocol,
                                        std::int64_t result_code, PayloadWriter payload) {
  FlushBy by = FlushBy::kNobody;
  {
    MutexLock lock(mutex_);
    if (!open_) return ClosedError();
    Result<void> queued = Enqueue(&protocol, [&](ByteWriter& out) {
      WriteFrame(protocol, FrameFamily::kOneWay, result_code, 0, payload, out);
    });
    if (!queued.ok()) return queued;
    by = PrepareFlush();
  }
  RunFlush(by);
  return {};
}

Result<void> ConnectionImpl::SendFrames(std::string_view frames) {
  FlushBy by = FlushBy::kNobody;
  {
    MutexLock lock(mutex_);
    if (!open_) return ClosedError();
    const bool queued = output_.Append([&](ByteWriter& out) {
      websocket_ == nullptr ? out.WriteRaw(frames)
                            : WriteMessages(websocket_->encoder, frames, out);
    });
    if (!queued) return OverloadedError(nullptr);
    by = PrepareFlush();
  }
  RunFlush(by);
  return {};
}

Result<void> ConnectionImpl::SendAnswer(const ProtocolDescriptor& protocol, std::int64_t session_id,
                                        std::int64_t result_code, PayloadWriter payload) {
  return Answer(protocol, session_id, result_code, payload, false);
}

Result<void> ConnectionImpl::SendAnswerSoon(const ProtocolDescriptor& protocol,
                                            std::int64_t session_id, std::int64_t result_code,
                                            PayloadWriter payload) {
  return Answer(protocol, session_id, result_code, payload, loop_.IsCurrent());
}

Result<void> ConnectionImpl::Answer(const ProtocolDescriptor& protocol, std::int64_t session_id,
                                    std::int64_t result_code, PayloadWriter payload,
                                    bool may_wait) {
  FlushBy by = FlushBy::kNobody;
  Result<void> queued;
  bool later = false;
  {
    MutexLock lock(mutex_);
    if (!open_) return ClosedError();
    may_wait = may_wait && output_.bytes() < kWaitingBytesMax;
    const bool alone = !output_.HasPending() || may_wait_;
    queued = Enqueue(&protocol, [&](ByteWriter& out) {
      WriteFrame(protocol, FrameFamily::kResponse, result_code, session_id, payload, out);
    });
    if (queued.ok() && may_wait) {
      may_wait_ = alone;
      later = !std::exchange(late_flush_, true);
    } else if (queued.ok()) {
      by = PrepareFlush();
    }
  }
  if (!queued.ok() && queued.error().code() == ErrorCode::kInvalidArgument) {
    // The peer waits for an answer all the same.
    Result<void> told = Answer(
        protocol, session_id, result_code::kException, [](ByteWriter& out) { out.WriteEnd(); },
        may_wait);
    return told.ok() ? queued : told;
  }
  if (!queued.ok()) {
    service_->LogPeerError(Describe(), "closed, because it does not read its answers");
    Close(queued.error().message());
    return queued;
  }
  if (later) loop_.FlushLater(Self());
  RunFlush(by);
  return {};
}

Result<void> ConnectionImpl::SendRequest(const ProtocolDescriptor& protocol,
                                         const CallOptions& options_of_call, PayloadWriter payload,
                                         RawCompletion completion) {
  std::chrono::nanoseconds timeout = options_of_call.timeout;
  if (timeout.count() == 0) timeout = std::chrono::milliseconds(protocol.timeout_ms);
  if (timeout.count() == 0) timeout = options().call_timeout;
  const std::chrono::nanoseconds now = loop_.Now();
  FlushBy by = FlushBy::kNobody;
  bool is_first_deadline = false;
  // Outside the lock: destroying a completion may run anybody's code.
  RpcTable::Call call{.type_id = protocol.type_id(),
                      .dispatch = options_of_call.dispatch.value_or(options().dispatch),
                      .completion = std::move(completion)};
  {
    MutexLock lock(mutex_);
    if (!open_) return ClosedError();
    const std::optional<std::int64_t> session_id = calls_.Add(std::move(call), now, timeout);
    if (!session_id.has_value()) {
      return Error(ErrorCode::kOverloaded,
                   fmt::format("{}: {} was not sent: {} calls wait for their answers already",
                               Describe(), protocol.full_name, calls_.size()));
    }
    Result<void> queued = Enqueue(&protocol, [&](ByteWriter& out) {
      WriteFrame(protocol, FrameFamily::kRequest, options_of_call.request_code, *session_id,
                 payload, out);
    });
    if (!queued.ok()) {
      call = std::move(*calls_.Take(*session_id));
      return queued;
    }
    by = PrepareFlush();
    if (call_deadline_.count() == 0 || now + timeout < call_deadline_) {
      call_deadline_ = now + timeout;
      is_first_deadline = true;
    }
  }
  RunFlush(by);
  if (is_first_deadline) {
    if (loop_.IsCurrent()) {
      UpdateDeadline();
    } else {
      loop_.Post(Task("deadline of a call", [self = Self()] { self->UpdateDeadline(); }));
    }
  }
  return {};
}

Result<void> ConnectionImpl::SendDuringHandshake(std::string_view bytes) {
  if (bytes.empty()) return {};
  std::string encoded;
  if (output_codec_ != nullptr) {
    output_codec_->Encode(bytes, encoded);
    bytes = encoded;
  }
  if (tls_ == nullptr) {
    wire_.append(bytes);
    return {};
  }
  Result<void> written = tls_->Write(bytes);
  tls_->TakeOutput(wire_);
  return written;
}

void ConnectionImpl::OnFlush() {
  {
    MutexLock lock(mutex_);
    may_wait_ = false;
  }
  Flush();
}

void ConnectionImpl::OnLateFlush() {
  {
    MutexLock lock(mutex_);
    late_flush_ = false;
  }
  OnFlush();
}

void ConnectionImpl::Flush() {
  while (FlushOnce()) {
  }
}

// True if there may be more to write now.
bool ConnectionImpl::FlushOnce() {
  std::unique_ptr<ByteWriter> batch;
  {
    MutexLock lock(mutex_);
    flush_requested_ = false;
    if (flushing_ || write_blocked_ || (closing_ && !loop_.IsCurrent())) return false;
    if (output_.HasPending() && !may_wait_) batch = output_.Take();
    if (batch == nullptr && wire_.empty()) {
      if (close_when_sent_) loop_.Post(Task("hang up", [self = Self()] { self->HangUp(); }));
      return false;
    }
    flushing_ = true;
  }
  const Result<void> written = socket_.get() >= 0 ? WriteOut(batch.get()) : Result<void>();
  bool blocked = false;
  bool finish = false;
  bool resume = false;
  {
    MutexLock lock(mutex_);
    flushing_ = false;
    output_.GiveBack(std::move(batch), wire_.size() - wire_begin_);
    blocked = write_blocked_ = written.ok() && !wire_.empty();
    finish = std::exchange(close_when_flushed_, false);
    resume = paused_for_output_ && output_.BelowLowWater();
    if (resume) paused_for_output_ = false;
  }
  if (!written.ok()) Close(written.error().message());
  if (finish) {
    loop_.Post(Task("close connection", [self = Self()] { self->FinishClose(); }));
    return false;
  }
  if (resume) loop_.Post(Task("read on", [self = Self()] { self->Resume(); }));
  if (blocked) {
    if (loop_.IsCurrent()) {
      WaitWritable();
    } else {
      // The news of room may have come and gone by then: it tries again.
      loop_.Post(Task("write on", [self = Self()] { self->OnWritable(); }));
    }
  }
  return written.ok() && !blocked;
}

Result<void> ConnectionImpl::WriteOut(const ByteWriter* batch) {
  if (options().keep_alive.check_period.count() > 0) last_sent_.store(loop_.Now().count());
  const bool as_it_is = tls_ == nullptr && output_codec_ == nullptr;
  if (batch == nullptr) return WriteWire();
  if (as_it_is && wire_.empty()) {
    const ssize_t count =
        ::send(socket_.get(), batch->data(), batch->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      return Error(ErrorCode::kUnavailable,
                   "writing failed: " + std::generic_category().message(errno));
    }
    const std::size_t written = count < 0 ? 0 : static_cast<std::size_t>(count);
    if (written < batch->size()) wire_.assign(batch->view().substr(written));
    return {};
  }
  if (as_it_is) {
    wire_.append(batch->view());
    return WriteWire();
  }
  std::string encoded;
  std::string_view bytes = batch->view();
  if (output_codec_ != nullptr) {
    std::string& target = tls_ == nullptr ? wire_ : encoded;
    output_codec_->Encode(bytes, target);
    bytes = encoded;
  }
  if (tls_ != nullptr) {
    if (Result<void> written = tls_->Write(bytes); !written.ok()) return written;
    tls_->TakeOutput(wire_);
  }
  return WriteWire();
}

Result<void> ConnectionImpl::WriteWire() {
  const ssize_t count = ::send(socket_.get(), wire_.data() + wire_begin_,
                               wire_.size() - wire_begin_, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    return Error(ErrorCode::kUnavailable,
                 "writing failed: " + std::generic_category().message(errno));
  }
  wire_begin_ += static_cast<std::size_t>(count);
  if (wire_begin_ < wire_.size()) return {};
  wire_begin_ = 0;
  wire_.clear();
  if (wire_.capacity() > kKeepWireBytes) wire_ = std::string();
  return {};
}

void ConnectionImpl::WaitWritable() {
  if (finished_ || write_waiting_) return;
  if (options().write_stall_timeout.count() > 0) {
    stall_deadline_ = loop_.Now() + options().write_stall_timeout;
    UpdateDeadline();
  }
  write_waiting_ = true;
}

void ConnectionImpl::OnWritable() {
  if (finished_) return;
  write_waiting_ = false;
  {
    MutexLock lock(mutex_);
    write_blocked_ = false;
  }
  stall_deadline_ = std::chrono::nanoseconds(0);
  Flush();
}

}  // namespace zeze::internal
