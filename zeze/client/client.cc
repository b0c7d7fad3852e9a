#include "zeze/client/client.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/LinkdAuth.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Provider.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/client/internal/login_keeper.h"
#include "zeze/client/login_as.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"

namespace zeze {

namespace {

using std::chrono::nanoseconds;
using Zeze::Builtin::LinkdAuth::RetryAfter;
using Zeze::Builtin::LinkdBase::BReportError;
using Zeze::Builtin::LinkdBase::ReportError;
using Zeze::Builtin::Provider::BKick;

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
        keeper_(KeeperOptions()),
        service_(io, options_.service) {
    service_.OnOpen([this](const ConnectionPtr& connection) { OnOpen(connection); });
    service_.OnClose(
        [this](const ConnectionPtr& connection, const Error& why) { OnClose(*connection, why); });
    service_.Handle<ReportError>([this](const Message<ReportError>& message) {
      NoteKick(*message.connection, message.argument);
      if (message.argument.from == BReportError::FromLink &&
          message.argument.code == BReportError::CodeProviderBroken) {
        keeper_.OnServerLost(*message.connection);
      }
      if (on_report_error_) on_report_error_(message.argument);
    });
    // Too many come at once; the gateway closes the connection.
    service_.Handle<RetryAfter>([this](const Message<RetryAfter>& message) {
      MutexLock lock(mutex_);
      const std::chrono::milliseconds wanted(std::max(message.argument.milliseconds, 0));
      at_least_ = std::min<nanoseconds>(wanted, options_.retry_after_max);
    });
    const auto notified = [this](const auto& message) {
      keeper_.OnNotify(*message.connection, message.argument);
    };
    const HandlerOptions in_order{.dispatch = InOrder()};
    service_.Handle<Zeze::Builtin::Online::SReliableNotify>(notified, in_order);
    service_.Handle<Zeze::Builtin::Game::Online::SReliableNotify>(notified, in_order);
    if (options_.login) keeper_.LogIn(*options_.login, nullptr, nullptr);
    service_.ForwardOthers([](Connection& connection, const Frame& frame,
                              std::string_view) -> Result<void> {  // To nobody.
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
    if (started_) return Error(ErrorCode::kInvalidArgument, "a client can be started only once");
    started_ = true;
    failures_.resize(options_.gateways.size());
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
      if (away_) return DescribeKick();
      if (!SystemClock().WaitUntil(changed_, mutex_, deadline) && ready_ == nullptr) {
        return Error(ErrorCode::kUnavailable, "not ready in time: " + DescribeFailures());
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
      if (std::exchange(away_, false)) {
        kick_.reset();
        return After(at_least, &Impl::OnDelayOver);
      }
      at_least_ = at_least;
      connection = current_;
    }
    if (connection != nullptr) connection->Close("the client connects again");
  }

  Error NotReady() const {
    MutexLock lock(mutex_);
    if (away_) return DescribeKick();
    return {ErrorCode::kUnavailable, "the client is not connected to a gateway"};
  }

  Service& service() { return service_; }
  internal::LoginKeeper& keeper() { return keeper_; }

  // Before Start.
  std::function<void(const BReportError&)> on_report_error_;
  std::function<void(const BReportError&)> on_kicked_ = [](const BReportError&) {};
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

  // Notifies and the answers about them in their order, even if other messages need none.
  std::optional<Dispatch> InOrder() const {
    if (options_.service.dispatch != Dispatch::kParallel) return std::nullopt;
    return Dispatch::kOrdered;
  }

  internal::LoginKeeper::Options KeeperOptions() {
    return {.first_delay = options_.first_delay,
            .delay_max = options_.delay_max,
            .poll_period = options_.notify_poll_period,
            .dispatch = InOrder(),
            .after = [this](nanoseconds delay, std::function<void()> action) {
              io_.PostAfter(delay, Task("client login", [door = door_, action = std::move(action)] {
                              door->Run([&](Impl&) { action(); });
                            }));
            }};
  }

  void After(nanoseconds delay, void (Impl::*action)(std::uint64_t)) ZEZE_REQUIRES(mutex_) {
    io_.PostAfter(delay, Task("client", [door = door_, action, attempt = attempt_] {
                    door->Run([&](Impl& impl) { (impl.*action)(attempt); });
                  }));
  }

  void Attempt() ZEZE_REQUIRES(mutex_) {
    const ClientOptions::Gateway& gateway = options_.gateways[gateway_];
    connector_ = service_.Connect(
        {.host = gateway.host,
         .port = gateway.port,
         .reconnect = false,
         .tls = options_.tls,
         .tls_name = options_.tls_name,
         .on_attempt_failed = [door = door_, attempt = attempt_](const Error& why) {
           door->Run([&](Impl& impl) { impl.OnUnreachable(attempt, why.message()); });
         }});
    After(options_.attempt_timeout, &Impl::OnAttemptTimeout);
  }

  void OnAttemptTimeout(std::uint64_t attempt) {
    std::string progress;
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || ready_ != nullptr) return;
      progress = current_ != nullptr ? "connected, the authentication or the login has not ended"
                                     : connector_->progress();
    }
    OnUnreachable(
        attempt,
        fmt::format(
            "it did not let the client in within {} ms: {}",
            std::chrono::duration_cast<std::chrono::milliseconds>(options_.attempt_timeout).count(),
            progress));
  }

