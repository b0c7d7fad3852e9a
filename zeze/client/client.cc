#include "zeze/client/client.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"

namespace zeze {

namespace {

using std::chrono::nanoseconds;
using Zeze::Builtin::LinkdAuth::RetryAfter;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;

}  // namespace

ServiceOptions DefaultClientServiceOptions() {
  return {.name = "Client",
          .handshake = HandshakeOptions{},
          .keep_alive = {.check_period = std::chrono::seconds(5),
                         .receive_timeout = std::chrono::seconds(60),
                         .send_timeout = std::chrono::seconds(20)},
          .read_always = true,  // Gateways stop reading from who does not read.
          .calls_max = 1024};
}

// One attempt after the other, each with a number: timers and answers of an older one are ignored.
// An attempt is a connector for one gateway; it ends when its time is over, or when the connection
// that it has made is lost.
class Client::Impl {
 public:
  Impl(IoThreads& io, ClientOptions options)
      : io_(io),
        options_(std::move(options)),
        door_(std::make_shared<Door>(*this)),
        service_(io, options_.service) {
    service_.OnOpen([this](const ConnectionPtr& connection) { OnOpen(connection); });
    service_.OnClose(
        [this](const ConnectionPtr& connection, const Error& why) { OnClose(*connection, why); });
    service_.Handle<ReportError>([this](const Message<ReportError>& message) {
      if (on_report_error_) on_report_error_(message.argument);
    });
    // Too many come at once; the gateway closes the connection.
    service_.Handle<RetryAfter>([this](const Message<RetryAfter>& message) {
      MutexLock lock(mutex_);
      const std::chrono::milliseconds wanted(std::max(message.argument.milliseconds, 0));
      at_least_ = std::min<nanoseconds>(wanted, options_.retry_after_max);
    });
    service_.HandleUnknown([](Connection& connection, const RawFrame& frame) -> Result<void> {
      ZEZE_LOG_DEBUG("{}: dropped a message of module {} protocol {}", connection.Describe(),
                     frame.module_id, frame.protocol_id);
      return {};
    });
  }

  Result<void> Start() {
    if (options_.gateways.empty()) {
      return Error(ErrorCode::kInvalidArgument, "a client needs the address of a gateway");
    }
    MutexLock lock(mutex_);
    ZEZE_CHECK(!started_);
    started_ = true;
    gateway_ = static_cast<std::size_t>(io_.Random() % options_.gateways.size());
    Attempt();
    return {};
  }

  void Stop() {
    door_->Close();
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    service_.Stop();
  }

