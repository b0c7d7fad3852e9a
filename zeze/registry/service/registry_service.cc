#include "zeze/registry/service/registry_service.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connection.h"
#include "zeze/net/datagram_socket.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/offline_book.h"
#include "zeze/registry/registry_output.h"
#include "zeze/registry/registry_server.h"
#include "zeze/registry/service/internal/registry_writer.h"
#include "zeze/registry/service/registry_store.h"
#include "zeze/registry/service/wire.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/storage.h"

namespace zeze::registry {

namespace {

constexpr std::chrono::nanoseconds kTickPeriod = std::chrono::milliseconds(50);

// Agents refuse frames above 2 MiB unless told otherwise.
constexpr std::size_t kEditBytesMax = std::size_t{1} << 20;

// Requests for ids that wait for the disk, of all names.
constexpr std::size_t kIdRequestsMax = 100'000;

// To whoever cannot prove its address, no answer is sent that is larger than its request by more.
constexpr std::size_t kAmplificationMax = 3;

std::int64_t CodeOf(const Result<void>& result) {
  if (result.ok()) return 0;
  return result.error().code() == ErrorCode::kOverloaded ? wire::kTooMany : wire::kNotAllowed;
}

std::size_t BytesOf(const ServiceInfo& info) {
  return 32 + info.name.size() + info.identity.size() + info.passive_ip.size() +
         info.extra_info.size();
}

// A datagram whose requests are answered together.
struct DatagramCall {
  DatagramSocket* socket = nullptr;
  NetAddress from;
  std::size_t bytes = 0;
  std::size_t unanswered = 0;
  ByteWriter answers;
};
struct DatagramWaiting {
  std::shared_ptr<DatagramCall> call;
  std::int64_t session_id = 0;
};
using IdWaiting = std::variant<Request<wire::AllocateId>, DatagramWaiting>;

}  // namespace

ServiceOptions DefaultRegistryServiceOptions() {
  return {.name = "Zeze.Services.ServiceManager",
          .handshake = HandshakeOptions{},
          .output_bytes_max = std::size_t{64} << 20};
}

class RegistryService::Impl final : public RegistryOutput {
 public:
  static ServiceOptions Inside(ServiceOptions options) {
    options.inside = true;
    return options;
  }

  Impl(IoThreads& io, Storage& storage, Executor& blocking, RegistryServiceOptions options)
      : io_(io),
        storage_(storage),
        blocking_(blocking),
        options_(std::move(options)),
        machine_(options_.machine, *this, [&io] { return io.Random(); }),
        service_(io, Inside(options_.service)) {
    ZEZE_CHECK(io.thread_count() == 1);
    service_.OnOpen([this](const ConnectionPtr& connection) { Opened(connection); });
    service_.OnClose(
        [this](const ConnectionPtr& connection, const Error& why) { Closed(*connection, why); });
    HandleServices();
    HandleNotices();
    service_.Handle<wire::AllocateId>([this](Request<wire::AllocateId> request) {
      const std::string name = request.argument().name;
      const std::int64_t count = request.argument().count;
      Allocate(IdKind::k64, name, count, std::move(request));
    });
  }

  Result<void> Start();
  void Stop();

  NetAddress address() const { return acceptors_.front()->address(); }
  Status GetStatus();

  // --- RegistryOutput ---