  // The gateway cannot be reached, or does not let the client in in time.
  void OnUnreachable(std::uint64_t attempt, const std::string& why) {
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || ready_ != nullptr || stopped_) return;
      const Error failure(ErrorCode::kUnavailable, fmt::format("{}: {}", connector_->name(), why));
      // The next one may be better; when all were tried, it is time for a rest.
      const bool others = ++unreachable_ < options_.gateways.size();
      EndAttempt(failure, others ? Next::kImmediately : Next::kLater);
      news_.emplace_back([this, failure] { on_attempt_failed_(failure); });
    }
    TellNews();
  }

  void OnDelayOver(std::uint64_t attempt) {
    MutexLock lock(mutex_);
    if (attempt == attempt_ && !stopped_) Attempt();
  }

  // The connection ends after that.
  void NoteKick(const Connection& connection, const BReportError& report) {
    if (report.from != BReportError::FromProvider) return;
    const bool comes_back = options_.reconnect_after_kick
                                ? options_.reconnect_after_kick(report)
                                : report.code != BKick::ErrorDuplicateLogin;
    MutexLock lock(mutex_);
    if (!comes_back && current_.get() == &connection) kick_ = report;
  }

  Error DescribeKick() const ZEZE_REQUIRES(mutex_) {
    return {ErrorCode::kUnavailable,
            fmt::format("the client was kicked with code {} ({}) and stays away until Reconnect",
                        kick_->code, kick_->desc)};
  }

  std::string DescribeFailures() const ZEZE_REQUIRES(mutex_) {
    std::string text;
    for (const std::string& failure : failures_) {
      if (failure.empty()) continue;
      if (!text.empty()) text += "; ";
      text += failure;
    }
    if (!text.empty()) return text;
    if (connector_ == nullptr) return "it was not started";
    return fmt::format("{}: {}", connector_->name(), connector_->progress());
  }

  enum class Next : std::uint8_t { kImmediately, kLater };
  void EndAttempt(const Error& why, Next next) ZEZE_REQUIRES(mutex_) {
    ++attempt_;
    failures_[gateway_] = why.message();
    current_ = nullptr;
    connector_->Stop();
    gateway_ = (gateway_ + 1) % options_.gateways.size();
    if (next == Next::kImmediately && at_least_.count() == 0) return Attempt();
    unreachable_ = 0;
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
      static const Result<void> welcome;  // GCC 12 takes a temporary for uninitialised.
      return OnAuthenticated(connection, attempt, welcome);
    }
    options_.authenticate(
        connection, [door = door_, connection, attempt](const Result<void>& outcome) {
          door->Run([&](Impl& impl) { impl.OnAuthenticated(connection, attempt, outcome); });
        });
  }

  void OnAuthenticated(const ConnectionPtr& connection, std::uint64_t attempt,
                       const Result<void>& outcome) {
    if (!outcome.ok()) return connection->Close(outcome.error().message());
    if (!keeper_.wanted()) return BecomeReady(connection, attempt);
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || stopped_ || current_ != connection) return;
    }
    keeper_.LogInOn(connection, [this, connection, attempt](const Result<LoginOutcome>& logged_in) {
      // Refused for good, and whoever asked for it knows.
      if (logged_in.ok() || !keeper_.wanted()) {
        return BecomeReady(connection, attempt);
      }
      connection->Close(logged_in.error().message());
    });
  }

  void BecomeReady(const ConnectionPtr& connection, std::uint64_t attempt) {
    {
      MutexLock lock(mutex_);
      if (attempt != attempt_ || stopped_ || current_ != connection) return;
      ready_ = connection;
      delay_ = nanoseconds(0);
      unreachable_ = 0;
      for (std::string& failure : failures_) failure.clear();
      changed_.NotifyAll();
      news_.emplace_back([this] { on_ready_(); });
    }
    keeper_.OnReady(connection);
    TellNews();
  }

  void OnClose(const Connection& connection, const Error& why) {
    keeper_.OnClosed(connection);
    {
      MutexLock lock(mutex_);
      if (current_.get() != &connection) return;
      const bool was_ready = ready_ != nullptr;
      const Error named(
          why.code(),
          fmt::format("{}: {}{}", connector_->name(), why.message(),
                      was_ready ? "" : ", before it let the client in: is this a gateway?"));
      ready_ = nullptr;
      current_ = nullptr;
      if (kick_) {
        ++attempt_;
        away_ = true;
        connector_->Stop();
        changed_.NotifyAll();
      } else if (!stopped_) {
        EndAttempt(named, Next::kLater);
      }
      news_.emplace_back([this, was_ready, why, named] {
        if (was_ready) {
          on_lost_(why);
        } else {
          on_attempt_failed_(named);
        }
      });
      if (kick_) news_.emplace_back([this, kick = *kick_] { on_kicked_(kick); });
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
  std::vector<std::string> failures_ ZEZE_GUARDED_BY(mutex_);  // The last one of each gateway.
  std::size_t unreachable_ ZEZE_GUARDED_BY(mutex_) = 0;        // Gateways in a row, without a rest.
  std::optional<BReportError> kick_ ZEZE_GUARDED_BY(mutex_);   // Of this connection, to stay away.
  bool away_ ZEZE_GUARDED_BY(mutex_) = false;                  // After that kick.
  std::shared_ptr<Connector> connector_ ZEZE_GUARDED_BY(mutex_);
  ConnectionPtr current_ ZEZE_GUARDED_BY(mutex_);                   // Open.
  ConnectionPtr ready_ ZEZE_GUARDED_BY(mutex_);                     // The same, once authenticated.
  std::deque<std::function<void()>> news_ ZEZE_GUARDED_BY(mutex_);  // To be told, in order.
  bool telling_ ZEZE_GUARDED_BY(mutex_) = false;

  internal::LoginKeeper keeper_;
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

void Client::OnKicked(std::function<void(const BReportError&)> callback) {
  impl_->on_kicked_ = std::move(callback);
}

void Client::HandleReliable(const ProtocolDescriptor& protocol,
                            std::function<Result<void>(std::string_view)> handler) {
  impl_->keeper().Handle(protocol, std::move(handler));
}

void Client::OnLogin(std::function<void(LoginOutcome)> callback) {
  impl_->keeper().OnLogin(std::move(callback));
}

void Client::LogIn(LoginAs as, LoginDone done) {
  impl_->keeper().LogIn(std::move(as), connection(), std::move(done));
}

void Client::LogOut() {
  impl_->keeper().LogOut(connection());
}

bool Client::logged_in() const {
  return impl_->keeper().logged_in();
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

Error Client::NotReady() const {
  return impl_->NotReady();
}

}  // namespace zeze
