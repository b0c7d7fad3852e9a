// What the socket tests of this layer share: services that must listen, connect and echo.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"

namespace zeze::testing {

// Far beyond what anything takes: a test that waits for it has failed.
inline constexpr std::chrono::seconds kPatience{20};

// Blocks until something has happened as often as expected.
class Counter {
 public:
  void Add() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  bool WaitFor(int count) {
    const auto deadline = SystemClock().Now() + kPatience;
    MutexLock lock(mutex_);
    while (count_ < count) {
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ZEZE_GUARDED_BY(mutex_) = 0;
};

inline void HandleEcho(Service& service) {
  service.Handle<Echo>([](Request<Echo> request) { (void)request.Answer(request.argument()); });
}

inline NetAddress MustListen(Service& service, AcceptorOptions options = {}) {
  if (options.ip.empty()) options.ip = "127.0.0.1";
  Result<std::shared_ptr<Acceptor>> acceptor = service.Listen(options);
  EXPECT_TRUE(acceptor.ok()) << acceptor.error().message();
  return acceptor.value()->address();
}

inline Result<ConnectionPtr> TryConnect(Service& service, const NetAddress& address,
                                        ConnectorOptions options = {}) {
  options.host = address.IpText();
  options.port = address.port();
  return service.Connect(options)->WaitReady(kPatience);
}

inline ConnectionPtr MustConnect(Service& service, const NetAddress& address,
                                 const ConnectorOptions& options = {}) {
  Result<ConnectionPtr> connection = TryConnect(service, address, options);
  EXPECT_TRUE(connection.ok()) << connection.error().message();
  return connection.ok() ? connection.value() : nullptr;
}

// What came back: the text, "code n", or why nothing could be sent.
inline std::string MustEcho(Connection& connection, const std::string& text) {
  Result<RpcReply<Echo>> reply = connection.CallAndWait<Echo>({text});
  if (!reply.ok()) return reply.error().message();
  return reply.value().ok() ? reply.value().result.text
                            : "code " + std::to_string(reply.value().result_code);
}

}  // namespace zeze::testing