  void SendEdit(SessionId to, const ServiceEdit& edit) override;
  void SendLoad(SessionId to, const ServerLoad& load) override {
    // One that does not fit is followed by the next one.
    if (Session* session = Find(to)) {
      (void)session->connection->Send<wire::SetServerLoad>({.load = load});
    }
  }
  void SendOfflineNotify(SessionId to, std::uint64_t ask, const OfflineNotice& notice) override;
  void GrantIds(std::uint64_t request, const IdBlock& block) override {
    AnswerIds(request, 0, block);
  }
  void RefuseIds(std::uint64_t request, const std::string& why) override {
    ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1), "a request for ids is refused: {}", why);
    AnswerIds(request, wire::kNotPossible, {});
  }
  void SaveService(const ServiceInfo& info, SessionId owner) override {
    writer_->Put(RegistryStore::ServiceRow(info.key()), RegistryStore::ServiceValue(info, owner));
  }
  void EraseService(const ServiceKey& key) override {
    writer_->Put(RegistryStore::ServiceRow(key), std::nullopt);
  }
  void SaveOffline(const OfflineNotice& notice, SessionId owner) override {
    writer_->Put(RegistryStore::OfflineRow(notice.server_id, notice.notify_id),
                 RegistryStore::OfflineValue(notice, owner));
  }
  void EraseOffline(std::int32_t server_id, std::string_view notify_id) override {
    writer_->Put(RegistryStore::OfflineRow(server_id, notify_id), std::nullopt);
  }
  void SaveIdLimit(IdKind kind, const std::string& name, const Id128& limit) override {
    writer_->Put(RegistryStore::IdRow(kind, name), RegistryStore::IdValue(kind, limit));
    writer_->Sync(
        [this, kind, name, limit](bool saved) { machine_.ids(kind).OnSaved(name, limit, saved); });
  }

 private:
  struct Session {
    ConnectionPtr connection;
    std::chrono::nanoseconds keep_alive_due{};
  };

  RegistryServer::Time Now() const { return io_.clock().Now(); }
  SessionId IdOf(const Connection& connection) const { return session_base_ + connection.id(); }
  Session* Find(SessionId id) {
    const auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : &at->second;
  }
  // Runs on the network thread and waits for it.
  void OnLoop(const std::function<void()>& what) {
    WaitGroup done(1);
    io_.Post([&what, &done] {
      what();
      done.Done();
    });
    done.Wait();
  }
  Result<void> Load();
  Result<void> Listen();
  void Opened(const ConnectionPtr& connection);
  void Closed(const Connection& connection, const Error& why);
  // Later: the machine may be in the middle of something.
  void CloseLater(const ConnectionPtr& connection, const std::string& why) {
    io_.Post([connection, why] { connection->Close(why); });
  }
  void SendPart(Session& session, const ServiceEdit& edit);
  void HandleServices();
  void HandleNotices();
  void Allocate(IdKind kind, const std::string& name, std::int64_t count, IdWaiting waiting);
  void AnswerIds(std::uint64_t request, std::int64_t code, const IdBlock& block);
  void AnswerDatagram(const DatagramWaiting& waiting, std::int64_t code,
                      const IdBlock& block) const;
  void OnDatagram(DatagramSocket& socket, std::string_view bytes, const NetAddress& from);
  void Tick();
  void KeepAlive();

  IoThreads& io_;
  Storage& storage_;
  Executor& blocking_;
  const RegistryServiceOptions options_;
  std::unique_ptr<RegistryStore> store_;
  std::unique_ptr<RegistryWriter> writer_;
  RegistryServer machine_;
  SessionId session_base_ = 0;
  std::map<SessionId, Session> sessions_;
  std::map<std::uint64_t, IdWaiting> id_requests_;
  std::uint64_t last_id_request_ = 0;
  bool stopping_ = false;  // Network thread only: nothing happens to the machine any more.
  bool started_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Network thread only.
  std::shared_ptr<DatagramSocket> datagrams_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  Service service_;  // Last: its callbacks use the rest.
};

// --- start and stop ---

Result<void> RegistryService::Impl::Load() {
  Result<std::unique_ptr<RegistryStore>> store = RegistryStore::Open(storage_);
  if (!store.ok()) return store.error();
  store_ = std::move(store).value();
  Result<RegistryState> state = store_->Load();
  if (!state.ok()) return state.error();
  RegistryStore::Rows raised;
  for (const auto& [name, limit] : options_.raise_ids) {
    auto& limits = state.value().id_limits;
    const auto at =
        std::find_if(limits.begin(), limits.end(),
                     [&wanted_name = name](const auto& one) { return one.first == wanted_name; });
    const Id128 wanted{.high = 0, .low = limit};
    if (at != limits.end() && at->second >= wanted) continue;
    raised[RegistryStore::IdRow(IdKind::k64, name)] = RegistryStore::IdValue(IdKind::k64, wanted);
    limits.emplace_back(name, wanted);
  }
  if (!raised.empty()) {
    if (Result<void> written = store_->Write(raised, true); !written.ok()) return written;
  }
  writer_ = std::make_unique<RegistryWriter>(io_, blocking_, *store_);
  session_base_ = state.value().LastSession();
  OnLoop([this, &state] { machine_.Restore(Now(), state.value()); });
  if (!state.value().services.empty()) {
    ZEZE_LOG_INFO(
        "{} services of before stay listed for {} s, until their servers are back",
        state.value().services.size(),
        std::chrono::duration_cast<std::chrono::seconds>(options_.machine.recovery).count());
  }
  return {};
}

