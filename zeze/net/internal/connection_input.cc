#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/internal/arrival_queue.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/handshake_machine.h"
#include "zeze/net/internal/rpc_table.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/peer_messages.h"
#include "zeze/net/protocol.h"
#include "zeze/net/proxy_header.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

namespace {

// Compressed input is decoded in pieces, so that what one of them becomes can be limited without
// refusing honest peers whose messages happen to be much alike.
constexpr std::size_t kDecodePieceBytes = 1024;
constexpr std::size_t kDecodedPieceBytesMax = 4 << 20;
// Of them, for each byte that a frame may have: a stranger who may send little gets little decoded.
constexpr std::size_t kDecodedFramesMax = 16;

// What an idle connection may keep of its buffers.
constexpr std::size_t kKeepInputBytes = 4096;

// Answered for everybody who has no handler of its own.
bool IsKeepAlive(const Frame& frame) {
  return frame.module_id == 0 && frame.protocol_id == kKeepAliveId &&
         frame.family == FrameFamily::kRequest;
}

// Of the frame that was taken from `before`.
std::string_view BodyOf(std::string_view before, std::string_view after) {
  before.remove_suffix(after.size());
  return before.substr(kFrameHeaderBytes);
}

}  // namespace

void ConnectionImpl::OnSocket(std::uint32_t news) {
  if (finished_) return;
  if ((news & EPOLLOUT) != 0 && write_waiting_) OnWritable();
  if ((news & ~std::uint32_t{EPOLLOUT}) == 0) return;
  readable_ = true;
  if ((news & ~std::uint32_t{EPOLLOUT | EPOLLIN}) != 0) ending_ = true;
  if (reading_ && !read_on_posted_) OnReadable();
}

void ConnectionImpl::StartReading() {
  if (reading_ || finished_ || closing_) return;
  reading_ = true;
  // After the others of this turn; once in a turn, whatever news comes meanwhile.
  if (readable_ && !std::exchange(read_on_posted_, true)) {
    loop_.Post(Task("read on", [self = Self()] {
      self->read_on_posted_ = false;
      if (self->reading_ && self->readable_) self->OnReadable();
    }));
  }
}

void ConnectionImpl::OnReadable() {
  reading_ = false;
  if (finished_ || closing_) return;
  std::vector<char>& buffer = loop_.read_buffer();
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0) return Close("the peer closed the connection");
  if (count < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      return Close("reading failed: " + std::generic_category().message(errno));
    }
    readable_ = errno == EINTR;
    return StartReading();
  }
  // Less than was asked for: nothing is left, and what comes now is news again.
  readable_ = ending_ || static_cast<std::size_t>(count) == buffer.size();
  if (hung_up_ || deaf_) return StartReading();
  if (options().keep_alive.check_period.count() > 0) last_received_ = loop_.Now();
  BeginTurn();
  EndTurn(Consume(std::span<char>(buffer).first(static_cast<std::size_t>(count))));
}

// What is sent from here to EndTurn waits for it, so that the answers to everything that was read
// at once leave at once.
void ConnectionImpl::BeginTurn() {
  MutexLock lock(mutex_);
  flush_requested_ = true;
}

void ConnectionImpl::EndTurn(Result<void> consumed) {
  while (true) {
    kept_bytes_ = nullptr;
    Flush();
    if (!consumed.ok()) return FailPeer(consumed.error());
    if (finished_ || closing_ || hung_up_) return;
    if (PauseForOutput()) return;
    if (dispatched_.Full()) {
      paused_for_dispatch_ = true;
      // Whoever finds the flag set and the queue drained, here or in Run, resumes.
      if (!dispatched_.Drained() || !paused_for_dispatch_.exchange(false)) return;
    }
    if (!backlog_) return StartReading();
    consumed = ConsumeBacklog();
  }
}

// True if the output is too full to read more; FlushOnce resumes.
bool ConnectionImpl::PauseForOutput() {
  if (!output_.AboveHighWater()) return false;
  MutexLock lock(mutex_);
  // Another thread may have written it out since; then nobody is left to resume.
  return paused_for_output_ = output_.AboveHighWater();
}

