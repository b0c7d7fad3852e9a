#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/connection_impl.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

std::unique_ptr<ConnectionImpl::WebSocket> ConnectionImpl::MakeWebSocket(
    Setup& setup, std::size_t frame_bytes_max) {
  const bool is_server = setup.websocket_accept != nullptr;
  if (!is_server && setup.websocket_connect == nullptr) return nullptr;
  return std::make_unique<WebSocket>(WebSocket{
      .encoder = WebSocketEncoder(!is_server),
      .decoder = WebSocketDecoder(
          {.expects_masks = is_server, .frame_bytes_max = frame_bytes_max + kFrameHeaderBytes}),
      .upgrade = std::make_unique<WebSocket::Upgrade>(
          WebSocket::Upgrade{.accept = std::move(setup.websocket_accept),
                             .connect = std::move(setup.websocket_connect)})});
}

Result<void> ConnectionImpl::StartUpgrade() {
  WebSocket::Upgrade& upgrade = *websocket_->upgrade;
  if (upgrade.connect == nullptr) return {};
  upgrade.key = NewUpgradeKey();
  Result<std::string> request = UpgradeRequest(*upgrade.connect, upgrade.key);
  if (!request.ok()) return request.error();
  return SendDuringHandshake(request.value());
}

Result<void> ConnectionImpl::ConsumeUpgrade(std::span<char> wire) {
  WebSocket::Upgrade& upgrade = *websocket_->upgrade;
  Result<bool> complete = upgrade.head.Take(wire);
  const bool is_server = upgrade.accept != nullptr;
  if (!complete.ok()) {
    return is_server ? RefuseUpgrade(RefuseLongHead()) : Result<void>(complete.error());
  }
  if (!complete.value()) return {};
  if (is_server) {
    const UpgradeAnswer answer = AnswerUpgrade(upgrade.head.text(), *upgrade.accept);
    if (!answer.refused.empty()) return RefuseUpgrade(answer);
    if (Result<void> sent = SendDuringHandshake(answer.text); !sent.ok()) return sent;
  } else {
    Result<void> checked = CheckUpgradeAnswer(upgrade.head.text(), upgrade.key);
    if (!checked.ok()) return checked;
  }
  websocket_->upgrade.reset();
  BecomeReady();
  return wire.empty() ? Result<void>() : ConsumeWebSocket(wire);
}

Result<void> ConnectionImpl::RefuseUpgrade(const UpgradeAnswer& answer) {
  ++service_->upgrades_refused;
  service_->LogPeerError(Describe(), answer.refused);
  deaf_ = true;
  Result<void> sent = SendDuringHandshake(answer.text);
  EndOutput(answer.refused, WebSocketClose::kNone, {});
  return sent;
}

Result<void> ConnectionImpl::ConsumeWebSocket(std::span<char> wire) {
  if (phase_ == Phase::kUpgrade) return ConsumeUpgrade(wire);
  Result<std::span<char>> bytes = websocket_->decoder.Decode(wire);
  if (!bytes.ok()) {
    if (websocket_->decoder.failure_code() == WebSocketClose::kTooBig) ++service_->oversize_frames;
    FailPeer(bytes.error(), websocket_->decoder.failure_code(), bytes.error().message());
    return {};
  }
  const std::span<char> found = bytes.value();
  if (!found.empty()) {
    Result<void> consumed = ConsumeFrames({found.data(), found.size()});
    if (!consumed.ok()) return consumed;
  }
  // A close comes behind what was sent before it: ConsumeBacklog comes here again.
  if (!backlog_) AnswerControl();
  return {};
}

void ConnectionImpl::AnswerControl() {
  WebSocketDecoder& decoder = websocket_->decoder;
  if (const std::optional<std::string> ping = decoder.TakePing(); ping.has_value()) {
    MutexLock lock(mutex_);
    if (open_) {
      // If the output is full the peer, which does not read, may do without. The turn's end
      // flushes.
      output_.Append([&](ByteWriter& out) {
        websocket_->encoder.WriteControl(WebSocketOpcode::kPong, *ping, out);
      });
    }
  }
  if (!decoder.closed()) return;
  PassOverInput();
  const WebSocketClose code = decoder.close_code();
  EndOutput(fmt::format("the peer closed the connection (WebSocket code {})",
                        static_cast<unsigned>(code)),
            code, {});
}

void ConnectionImpl::SendPing() {
  FlushBy by = FlushBy::kNobody;
  {
    MutexLock lock(mutex_);
    if (!open_) return;
    output_.Append([&](ByteWriter& out) {
      websocket_->encoder.WriteControl(WebSocketOpcode::kPing, {}, out);
    });
    by = PrepareFlush();
  }
  RunFlush(by);
}

// Of a connection that is closed at once: as far as the socket takes it now.
void ConnectionImpl::SayGoodbye() {
  if (websocket_ == nullptr || !was_ready_ || !wire_.empty()) return;
  {
    MutexLock lock(mutex_);
    if (close_when_sent_) return;  // It has been said.
  }
  ByteWriter close;
  websocket_->encoder.WriteClose(WebSocketClose::kGoingAway, {}, close);
  if (!SendDuringHandshake(close.view()).ok()) return;
  static_cast<void>(::send(socket_.get(), wire_.data(), wire_.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace zeze::internal
