// Redirect: calls of modules' methods that run on the server where they belong.
//
//   Redirect redirect(application, io, agent, {.name_prefix = "Game.Server.Module#"});
//   redirect.AddModule(rank);                   // Declares its methods: see redirect_method.h.
//   if (auto started = redirect.Start(); !started.ok()) return Fail(started.error());
//   ...
//   redirect.ToHash<&ModuleRank::Update>({hash, 128}, role).Send();           // Nobody waits.
//   redirect.ToHash<&ModuleRank::Update>({hash, 128}, role).AfterCommit(tx);  // If tx commits.
//   redirect.ToHash<&ModuleRank::Update>({hash, 128}, role).Nested(tx);       // Here, inside tx.
//   redirect.ToServer<&ModuleChat::Count>(9).Then([](RedirectReply<BCount> reply) { ... });
//   auto top = redirect.ToAll<&ModuleRank::Top>(128, 100).Wait();             // Of all groups.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/arch/redirect/direct_links.h"
#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/arch/redirect/redirect_codec.h"
#include "zeze/arch/redirect/redirect_method.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

struct RedirectOptions {
  // Modules are registered as prefix + module id. It ends in '#'. As in ProviderOptions.
  std::string name_prefix = "Server.Module#";
  // a.b.c.d, 16 bits each; only a is compared.
  std::int64_t app_version = 0;

  // The connections to other servers. Server id and version are filled in.
  DirectLinksOptions direct = {};

  // Tell the service manager which modules are here. False if a Provider on the same agent does.
  bool register_modules = true;

  // Of calls that say nothing else; waiting for the server included.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  // How long a call waits for a server that is not connected.
  std::chrono::nanoseconds link_wait = std::chrono::seconds(10);

  // Calls that wait or run at this server, and the bytes of their parameters: more are refused with
  // result_code::kBusy.
  std::size_t executions_max = 65536;
  std::size_t execution_bytes_max = 256 << 20;

  // Of calls to all: groups, calls at a time, bytes of all results of one. What is beyond the last
  // gets kBusy.
  std::uint32_t level_max = 65536;
  std::size_t all_calls_max = 1024;
  std::size_t all_result_bytes_max = 64 << 20;

  // How long Stop waits for what others have asked for.
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);
};

// A hash, and how many groups the data is cut into. Without a level the hash itself is placed on
// the ring. With one: the group of the hash, see HashGroup; all calls of a group run one at a time.
struct RedirectHash {
  RedirectHash(std::int32_t the_hash, std::uint32_t the_level = 0)  // NOLINT: implicit
      : hash(the_hash), level(the_level) {}

  std::int32_t hash;
  std::uint32_t level;
};

// For the framework's own components, which bring parameters and results as bytes.
struct EncodedRedirectMethod {
  std::int32_t module_id = 0;
  std::string full_name = {};  // "Full.Name:method", as other implementations call it.
  std::int32_t version = 0;
  // In a transaction, perhaps more than once. Whoever cannot decode the parameters returns
  // redirect_code::kError.
  std::function<std::int64_t(Transaction& tx, std::int32_t hash, std::string_view parameters,
                             std::string& result)>
      run = nullptr;
};

class Redirect;

// A call that has not begun: say how it shall go, last of all one of Send, Then, Wait, AfterCommit
// and Nested. In a procedure only the last two: it may run again or roll back.
template <auto Method>
class [[nodiscard]] RedirectCall {
  using Signature = internal::RedirectSignature<Method>;

 public:
  using Values = typename Signature::Values;
  using Reply = RedirectReply<typename Signature::Result>;
  // On a worker. It must not wait for other calls.
  using Callback = std::function<void(Reply reply)>;

  RedirectCall(Redirect& redirect, const internal::RedirectTarget& target, Values values);

  RedirectCall&& Within(std::chrono::nanoseconds timeout) && {
    options_.timeout = timeout;
    return std::move(*this);
  }
  // Calls with equal keys run one after the other at the server, in the order of their sender.
  // Default: to a hash, one at a time for each group (without a level: for each hash); to a server,
  // one at a time for each calling server.
  RedirectCall&& OrderedBy(std::int32_t key) && {
    options_.key = key == 0 ? 1 : key;  // 0 says on the wire that there is none.
    return std::move(*this);
  }
  RedirectCall&& Unordered() && {
    options_.ordered = false;
    return std::move(*this);
  }