void ConnectionImpl::Resume() {
  if (finished_ || closing_ || hung_up_ || paused_for_dispatch_) return;
  {
    MutexLock lock(mutex_);
    if (paused_for_output_) return;
  }
  BeginTurn();
  EndTurn(ConsumeBacklog());
}

bool ConnectionImpl::Stopped() const {
  return closing_.load(std::memory_order_relaxed) || output_.AboveHighWater() || dispatched_.Full();
}

Result<void> ConnectionImpl::ConsumeBacklog() {
  // Before the connection is ready input_ has no frames.
  if (!std::exchange(backlog_, false) || deaf_) return {};
  if (Result<void> consumed = ConsumeFrames({}); !consumed.ok() || backlog_) return consumed;
  std::string wire = std::exchange(undecoded_, {});
  return ConsumeWire(wire);
}

Result<void> ConnectionImpl::Consume(std::span<char> wire) {
  if (phase_ == Phase::kProxy) return ConsumeProxyHeader(wire);
  if (tls_ != nullptr) return ConsumeTls({wire.data(), wire.size()});
  return ConsumeWire(wire);
}

Result<void> ConnectionImpl::ConsumeProxyHeader(std::span<char> wire) {
  input_.append(wire.data(), wire.size());
  std::string_view stream = input_;
  Result<std::optional<ProxyHeader>> header = TakeProxyHeader(stream);
  if (!header.ok()) return header.error();
  if (!header.value().has_value()) return {};
  if (!header.value()->source.empty()) peer_address_ = header.value()->source;
  std::string rest(stream);
  input_.clear();
  if (Result<void> entered = EnterPhase(Phase::kTls); !entered.ok()) return entered;
  if (rest.empty() || closing_) return {};  // Closing: it was not admitted.
  return Consume(rest);
}

Result<void> ConnectionImpl::ConsumeTls(std::string_view wire) {
  std::string& plain = loop_.plain_buffer();
  plain.clear();
  Result<void> read = tls_->Read(wire, plain);
  tls_->TakeOutput(wire_);
  if (!wire_.empty()) {
    // Answers of TLS itself are output, too: who does not read them is not read from.
    MutexLock lock(mutex_);
    output_.SetInFlight(wire_.size() - wire_begin_);
  }
  if (!read.ok()) return read;
  if (phase_ == Phase::kTls && tls_->ready()) {
    if (Result<void> entered = EnterPhase(Phase::kUpgrade); !entered.ok()) return entered;
  }
  if (!plain.empty()) read = ConsumeWire(plain);
  if (tls_->ended()) Close("the peer closed the connection");
  return read;
}

Result<void> ConnectionImpl::ConsumeWire(std::span<char> wire) {
  if (websocket_ != nullptr) return ConsumeWebSocket(wire);
  if (input_codec_ == nullptr) return ConsumePlain({wire.data(), wire.size()});
  std::string& decoded = loop_.decoded_buffer();
  while (!wire.empty()) {
    if (backlog_) {
      undecoded_.append(wire.data(), wire.size());
      return {};
    }
    const std::span<char> piece = wire.first(std::min(wire.size(), kDecodePieceBytes));
    wire = wire.subspan(piece.size());
    decoded.clear();
    const std::size_t frame_max =
        phase_ == Phase::kReady ? frame_bytes_max_.load() : kHandshakeBytesMax;
    const std::size_t bytes_max =
        std::max(std::min(kDecodedPieceBytesMax, kDecodedFramesMax * frame_max), 2 * frame_max);
    Result<void> done = input_codec_->Decode(piece, bytes_max, decoded);
    if (!done.ok()) {
      const bool too_large = done.error().code() == ErrorCode::kOverloaded;
      ++(too_large ? service_->compression_bombs : service_->bad_compression);
    }
    if (done.ok()) done = ConsumePlain(decoded);
    if (!done.ok()) return done;
  }
  return {};
}

