// AcceptorImpl: accepts the connections of one listening socket and spreads them over the loops.

#pragma once

#include <memory>

#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/internal/io_loop.h"
#include "zeze/net/internal/service_impl.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/net_address.h"
#include "zeze/net/websocket_options.h"

namespace zeze::internal {

class AcceptorImpl final : public Acceptor, public std::enable_shared_from_this<AcceptorImpl> {
 public:
  static Result<std::shared_ptr<AcceptorImpl>> Open(std::shared_ptr<Service::Impl> service,
                                                    const AcceptorOptions& options, IoLoop& loop);

  AcceptorImpl(std::shared_ptr<Service::Impl> service, const AcceptorOptions& options, IoLoop& loop,
               int descriptor, const NetAddress& address);
  ~AcceptorImpl() override;

  void Start();

  const NetAddress& address() const override { return address_; }
  void Close() override;

 private:
  // On the loop's thread.
  void Wait();
  void AcceptSome();
  void OnAcceptError(int error);
  void Admit(int descriptor);

  const std::shared_ptr<Service::Impl> service_;
  const AcceptorOptions options_;
  const std::shared_ptr<const WebSocketAcceptOptions> websocket_;  // Null: none.
  IoLoop& loop_;
  const NetAddress address_;
  int descriptor_;  // Until Start.
  std::unique_ptr<TcpAcceptor> acceptor_;
};

}  // namespace zeze::internal