Result<void> RegistryService::Impl::Listen() {
  for (const AcceptorOptions& one : options_.acceptors) {
    Result<std::shared_ptr<Acceptor>> listening = service_.Listen(one);
    if (!listening.ok()) return listening.error();
    acceptors_.push_back(std::move(listening).value());
  }
  const bool tls = std::any_of(options_.acceptors.begin(), options_.acceptors.end(),
                               [](const AcceptorOptions& one) { return one.tls != nullptr; });
  if (!options_.datagrams || tls || options_.acceptors.empty()) return {};
  Result<std::shared_ptr<DatagramSocket>> opened =
      DatagramSocket::Open(io_, {.ip = address().IpText(), .port = address().port()},
                           [this](DatagramSocket& socket, std::string_view bytes,
                                  const NetAddress& from) { OnDatagram(socket, bytes, from); });
  if (!opened.ok()) return opened.error();
  datagrams_ = std::move(opened).value();
  return {};
}

Result<void> RegistryService::Impl::Start() {
  if (Result<void> loaded = Load(); !loaded.ok()) return loaded;
  started_ = true;
  if (Result<void> listening = Listen(); !listening.ok()) {
    Stop();
    return listening;
  }
  io_.Post([this] { Tick(); });
  return {};
}

void RegistryService::Impl::Stop() {
  if (!std::exchange(started_, false)) return;
  // First: the end of the connections is ours, not that of the servers.
  OnLoop([this] { stopping_ = true; });
  if (datagrams_ != nullptr) datagrams_->Close();
  service_.Stop();
  writer_->Stop();
  OnLoop([this] {
    *alive_ = false;
    id_requests_.clear();
  });
}

RegistryService::Status RegistryService::Impl::GetStatus() {
  Status status;
  OnLoop([this, &status] {
    status = {.sessions = sessions_.size(),
              .services = machine_.service_count(),
              .offline_notices = machine_.offline_count()};
  });
  return status;
}

void RegistryService::Impl::Opened(const ConnectionPtr& connection) {
  Session& session = sessions_[IdOf(*connection)];
  session.connection = connection;
  const std::int64_t period = options_.keep_alive_period.count();
  if (period > 0) {
    const auto share = io_.Random() % static_cast<std::uint64_t>(period);
    session.keep_alive_due = Now() + std::chrono::nanoseconds(static_cast<std::int64_t>(share));
  }
}

void RegistryService::Impl::Closed(const Connection& connection, const Error& why) {
  const SessionId session = IdOf(connection);
  sessions_.erase(session);
  if (stopping_) return;
  ZEZE_LOG_INFO("{} has closed: {}", connection.Describe(), why.message());
  machine_.OnClosed(Now(), session);
}