Result<void> ConnectionImpl::ConsumePlain(std::string_view bytes) {
  if (phase_ == Phase::kReady) return ConsumeFrames(bytes);
  return ConsumeHandshake(bytes);
}

Result<void> ConnectionImpl::ConsumeHandshake(std::string_view bytes) {
  input_.append(bytes);
  std::string_view stream = input_;
  Result<std::optional<RawFrame>> raw = TakeFrame(stream, kHandshakeBytesMax);
  if (!raw.ok()) {
    ++service_->oversize_frames;
    return raw.error();
  }
  if (!raw.value().has_value()) return {};
  Result<Frame> frame = ParseFrame(*raw.value());
  if (!frame.ok()) return frame.error();
  Result<HandshakeStep> step = server_handshake_.has_value()
                                   ? server_handshake_->OnFrame(frame.value())
                                   : client_handshake_->OnFrame(frame.value());
  if (!step.ok()) return step.error();
  heard_ = true;
  std::string rest(stream);
  input_.clear();
  return ApplyHandshakeStep(std::move(step).value(), std::move(rest));
}

Result<void> ConnectionImpl::ApplyHandshakeStep(HandshakeStep step, std::string rest) {
  if (Result<void> sent = SendDuringHandshake(step.before); !sent.ok()) return sent;
  if (step.output != nullptr) output_codec_ = std::move(step.output);
  const bool switched = step.input != nullptr;
  if (switched) input_codec_ = std::move(step.input);
  if (Result<void> sent = SendDuringHandshake(step.after); !sent.ok()) return sent;
  if (step.ready) BecomeReady();
  if (rest.empty()) return {};
  // What stands behind the message that changed the codec is in the new one.
  return switched ? ConsumeWire(rest) : ConsumePlain(rest);
}

Result<void> ConnectionImpl::ConsumeFrames(std::string_view bytes) {
  const bool joined = !input_.empty();
  if (joined) input_.append(bytes);
  std::string_view stream = joined ? std::string_view(input_) : bytes;
  while (true) {
    if (Stopped()) {
      backlog_ = true;
      break;
    }
    const std::string_view before = stream;
    Frame frame;
    if (!TakeUsualFrame(stream, frame_bytes_max_, frame)) {
      Result<std::optional<RawFrame>> raw = TakeFrame(stream, frame_bytes_max_);
      if (!raw.ok()) {
        ++service_->oversize_frames;
        return raw.error();
      }
      if (!raw.value().has_value()) break;
      return UnusualFrame(*raw.value());
    }
    Result<void> done;
    if (service_->forwarder && IsForOthers(frame)) {
      done = service_->forwarder(*this, frame, BodyOf(before, stream));
    } else if (frame.family == FrameFamily::kResponse) {
      done = OnAnswer(frame, before.size());
    } else {
      done = OnMessage(frame, before.size());
    }
    if (!done.ok()) return done;
    heard_ = true;
  }
  if (!joined) {
    input_.assign(stream);
  } else if (stream.empty() && input_.capacity() > kKeepInputBytes) {
    input_ = std::string();
  } else {
    input_.erase(0, input_.size() - stream.size());
  }
  return {};
}

// One that cannot be parsed, or that this layer does not handle.
Result<void> ConnectionImpl::UnusualFrame(const RawFrame& raw) {
  Result<Frame> frame = ParseFrame(raw);
  if (!frame.ok()) return frame.error();
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("a {} message of module {} protocol {}: this service does not speak raft",
                  ToString(frame.value().family), raw.module_id, raw.protocol_id));
}

HandlerEntry* ConnectionImpl::FindEntry(std::int64_t type_id) {
  if (last_entry_ != nullptr && last_entry_->protocol->type_id() == type_id) return last_entry_;
  HandlerEntry* entry = service_->Find(type_id);
  if (entry != nullptr) last_entry_ = entry;
  return entry;
}

bool ConnectionImpl::IsForOthers(const Frame& frame) {
  const std::int64_t type_id = ProtocolTypeId(frame.module_id, frame.protocol_id);
  if (FindEntry(type_id) != nullptr || IsKeepAlive(frame)) return false;
  if (frame.family != FrameFamily::kResponse) return true;
  MutexLock lock(mutex_);
  const RpcTable::Call* call = calls_.Find(frame.session_id);
  return call == nullptr || call->type_id != type_id;
}

