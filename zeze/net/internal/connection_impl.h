// ConnectionImpl: a connection over a TCP socket.
//
// Bytes go through, from the socket: proxy header, TLS, WebSocket or codecs of the handshake,
// frames; and out in the opposite order. In four files: connection_impl.cc (life),
// connection_input.cc, connection_output.cc, connection_websocket.cc.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/arrival_queue.h"
#include "zeze/net/internal/codec_chain.h"
#include "zeze/net/internal/handshake_machine.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/keep_alive.h"
#include "zeze/net/internal/output_queue.h"
#include "zeze/net/internal/rpc_table.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/socket_poller.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/internal/tls_stream.h"
#include "zeze/net/internal/websocket_codec.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"
#include "zeze/net/websocket_options.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

class ConnectorImpl;

class ConnectionImpl final : public Connection,
                             private DeadlineOwner,
                             public FlushTarget,
                             public SocketOwner {
 public:
  struct Setup {
    std::shared_ptr<Service::Impl> service;
    IoLoop& loop;
    SocketDescriptor socket;  // Connected.
    std::shared_ptr<ConnectorImpl> connector = nullptr;
    TlsContextPtr tls = nullptr;
    std::string tls_name = {};
    bool proxy_protocol = false;
    // At most one of them: the connection is a WebSocket.
    std::shared_ptr<const WebSocketAcceptOptions> websocket_accept = nullptr;
    std::shared_ptr<const WebSocketConnectOptions> websocket_connect = nullptr;
  };

  explicit ConnectionImpl(Setup setup);
  ~ConnectionImpl() override;

  // Once, on the loop's thread, after Service::Impl::Add.
  void Start();

  std::string TlsBinding() const override;
  bool IsOpen() const override;
  void Close(std::string_view reason) override;
  void CloseWhenSent(std::string_view reason) override;
  std::size_t QueuedBytesApprox() const override { return output_.bytes(); }
  void set_frame_bytes_max(std::size_t bytes_max) override {
    frame_bytes_max_.store(bytes_max, std::memory_order_relaxed);
  }

  Result<void> SendOneWay(const ProtocolDescriptor& protocol, std::int64_t result_code,
                          PayloadWriter payload) override;
  Result<void> SendRequest(const ProtocolDescriptor& protocol, const CallOptions& options,
                           PayloadWriter payload, RawCompletion completion) override;
  Result<void> SendAnswer(const ProtocolDescriptor& protocol, std::int64_t session_id,
                          std::int64_t result_code, PayloadWriter payload) override;
  Result<void> SendAnswerSoon(const ProtocolDescriptor& protocol, std::int64_t session_id,
                              std::int64_t result_code, PayloadWriter payload) override;
  Result<void> SendFrames(std::string_view frames) override;

 private:
  enum class Phase : std::uint8_t { kProxy, kTls, kUpgrade, kHandshake, kReady };
  enum class FlushBy : std::uint8_t { kNobody, kLoop, kCaller };

  // Of connections that are WebSockets.
  struct WebSocket {
    WebSocketEncoder encoder;
    WebSocketDecoder decoder;  // Of the loop's thread.

    // Until the connection is ready.
    struct Upgrade {
      std::shared_ptr<const WebSocketAcceptOptions> accept;
      std::shared_ptr<const WebSocketConnectOptions> connect;
      std::string key = {};  // Of a client's request.
      HttpHeadReader head = {};
    };
    std::unique_ptr<Upgrade> upgrade;
  };

  // --- Life (connection_impl.cc). On the loop's thread unless said otherwise. ---

  std::shared_ptr<ConnectionImpl> Self();  // Any thread.
  void SetSocketOptions();
  Result<void> EnterPhase(Phase phase);
  std::string DescribePhase() const;
  void TellProgress();
  void BecomeReady();
  void FinishClose();
  void LeaveService();
  void HangUp();
  // Any thread.
  void FailPeer(const Error& error, WebSocketClose code = WebSocketClose::kProtocolError,
                std::string_view text = {});
  void PassOverInput();
  void EndOutput(std::string_view reason, WebSocketClose code, std::string_view text);
  void OnDeadline(std::chrono::nanoseconds now) override;
  void CheckKeepAlive(std::chrono::nanoseconds now);
  void UpdateDeadline();
  const ServiceOptions& options() const { return service_->options; }

  // --- Input (connection_input.cc). On the loop's thread unless said otherwise. ---

  void OnSocket(std::uint32_t news) override;
  void StartReading();
  void OnReadable();
  void BeginTurn();
  void EndTurn(Result<void> consumed);
  void Resume();
  bool Stopped() const;
  bool PauseForOutput();
  Result<void> Consume(std::span<char> wire);
  Result<void> ConsumeProxyHeader(std::span<char> wire);
  Result<void> ConsumeTls(std::string_view wire);
  Result<void> ConsumeWire(std::span<char> wire);
  Result<void> ConsumePlain(std::string_view bytes);
  Result<void> ConsumeHandshake(std::string_view bytes);
  Result<void> ConsumeFrames(std::string_view bytes);
  Result<void> ConsumeBacklog();
  Result<void> ApplyHandshakeStep(HandshakeStep step, std::string rest);
  Result<void> UnusualFrame(const RawFrame& raw);
  // Of a service with a forwarder: neither a handler nor a call of this side wants it.
  bool IsForOthers(const Frame& frame);
  // `batch_bytes` are left of this turn's input, the frame among them.
  Result<void> OnMessage(const Frame& frame, std::size_t batch_bytes);
  Result<void> OnAnswer(const Frame& frame, std::size_t batch_bytes);
  Result<void> OnPeerMessage(const Frame& frame);
  HandlerEntry* FindEntry(std::int64_t type_id);
  Result<void> AnswerWithoutHandler(const HandlerEntry& entry, const Frame& frame);
  void KeepBytes(Arrival& arrival, std::size_t batch_bytes);
  Result<void> EndCall(RpcTable::Call call, const RawReply& reply, std::size_t batch_bytes);
  void Deliver(Dispatch dispatch, Arrival arrival, Executor* executor);

  // On the executor.
  void DrainArrivals();
  void Run(Arrival& arrival);

  // Any thread.
  Result<void> RunHandler(HandlerEntry& entry, const Frame& frame);
  Result<void> RunCompletion(RawCompletion& completion, const RawReply& reply);

  // --- WebSocket (connection_websocket.cc). On the loop's thread. ---

  static std::unique_ptr<WebSocket> MakeWebSocket(Setup& setup, std::size_t frame_bytes_max);
  Result<void> StartUpgrade();
  Result<void> ConsumeWebSocket(std::span<char> wire);
  Result<void> ConsumeUpgrade(std::span<char> wire);
  Result<void> RefuseUpgrade(const UpgradeAnswer& answer);
  void AnswerControl();
  void SendPing();
  void SayGoodbye();

  // --- Output (connection_output.cc). ---

  // Any thread.
  Error ClosedError() const ZEZE_REQUIRES(mutex_);
  Error OverloadedError(const ProtocolDescriptor* protocol) const;
  template <typename Write>
  Result<void> Enqueue(const ProtocolDescriptor* protocol, Write&& write) ZEZE_REQUIRES(mutex_);
  FlushBy PrepareFlush() ZEZE_REQUIRES(mutex_);
  Result<void> Answer(const ProtocolDescriptor& protocol, std::int64_t session_id,
                      std::int64_t result_code, PayloadWriter payload, bool may_wait);
  void RunFlush(FlushBy by);

  // The loop's thread, or with send_from_caller any.
  void OnFlush() override;
  void OnLateFlush() override;
  void Flush();
  bool FlushOnce();
  Result<void> WriteOut(const ByteWriter* batch);
  Result<void> WriteWire();

  // The loop's thread, before the connection is ready.
  Result<void> SendDuringHandshake(std::string_view bytes);
  void WaitWritable();
  void OnWritable();

  const std::shared_ptr<Service::Impl> service_;
  IoLoop& loop_;
  const std::shared_ptr<ConnectorImpl> connector_impl_;
  const bool may_flush_from_caller_;

  // Of the loop's thread.
  SocketDescriptor socket_;
  SocketPoller::Ticket watch_ = 0;  // 0: not watched.
  Phase phase_ = Phase::kProxy;
  bool proxy_protocol_ = false;
  bool was_ready_ = false;
  bool heard_ = false;  // The peer has sent a message that was understood.
  bool hung_up_ = false;
  std::atomic<bool> peer_failed_ = false;
  std::atomic<bool> explained_ = false;  // The reason of the failure needs no addition.
  bool finished_ = false;
  std::atomic<int> holds_service_ = 2;  // The last event, and the loop that posts it.
  bool reading_ = false;                // Input is wanted.
  bool readable_ = false;        // There may be unread input, and no further news of it comes.
  bool read_on_posted_ = false;  // And the loop will come back to it.
  bool ending_ = false;          // The end of the input may stand behind it.
  bool write_waiting_ = false;
  bool backlog_ = false;  // There are frames in input_ that have not been looked at.
  std::unique_ptr<TlsStream> tls_;
  const std::unique_ptr<WebSocket> websocket_;  // Null: none.
  std::optional<ServerHandshake> server_handshake_;
  std::optional<ClientHandshake> client_handshake_;
  std::unique_ptr<InputCodec> input_codec_;  // Null: none. Large, and most connections have none.
  std::string input_;                        // The beginning of a frame, or a backlog.
  std::string undecoded_;                    // Received while there was a backlog.
  HandlerEntry* last_entry_ = nullptr;  // Of the last message: the next is often of the same type.
  std::shared_ptr<std::string> kept_bytes_;  // Of the messages of this turn that others handle.
  std::chrono::nanoseconds handshake_deadline_{0};
  std::chrono::nanoseconds stall_deadline_{0};
  std::chrono::nanoseconds last_received_{0};
  std::optional<KeepAlive> keep_alive_;

  ArrivalQueue arrivals_;
  DispatchedCount dispatched_;
  std::atomic<bool> paused_for_dispatch_ = false;

  // Of whoever has set flushing_.
  std::unique_ptr<OutputCodec> output_codec_;
  std::string wire_;  // Encoded, from wire_begin_ on not yet written.
  std::size_t wire_begin_ = 0;

  mutable Mutex mutex_;
  bool open_ ZEZE_GUARDED_BY(mutex_) = false;
  OutputQueue output_;  // Guarded by mutex_, except bytes().
  RpcTable calls_ ZEZE_GUARDED_BY(mutex_);
  std::string close_reason_ ZEZE_GUARDED_BY(mutex_);
  bool close_when_sent_ ZEZE_GUARDED_BY(mutex_) = false;
  bool close_when_flushed_ ZEZE_GUARDED_BY(mutex_) = false;
  bool flush_requested_ ZEZE_GUARDED_BY(mutex_) = false;
  bool may_wait_ ZEZE_GUARDED_BY(mutex_) = false;  // All pending output, for the loop's late flush.
  bool late_flush_ ZEZE_GUARDED_BY(mutex_) = false;  // The loop was asked for one.
  bool flushing_ ZEZE_GUARDED_BY(mutex_) = false;
  bool write_blocked_ ZEZE_GUARDED_BY(mutex_) = false;
  bool paused_for_output_ ZEZE_GUARDED_BY(mutex_) = false;             // FlushOnce resumes.
  std::chrono::nanoseconds call_deadline_ ZEZE_GUARDED_BY(mutex_){0};  // That the loop knows of.

  std::atomic<bool> closing_ = false;
  std::atomic<std::size_t> frame_bytes_max_;
  std::atomic<bool> deaf_ = false;  // What still comes is passed over.
  std::atomic<std::chrono::nanoseconds::rep> last_sent_ = 0;
};

}  // namespace zeze::internal