void RegistryService::Impl::Tick() {
  if (stopping_) return;
  machine_.Tick(Now());
  KeepAlive();
  io_.PostAfter(kTickPeriod, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void RegistryService::Impl::KeepAlive() {
  if (options_.keep_alive_period.count() <= 0) return;
  for (auto& [id, session] : sessions_) {
    if (session.keep_alive_due > Now()) continue;
    session.keep_alive_due = Now() + options_.keep_alive_period;
    const ConnectionPtr connection = session.connection;
    Result<void> sent = connection->Call<wire::KeepAlive>(
        {}, {.timeout = options_.keep_alive_timeout}, [connection](const auto& reply) {
          if (reply.outcome == RpcOutcome::kTimedOut) connection->Close("it gave no sign of life");
        });
    if (!sent.ok()) CloseLater(connection, sent.error().message());
  }
}

// --- messages ---

void RegistryService::Impl::SendEdit(SessionId to, const ServiceEdit& edit) {
  Session* session = Find(to);
  if (session == nullptr) return;
  ServiceEdit part;
  std::size_t bytes = 0;
  const auto add = [&](const ServiceInfo& info, std::vector<ServiceInfo>& list) {
    if (bytes > 0 && bytes + BytesOf(info) > kEditBytesMax) {
      SendPart(*session, part);
      part = {};
      bytes = 0;
    }
    bytes += BytesOf(info);
    list.push_back(info);
  };
  for (const ServiceInfo& info : edit.remove) add(info, part.remove);
  for (const ServiceInfo& info : edit.add) add(info, part.add);
  SendPart(*session, part);
}

void RegistryService::Impl::SendPart(Session& session, const ServiceEdit& edit) {
  const ConnectionPtr connection = session.connection;
  Result<void> sent = connection->Call<wire::EditService>(
      {.edit = edit}, {.timeout = options_.edit_timeout}, [connection](const auto& reply) {
        if (reply.outcome == RpcOutcome::kTimedOut) connection->Close("it confirmed no edit");
      });
  // It has missed something: it must ask for the whole list.
  if (!sent.ok()) CloseLater(connection, sent.error().message());
}

void RegistryService::Impl::SendOfflineNotify(SessionId to, std::uint64_t ask,
                                              const OfflineNotice& notice) {
  const auto answered = [this, ask](OfflineAnswer answer) {
    if (!stopping_) machine_.OnOfflineAnswer(Now(), ask, answer);
  };
  ZEZE_LOG_INFO("server {} is gone: session {} is asked to take over its {} (serial {})",
                notice.server_id, to, notice.notify_id, notice.serial);
  Session* session = Find(to);
  const bool sent = session != nullptr &&
                    session->connection
                        ->Call<wire::OfflineNotify>(
                            {.notice = notice}, {.timeout = options_.offline_timeout},
                            [answered](const auto& reply) {
                              if (reply.outcome != RpcOutcome::kAnswered)
                                return answered(OfflineAnswer::kLost);
                              answered(reply.result_code == wire::kTaken ? OfflineAnswer::kTaken
                                                                         : OfflineAnswer::kRefused);
                            })
                        .ok();
  if (sent) return;
  io_.Post([answered, alive = alive_] {
    if (*alive) answered(OfflineAnswer::kLost);
  });
}

void RegistryService::Impl::HandleServices() {
  service_.Handle<wire::EditService>([this](Request<wire::EditService> request) {
    const SessionId session = IdOf(*request.connection());
    const Result<void> edited = machine_.OnEdit(session, request.argument().edit);
    if (!edited.ok()) {
      ZEZE_LOG_WARNING("{}: {}", request.connection()->Describe(), edited.error().message());
    }
    (void)request.AnswerCode(CodeOf(edited));
  });
  service_.Handle<wire::Subscribe>([this](Request<wire::Subscribe> request) {
    const SessionId session = IdOf(*request.connection());
    const std::vector<Subscription>& wanted = request.argument().subscriptions;
    Result<ServicesByName> services = machine_.OnSubscribe(session, wanted);
    if (!services.ok()) {
      ZEZE_LOG_WARNING("{}: {}", request.connection()->Describe(), services.error().message());
      (void)request.AnswerCode(CodeOf(services.error()));
      return;
    }
    (void)request.Answer({.services = std::move(services).value()});
    machine_.OnSubscribeAnswered(session, wanted);
  });
  service_.Handle<wire::Unsubscribe>([this](Request<wire::Unsubscribe> request) {
    machine_.OnUnsubscribe(IdOf(*request.connection()), request.argument().names);
    (void)request.Answer({});
  });
  service_.Handle<wire::SetServerLoad>([this](const Message<wire::SetServerLoad>& message) {
    machine_.OnLoad(message.argument.load);
  });
  service_.Handle<wire::KeepAlive>(
      [](Request<wire::KeepAlive> request) { (void)request.Answer({}); });
}

void RegistryService::Impl::HandleNotices() {
  // Answered when it is saved: from then on it survives.
  const auto answer_when_saved = [this](auto request, const Result<void>& done) {
    if (!done.ok()) {
      ZEZE_LOG_WARNING("{}: {}", request.connection()->Describe(), done.error().message());
      (void)request.AnswerCode(CodeOf(done));
      return;
    }
    writer_->Sync([waiting = std::make_shared<decltype(request)>(std::move(request))](bool saved) {
      (void)waiting->AnswerCode(saved ? 0 : wire::kNotPossible);
    });
  };
  service_.Handle<wire::OfflineRegister>(
      [this, answer_when_saved](Request<wire::OfflineRegister> request) {
        const Result<void> done = machine_.OnOfflineRegister(Now(), IdOf(*request.connection()),
                                                             request.argument().notice);
        answer_when_saved(std::move(request), done);
      });
  service_.Handle<wire::AnnounceServers>(
      [this, answer_when_saved](Request<wire::AnnounceServers> request) {
        const Result<void> done = machine_.OnAnnounce(Now(), IdOf(*request.connection()),
                                                      request.argument().announcement);
        answer_when_saved(std::move(request), done);
      });
  service_.Handle<wire::NormalClose>([this, answer_when_saved](Request<wire::NormalClose> request) {
    machine_.OnNormalClose(IdOf(*request.connection()));
    answer_when_saved(std::move(request), {});
  });
}

// --- ids ---

void RegistryService::Impl::Allocate(IdKind kind, const std::string& name, std::int64_t count,
                                     IdWaiting waiting) {
  const std::uint64_t request = ++last_id_request_;
  const bool full = id_requests_.size() >= kIdRequestsMax;
  id_requests_.emplace(request, std::move(waiting));
  if (full) return RefuseIds(request, "too many requests wait for ids");
  machine_.ids(kind).Allocate(request, name, count);
}

void RegistryService::Impl::AnswerIds(std::uint64_t request, std::int64_t code,
                                      const IdBlock& block) {
  auto waiting = id_requests_.extract(request);
  if (waiting.empty()) return;
  if (auto* call = std::get_if<Request<wire::AllocateId>>(&waiting.mapped())) {
    (void)call->Answer(code, {.start = static_cast<std::int64_t>(block.start.low),
                              .count = static_cast<std::int64_t>(block.count)});
    return;
  }
  AnswerDatagram(std::get<DatagramWaiting>(waiting.mapped()), code, block);
}

void RegistryService::Impl::AnswerDatagram(const DatagramWaiting& waiting, std::int64_t code,
                                           const IdBlock& block) const {
  DatagramCall& call = *waiting.call;
  wire::EncodeDatagramAnswer(
      {.session_id = waiting.session_id,
       .result_code = code,
       .result = {.start = block.start, .count = static_cast<std::int64_t>(block.count)}},
      call.answers);
  if (--call.unanswered > 0 || stopping_) return;
  if (call.answers.size() > call.bytes * kAmplificationMax) return;
  call.socket->Send(call.answers.view(), call.from);
}

void RegistryService::Impl::OnDatagram(DatagramSocket& socket, std::string_view bytes,
                                       const NetAddress& from) {
  if (stopping_) return;
  std::vector<wire::DatagramRequest> requests;
  ByteReader in(bytes);
  while (in.ok() && in.remaining() > 0) requests.push_back(wire::DecodeDatagramRequest(in));
  if (!in.ok() || requests.empty()) return;
  auto call = std::make_shared<DatagramCall>();
  call->socket = &socket;
  call->from = from;
  call->bytes = bytes.size();
  call->unanswered = requests.size();
  for (const wire::DatagramRequest& one : requests) {
    Allocate(IdKind::k128, one.argument.name, one.argument.count,
             DatagramWaiting{.call = call, .session_id = one.session_id});
  }
}

// --- the service ---

RegistryService::RegistryService(IoThreads& io, Storage& storage, Executor& blocking,
                                 RegistryServiceOptions options)
    : impl_(std::make_unique<Impl>(io, storage, blocking, std::move(options))) {}

RegistryService::~RegistryService() {
  Stop();
}

Result<void> RegistryService::Start() {
  return impl_->Start();
}

void RegistryService::Stop() {
  impl_->Stop();
}

NetAddress RegistryService::address() const {
  return impl_->address();
}

RegistryService::Status RegistryService::GetStatus() const {
  return impl_->GetStatus();
}

}  // namespace zeze::registry