Result<void> ConnectionImpl::OnMessage(const Frame& frame, std::size_t batch_bytes) {
  HandlerEntry* entry = FindEntry(ProtocolTypeId(frame.module_id, frame.protocol_id));
  if (entry == nullptr) {
    if (IsKeepAlive(frame)) {
      static constexpr ProtocolDescriptor kKeepAlive{.protocol_id = kKeepAliveId, .is_rpc = true};
      return SendAnswer(kKeepAlive, frame.session_id, 0, [](ByteWriter& out) { out.WriteEnd(); });
    }
    return OnPeerMessage(frame);
  }
  if ((frame.family == FrameFamily::kRequest) != entry->protocol->is_rpc) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} came as a {} message, but it is {}", entry->protocol->full_name,
                             ToString(frame.family),
                             entry->protocol->is_rpc ? "an rpc" : "a one-way protocol"));
  }
  if (!entry->handler) return AnswerWithoutHandler(*entry, frame);
  if (entry->dispatch == Dispatch::kInline) return RunHandler(*entry, frame);
  Arrival arrival{.handler = entry, .frame = frame};
  KeepBytes(arrival, batch_bytes);
  Deliver(entry->dispatch, std::move(arrival), entry->executor);
  return {};
}

// A message without a handler.
Result<void> ConnectionImpl::OnPeerMessage(const Frame& frame) {
  const PeerMessage* known = FindPeerMessage(frame.module_id, frame.protocol_id);
  if (known == nullptr || known->is_rpc != (frame.family == FrameFamily::kRequest)) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("a {} message of module {} protocol {}, which this service does not "
                             "know",
                             ToString(frame.family), frame.module_id, frame.protocol_id));
  }
  ++service_->peer_messages;
  ZEZE_LOG_DEBUG("{}: ignored {}", Describe(), known->full_name);
  if (!known->is_rpc) return {};
  const ProtocolDescriptor protocol{
      .module_id = frame.module_id, .protocol_id = frame.protocol_id, .is_rpc = true};
  return SendAnswer(protocol, frame.session_id, result_code::kNotImplement,
                    [](ByteWriter& out) { out.WriteEnd(); });
}

Result<void> ConnectionImpl::AnswerWithoutHandler(const HandlerEntry& entry, const Frame& frame) {
  if (options().close_when_no_handler) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("nobody handles {} here", entry.protocol->full_name));
  }
  if (!entry.protocol->is_rpc) return {};
  return SendAnswer(*entry.protocol, frame.session_id, result_code::kNotImplement,
                    [](ByteWriter& out) { out.WriteEnd(); });
}

Result<void> ConnectionImpl::OnAnswer(const Frame& frame, std::size_t batch_bytes) {
  const std::int64_t type_id = ProtocolTypeId(frame.module_id, frame.protocol_id);
  std::optional<RpcTable::Call> call;
  {
    MutexLock lock(mutex_);
    const RpcTable::Call* found = calls_.Find(frame.session_id);
    if (found != nullptr && found->type_id != type_id) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the answer to call {} has the type of another protocol (module {} "
                               "protocol {})",
                               frame.session_id, frame.module_id, frame.protocol_id));
    }
    call = calls_.Take(frame.session_id);
  }
  if (!call.has_value()) {
    ++service_->late_answers;
    ZEZE_LOG_DEBUG("{}: dropped an answer to call {}, for which nobody waits", Describe(),
                   frame.session_id);
    return {};
  }
  const RawReply reply{.result_code = frame.result_code, .payload = frame.payload};
  return EndCall(std::move(*call), reply, batch_bytes);
}

Result<void> ConnectionImpl::EndCall(RpcTable::Call call, const RawReply& reply,
                                     std::size_t batch_bytes) {
  if (call.dispatch == Dispatch::kInline) return RunCompletion(call.completion, reply);
  Arrival arrival{.completion = std::move(call.completion), .reply = reply};
  KeepBytes(arrival, batch_bytes);
  Deliver(call.dispatch, std::move(arrival), options().executor);
  return {};
}