  // At most once; whether it arrived nobody learns.
  void Send() &&;
  void Then(Callback callback) &&;
  // Not on network threads, nor in a procedure, nor in a redirected method: what it waits for may
  // wait for it.
  Reply Wait() &&;

  // Begins when the transaction has committed; never if it rolls back.
  void AfterCommit(Transaction& tx) &&;
  void AfterCommit(Transaction& tx, Callback callback) &&;

  // Runs here and now as a nested procedure, whichever server the hash belongs to: for the few
  // calls that must be atomic with their caller. The records come by cache-sync. A code that is not
  // 0 has undone what the method did, and nothing else.
  Reply Nested(Transaction& tx) &&;

 private:
  Redirect* redirect_;
  internal::RedirectTarget target_;
  Values values_;
  internal::RedirectCallOptions options_ = {};
};

// The same, to all groups.
template <auto Method>
class [[nodiscard]] RedirectAllCall {
  using Signature = internal::RedirectSignature<Method>;
  using Result = typename Signature::Result;

 public:
  using Values = typename Signature::Values;
  using GroupReply = RedirectGroupReply<Result>;
  using Reply = RedirectAllReply<Result>;
  using GroupCallback = std::function<void(const GroupReply& reply)>;
  using Callback = std::function<void(Reply reply)>;

  RedirectAllCall(Redirect& redirect, std::uint32_t level, Values values);

  RedirectAllCall&& Within(std::chrono::nanoseconds timeout) && {
    options_.timeout = timeout;
    return std::move(*this);
  }
  // For each group's result as it comes, one at a time, before the last callback; on a worker.
  RedirectAllCall&& ForEach(GroupCallback callback) && {
    each_ = std::move(callback);
    return std::move(*this);
  }

  void Send() &&;
  // Once all groups have answered or failed, at the latest when the time is over.
  void Then(Callback callback) &&;
  Reply Wait() &&;
  void AfterCommit(Transaction& tx, Callback callback = nullptr) &&;

 private:
  void Begin(Callback callback, internal::RedirectWhere where) &&;

  Redirect* redirect_;
  std::uint32_t level_;
  Values values_;
  internal::RedirectCallOptions options_ = {};
  GroupCallback each_;
};

// Guarantees:
//   - A method runs at most once for each call; exactly once for one that is answered with kDone.
//   - Calls of one thread to one server arrive in their order, and with equal keys run in it.
//   - A method's transaction has committed before its answer is sent.
//   - A callback is called exactly once: at the latest when the call's time is over (a call that
//     runs here: when it has run).
//
// Modules are added before Start. Thread-safe otherwise. Stop it before the application, the agent
// and the network threads.
class Redirect {
 public:
  // All outlive this. The agent is started by the caller.
  Redirect(Application& application, IoThreads& io, registry::RegistryAgent& agent,
           RedirectOptions options);
  ~Redirect();  // Calls Stop.
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

  // Offers the module's methods here, and can call them anywhere. The module outlives this.
  template <typename M>
  void AddModule(M& module) {
    static_assert(internal::HasRedirects<M>,
                  "this module declares no redirected methods: give it a public `using Redirects = "
                  "zeze::arch::RedirectMethods<...>`");
    AddAll(module.id(), module.name(), &module, static_cast<typename M::Redirects*>(nullptr));
  }

  // Only calls them: the module is not on this server.
  template <typename M>
  void AddRemoteModule() {
    static_assert(internal::HasRedirects<M>,
                  "this module declares no redirected methods: give it a public `using Redirects = "
                  "zeze::arch::RedirectMethods<...>`");
    AddAll(M::kModuleId, M::kFullName, nullptr, static_cast<typename M::Redirects*>(nullptr));
  }

  void AddEncoded(EncodedRedirectMethod method);

  // Listens, registers the modules, finds the other servers and connects. Errors: the port is in
  // use; two methods have one name.
  Result<void> Start();

  // Until this server is listed, if it offers something, and all others are connected.
  Result<void> AwaitReady(std::chrono::nanoseconds patience);

  // Is not chosen any more, ends what others have asked for, then leaves; calls from here fail at
  // once with kClosed. Not from callbacks.
  void Stop();

  template <auto Method, typename... Args>
  RedirectCall<Method> ToHash(RedirectHash hash, Args&&... args) {
    return Make<Method>(
        {.kind = internal::RedirectTarget::Kind::kHash, .value = hash.hash, .level = hash.level},
        std::forward<Args>(args)...);
  }