  Result<void> AwaitReady(nanoseconds patience) {
    ZEZE_CHECK(!IoThreads::IsIoThread());
    const nanoseconds deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (ready_ == nullptr) {
      if (stopped_) return Error(ErrorCode::kUnavailable, "the client was stopped");
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline) && ready_ == nullptr) {
        return Error(ErrorCode::kUnavailable, fmt::format("not ready in time: {}", last_failure_));
      }
    }
    return {};
  }

  ConnectionPtr connection() const {
    MutexLock lock(mutex_);
    return ready_;
  }

  void Reconnect(nanoseconds at_least) {
    ConnectionPtr connection;
    {
      MutexLock lock(mutex_);
      at_least_ = at_least;
      connection = current_;
    }
    if (connection != nullptr) connection->Close("the client connects again");
  }

  Service& service() { return service_; }

  // Before Start.
  std::function<void(const BReportError&)> on_report_error_;
  std::function<void()> on_ready_ = [] {};
  std::function<void(const Error&)> on_lost_ = [](const Error&) {};
  std::function<void(const Error&)> on_attempt_failed_ = [](const Error&) {};

 private:
  // The door for timers and authentications, which may come when the client has ended.
  class Door {
   public:
    explicit Door(Impl& impl) : impl_(impl) {}

    // Closed when this returns, and everybody out.
    void Close() {
      MutexLock lock(mutex_);
      closed_ = true;
      while (inside_ != 0) empty_.Wait(mutex_);
    }
    void Run(const std::function<void(Impl& impl)>& action) {
      {
        MutexLock lock(mutex_);
        if (closed_) return;
        ++inside_;
      }
      action(impl_);
      MutexLock lock(mutex_);
      if (--inside_ == 0) empty_.NotifyAll();
    }

   private:
    Impl& impl_;
    Mutex mutex_;
    CondVar empty_;
    bool closed_ ZEZE_GUARDED_BY(mutex_) = false;
    int inside_ ZEZE_GUARDED_BY(mutex_) = 0;
  };

  void After(nanoseconds delay, void (Impl::*action)(std::uint64_t)) ZEZE_REQUIRES(mutex_) {
    io_.PostAfter(delay, Task("client", [door = door_, action, attempt = attempt_] {
                    door->Run([&](Impl& impl) { (impl.*action)(attempt); });
                  }));
  }

  void Attempt() ZEZE_REQUIRES(mutex_) {
    const ClientOptions::Gateway& gateway = options_.gateways[gateway_];
    connector_ = service_.Connect({.host = gateway.host,
                                   .port = gateway.port,
                                   .first_delay = options_.first_delay,
                                   .delay_max = options_.delay_max,
                                   .tls = options_.tls,
                                   .tls_name = options_.tls_name});
    After(options_.attempt_timeout, &Impl::OnAttemptTimeout);
  }

  void OnAttemptTimeout(std::uint64_t attempt) {
    const Error why(
        ErrorCode::kUnavailable,
        fmt::format("{} did not let the client in within {} ms", GatewayName(),
                    std::chrono::duration_cast<std::chrono::milliseconds>(options_.attempt_timeout)
                        .count()));
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || ready_ != nullptr || stopped_) return;
      EndAttempt(why);
      news_.emplace_back([this, why] { on_attempt_failed_(why); });
    }
    TellNews();
  }

  void OnDelayOver(std::uint64_t attempt) {
    MutexLock lock(mutex_);
    if (attempt == attempt_ && !stopped_) Attempt();
  }

  std::string GatewayName() const {
    MutexLock lock(mutex_);
    return connector_ == nullptr ? "no gateway" : connector_->name();
  }

  void EndAttempt(const Error& why) ZEZE_REQUIRES(mutex_) {
    ++attempt_;
    last_failure_ = why.message();
    current_ = nullptr;
    connector_->Stop();
    gateway_ = (gateway_ + 1) % options_.gateways.size();
    const nanoseconds half = std::max(delay_, options_.first_delay) / 2;
    delay_ = std::min(2 * std::max(delay_, options_.first_delay), options_.delay_max);
    const nanoseconds chance(io_.Random() % static_cast<std::uint64_t>(half.count() + 1));
    After(std::max(half + chance, std::exchange(at_least_, nanoseconds(0))), &Impl::OnDelayOver);
  }

  void OnOpen(const ConnectionPtr& connection) {
    std::uint64_t attempt = 0;
    {
      MutexLock lock(mutex_);
      if (stopped_ || connection->connector() != connector_) {
        return connection->Close("the client has given this gateway up");
      }
      current_ = connection;
      attempt = attempt_;
    }
    if (!options_.authenticate) {
      static const Result<void> kWelcome;  // GCC 12 takes a temporary for uninitialised.
      return OnAuthenticated(connection, attempt, kWelcome);
    }
    options_.authenticate(
        connection, [door = door_, connection, attempt](const Result<void>& outcome) {
          door->Run([&](Impl& impl) { impl.OnAuthenticated(connection, attempt, outcome); });
        });
  }

  void OnAuthenticated(const ConnectionPtr& connection, std::uint64_t attempt,
                       const Result<void>& outcome) {
    if (!outcome.ok()) return connection->Close(outcome.error().message());
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || stopped_ || current_ != connection) return;
      ready_ = connection;
      delay_ = nanoseconds(0);
      changed_.NotifyAll();
      news_.emplace_back([this] { on_ready_(); });
    }
    TellNews();
  }

  void OnClose(const Connection& connection, const Error& why) {
    {
      MutexLock lock(mutex_);
      if (current_.get() != &connection) return;
      const bool was_ready = ready_ != nullptr;
      ready_ = nullptr;
      current_ = nullptr;
      if (!stopped_) EndAttempt(why);
      news_.emplace_back([this, was_ready, why] {
        if (was_ready) {
          on_lost_(why);
        } else {
          on_attempt_failed_(why);
        }
      });
    }
    TellNews();
  }

  // One thread tells at a time, in the order in which things happened: a login may be answered on
  // any thread, and the connection be lost on its own.
  void TellNews() {
    MutexLock lock(mutex_);
    if (std::exchange(telling_, true)) return;
    while (!news_.empty()) {
      const std::function<void()> next = std::move(news_.front());
      news_.pop_front();
      mutex_.Unlock();
      next();
      mutex_.Lock();
    }
    telling_ = false;
  }

  IoThreads& io_;
  const ClientOptions options_;
  const std::shared_ptr<Door> door_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool started_ ZEZE_GUARDED_BY(mutex_) = false;
  bool stopped_ ZEZE_GUARDED_BY(mutex_) = false;
  std::size_t gateway_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::uint64_t attempt_ ZEZE_GUARDED_BY(mutex_) = 0;
  nanoseconds delay_ ZEZE_GUARDED_BY(mutex_){0};     // Before the attempt after the next failure.
  nanoseconds at_least_ ZEZE_GUARDED_BY(mutex_){0};  // But so long.
  std::string last_failure_ ZEZE_GUARDED_BY(mutex_) = "it was not started";
  std::shared_ptr<Connector> connector_ ZEZE_GUARDED_BY(mutex_);
  ConnectionPtr current_ ZEZE_GUARDED_BY(mutex_);                   // Open.
  ConnectionPtr ready_ ZEZE_GUARDED_BY(mutex_);                     // The same, once authenticated.
  std::deque<std::function<void()>> news_ ZEZE_GUARDED_BY(mutex_);  // To be told, in order.
  bool telling_ ZEZE_GUARDED_BY(mutex_) = false;

  Service service_;  // Ends first: its callbacks use the rest.
};

Client::Client(IoThreads& io, ClientOptions options)
    : impl_(std::make_unique<Impl>(io, std::move(options))) {}

Client::~Client() {
  Stop();
}

void Client::OnReportError(std::function<void(const BReportError&)> callback) {
  impl_->on_report_error_ = std::move(callback);
}

void Client::OnReady(std::function<void()> callback) {
  impl_->on_ready_ = std::move(callback);
}

void Client::OnLost(std::function<void(const Error&)> callback) {
  impl_->on_lost_ = std::move(callback);
}

void Client::OnAttemptFailed(std::function<void(const Error&)> callback) {
  impl_->on_attempt_failed_ = std::move(callback);
}

Result<void> Client::Start() {
  return impl_->Start();
}

void Client::Stop() {
  impl_->Stop();
}

Result<void> Client::AwaitReady(nanoseconds patience) {
  return impl_->AwaitReady(patience);
}

ConnectionPtr Client::connection() const {
  return impl_->connection();
}

void Client::Reconnect(nanoseconds at_least) {
  impl_->Reconnect(at_least);
}

Service& Client::service() {
  return impl_->service();
}

Error Client::NotReady() {
  return {ErrorCode::kUnavailable, "the client is not connected to a gateway"};
}

}  // namespace zeze