// Others handle the message after the read buffer is used for the next one. All messages of a turn
// share one copy of their bytes.
void ConnectionImpl::KeepBytes(Arrival& arrival, std::size_t batch_bytes) {
  std::string_view& payload =
      arrival.handler != nullptr ? arrival.frame.payload : arrival.reply.payload;
  arrival.cost = sizeof(Arrival) + payload.size();
  dispatched_.Add(arrival.cost);
  if (payload.empty()) return;
  if (kept_bytes_ == nullptr || kept_bytes_->capacity() - kept_bytes_->size() < payload.size()) {
    kept_bytes_ = std::make_shared<std::string>();
    kept_bytes_->reserve(std::max(batch_bytes, payload.size()));
  }
  const std::size_t begin = kept_bytes_->size();
  kept_bytes_->append(payload);  // Within the capacity: earlier views stay valid.
  payload = std::string_view(*kept_bytes_).substr(begin);
  arrival.bytes = kept_bytes_;
}

void ConnectionImpl::Deliver(Dispatch dispatch, Arrival arrival, Executor* executor) {
  switch (dispatch) {
    case Dispatch::kInline:
      return Run(arrival);
    case Dispatch::kOrdered:
      if (arrivals_.Push(std::move(arrival))) {
        options().executor->Post(
            Task("messages of a connection", [self = Self()] { self->DrainArrivals(); }));
      }
      return;
    case Dispatch::kParallel:
      executor->Post(
          Task("message of a connection",
               [self = Self(), arrival = std::move(arrival)]() mutable { self->Run(arrival); }));
      return;
  }
}

void ConnectionImpl::DrainArrivals() {
  // Some turns, then others get the thread.
  constexpr int kTurns = 4;
  std::vector<Arrival> batch;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!arrivals_.TakeBatch(batch)) return;
    for (Arrival& arrival : batch) Run(arrival);
  }
  options().executor->Post(
      Task("messages of a connection", [self = Self()] { self->DrainArrivals(); }));
}

void ConnectionImpl::Run(Arrival& arrival) {
  Result<void> done;
  if (arrival.handler != nullptr) {
    done = RunHandler(*arrival.handler, arrival.frame);
  } else if (arrival.completion) {
    done = RunCompletion(arrival.completion, arrival.reply);
  } else {
    try {
      arrival.task();
    } catch (const std::exception& error) {
      ZEZE_LOG_ERROR("{}: {} threw: {}", Describe(), arrival.task.name(), error.what());
    } catch (...) {
      ZEZE_LOG_ERROR("{}: {} threw", Describe(), arrival.task.name());
    }
  }
  if (!done.ok()) FailPeer(done.error());
  if (arrival.cost == 0) return;
  dispatched_.Remove(arrival.cost);
  if (paused_for_dispatch_ && dispatched_.Drained() && paused_for_dispatch_.exchange(false)) {
    loop_.Post(Task("read on", [self = Self()] { self->Resume(); }));
  }
}

Result<void> ConnectionImpl::RunCompletion(RawCompletion& completion, const RawReply& reply) {
  try {
    if (completion(reply)) return {};
    return Error(ErrorCode::kCorrupt, "an answer could not be decoded");
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("{}: the completion of a call threw: {}", Describe(), error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("{}: the completion of a call threw", Describe());
  }
  return {};
}

Result<void> ConnectionImpl::RunHandler(HandlerEntry& entry, const Frame& frame) {
  try {
    return entry.handler(*this, frame);
  } catch (const std::exception& error) {
    ZEZE_LOG_ERROR("{}: the handler of {} threw: {}", Describe(), entry.protocol->full_name,
                   error.what());
  } catch (...) {
    ZEZE_LOG_ERROR("{}: the handler of {} threw", Describe(), entry.protocol->full_name);
  }
  return {};
}

}  // namespace zeze::internal