  // Waits for a server that is not connected: RedirectOptions::link_wait.
  template <auto Method, typename... Args>
  RedirectCall<Method> ToServer(std::int32_t server_id, Args&&... args) {
    return Make<Method>({.kind = internal::RedirectTarget::Kind::kServer, .value = server_id},
                        std::forward<Args>(args)...);
  }

  // If the server is not connected: by hash to another one, at once.
  template <auto Method, typename... Args>
  RedirectCall<Method> ToServerOrOther(std::int32_t server_id, Args&&... args) {
    return Make<Method>(
        {.kind = internal::RedirectTarget::Kind::kServerOrOther, .value = server_id},
        std::forward<Args>(args)...);
  }

  // Once for each group 0, 1 ... level - 1, each at the server that owns it.
  template <auto Method, typename... Args>
  RedirectAllCall<Method> ToAll(std::uint32_t level, Args&&... args) {
    internal::CheckDeclared<Method>();
    return {*this, level, MakeValues<Method>(std::forward<Args>(args)...)};
  }

  // By name, for components; the callback may be empty. Ordered as calls with types are.
  using EncodedCallback = std::function<void(const RedirectReply<Binary>& reply)>;
  void ToHashEncoded(std::string_view full_name, RedirectHash hash, std::string parameters,
                     EncodedCallback callback = nullptr) {
    CallEncoded(
        full_name,
        {.kind = internal::RedirectTarget::Kind::kHash, .value = hash.hash, .level = hash.level},
        std::move(parameters), std::move(callback));
  }
  void ToServerEncoded(std::string_view full_name, std::int32_t server_id, std::string parameters,
                       EncodedCallback callback = nullptr) {
    CallEncoded(full_name, {.kind = internal::RedirectTarget::Kind::kServer, .value = server_id},
                std::move(parameters), std::move(callback));
  }

  // Which server a hash belongs to; none if nobody offers the module.
  std::optional<std::int32_t> OwnerOf(std::int32_t module_id, RedirectHash hash) const;
  std::optional<std::int32_t> OwnerOf(const Module& module, RedirectHash hash) const {
    return OwnerOf(module.id(), hash);
  }
  bool IsLocal(const Module& module, RedirectHash hash) const {
    return OwnerOf(module, hash) == server_id();
  }

  std::int32_t server_id() const;
  // For the framework's other messages between servers, and ip() and port() for ProviderOptions.
  DirectLinks& links();

  struct Statistics {
    std::uint64_t local_calls = 0;
    std::uint64_t remote_calls = 0;
    std::uint64_t failed_calls = 0;     // From here: all that were not kDone.
    std::uint64_t executions = 0;       // Here, whoever asked.
    std::uint64_t refused_busy = 0;     // At a limit.
    std::uint64_t bad_parameters = 0;   // Could not be decoded.
    std::uint64_t unknown_methods = 0;  // Or of another version.
    std::uint64_t ignored_results = 0;  // Of calls to all: late, double or nonsense.
    std::size_t executions_waiting = 0;
    std::size_t all_calls = 0;  // Under way.
  };
  Statistics GetStatistics() const;

  // Of this layer's templates.
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  template <auto Method, typename... Args>
  static auto MakeValues(Args&&... args) {
    using Values = typename internal::RedirectSignature<Method>::Values;
    static_assert(std::tuple_size_v<Values> == sizeof...(Args),
                  "the call does not have as many arguments as the method has parameters (those "
                  "behind the hash)");
    static_assert(std::is_constructible_v<Values, Args&&...> || sizeof...(Args) == 0,
                  "an argument cannot be converted to the method's parameter");
    return Values(std::forward<Args>(args)...);
  }
  template <auto Method, typename... Args>
  RedirectCall<Method> Make(const internal::RedirectTarget& target, Args&&... args) {
    internal::CheckDeclared<Method>();
    return {*this, target, MakeValues<Method>(std::forward<Args>(args)...)};
  }
  template <typename... M>
  void AddAll(std::int32_t module_id, std::string_view module_name, Module* module,
              RedirectMethods<M...>*) {
    (AddMethod(module_id, module_name, module, internal::DescribeRedirect<M>()), ...);
  }
  void AddMethod(std::int32_t module_id, std::string_view module_name, Module* module,
                 const internal::RedirectDescriptor& method);
  void CallEncoded(std::string_view full_name, const internal::RedirectTarget& target,
                   std::string parameters, EncodedCallback callback);

  const std::shared_ptr<Impl> impl_;
};

}  // namespace zeze::arch

#include "zeze/arch/redirect/internal/redirect_inl.h"  // IWYU pragma: keep
