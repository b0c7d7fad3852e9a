// ConnectorImpl: looks an address up, connects, and does so again when the connection is lost.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/basic_resolver.hpp>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connector.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/reconnect_policy.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/rpc.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

class ConnectorImpl final : public Connector,
                            private DeadlineOwner,
                            public std::enable_shared_from_this<ConnectorImpl> {
 public:
  ConnectorImpl(std::shared_ptr<Service::Impl> service, ConnectorOptions options, IoLoop& loop);
  ~ConnectorImpl() override;

  void Start();

  const std::string& name() const override { return name_; }
  ConnectionPtr connection() const override;
  Result<ConnectionPtr> WaitReady(std::chrono::nanoseconds patience) override;
  std::string progress() const override;
  void Stop() override;

  // From the connection, on the loop's thread.
  void SetProgress(std::string progress);
  void OnReady(ConnectionPtr connection);
  void OnClosed(std::string_view reason, bool heard);

 private:
  using Resolver =
      boost::asio::ip::basic_resolver<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

  // On the loop's thread.
  void Attempt();
  void ConnectNext();
  void OnConnected();
  void OnFailed(std::string_view reason);
  void OnDeadline(std::chrono::nanoseconds now) override;

  const std::shared_ptr<Service::Impl> service_;
  const ConnectorOptions options_;
  const std::string name_;
  const std::shared_ptr<const WebSocketConnectOptions> websocket_;  // Null: none.
  IoLoop& loop_;

  // Of the loop's thread.
  ReconnectPolicy policy_;
  std::optional<Resolver> resolver_;
  std::optional<TcpSocket> socket_;  // While connecting.
  std::vector<TcpEndpoint> endpoints_;
  std::size_t next_endpoint_ = 0;
  std::string failure_;
  std::shared_ptr<ConnectionImpl> current_;

  mutable Mutex mutex_;
  CondVar changed_;
  ConnectionPtr connection_ ZEZE_GUARDED_BY(mutex_);
  std::string last_failure_ ZEZE_GUARDED_BY(mutex_) = "not connected yet";
  std::string progress_ ZEZE_GUARDED_BY(mutex_) = "not started yet";
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  bool ended_ ZEZE_GUARDED_BY(mutex_) = false;  // There will be no further attempt.
};

}  // namespace zeze::internal
