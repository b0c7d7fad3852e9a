// Redirect::Impl: what a Redirect has inside. Its functions are in redirect.cc (setup),
// redirect_single.cc (calls to one server) and redirect_all.cc (calls to all groups).

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/app/application.h"
#include "zeze/arch/redirect/direct_links.h"
#include "zeze/arch/redirect/internal/redirect_executor.h"
#include "zeze/arch/redirect/internal/redirect_gather.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/mutex.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

class Redirect::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Application& application, IoThreads& io, registry::RegistryAgent& agent,
       RedirectOptions options);

  void AddHandlers();
  void AddMethod(std::int32_t module_id, std::string_view module_name, Module* module,
                 const internal::RedirectDescriptor& method);
  void AddEncoded(EncodedRedirectMethod method);
  Result<void> Start();
  Result<void> AwaitReady(std::chrono::nanoseconds patience);
  void Stop();

  // Of a method that was added; otherwise the program is wrong.
  const internal::RedirectEntry& Find(const void* method) const;
  const internal::RedirectEntry& Find(std::string_view full_name) const;
  std::optional<std::int32_t> OwnerOf(const std::string& service, RedirectHash hash) const;

  void Begin(const internal::RedirectEntry& entry, const internal::RedirectTarget& target,
             const internal::RedirectCallOptions& options, std::string parameters,
             internal::RedirectWhere where, internal::RedirectDone done);
  void BeginAll(const internal::RedirectEntry& entry, std::uint32_t level,
                const internal::RedirectCallOptions& options, const std::string& parameters,
                internal::RedirectWhere where, internal::RedirectAllDone done);

  std::chrono::nanoseconds TimeoutOf(const internal::RedirectCallOptions& options) const {
    return options.timeout.count() > 0 ? options.timeout : options_.timeout;
  }

  IoThreads& io() { return io_; }
  DirectLinks& links() { return links_; }
  const RedirectOptions& options() const { return options_; }
  Statistics GetStatistics() const;

 private:
  class Call;
  std::set<std::string> OfferedHere() const;
  const internal::RedirectEntry* AddEntry(internal::RedirectEntry entry);
  using CallPtr = std::shared_ptr<Call>;

  bool IsHere(std::int32_t server_id) const { return server_id == links_.server_id(); }
  std::optional<std::int32_t> Choose(const internal::RedirectEntry& entry,
                                     const internal::RedirectTarget& target) const;
  std::optional<std::int32_t> ChooseOther(const internal::RedirectEntry& entry,
                                          std::int32_t hash) const;

  void RunHere(const CallPtr& call);
  void SendTo(const CallPtr& call);
  void SendOn(const CallPtr& call, Connection& connection);

  void OnRedirect(Request<Zeze::Builtin::ProviderDirect::ModuleRedirect> request);
  void OnRedirectAll(
      const Message<Zeze::Builtin::ProviderDirect::ModuleRedirectAllRequest>& message);
  void OnRedirectAllResult(
      const Message<Zeze::Builtin::ProviderDirect::ModuleRedirectAllResult>& message);
  void OnLost(std::int64_t connection_id);

  // Null, with the code why, if this server cannot run it.
  const internal::RedirectEntry* FindByName(const std::string& full_name, std::int32_t version,
                                            std::int64_t& code);

  void SendAll(const internal::RedirectEntry& entry, std::int64_t session, std::uint32_t level,
               const std::string& parameters, std::chrono::nanoseconds deadline,
               const std::shared_ptr<internal::RedirectGather>& gather);
  void RunAllHere(const internal::RedirectEntry& entry, const std::vector<std::uint32_t>& groups,
                  const std::string& parameters, std::chrono::nanoseconds deadline,
                  const std::shared_ptr<internal::RedirectGather>& gather);
  void Forget(std::int64_t session);
  std::vector<std::shared_ptr<internal::RedirectGather>> Gathers() const;

  Application& application_;
  IoThreads& io_;
  registry::RegistryAgent& agent_;
  const RedirectOptions options_;
  const std::size_t message_bytes_max_;

  // Constant after Start.
  std::vector<std::unique_ptr<internal::RedirectEntry>> entries_;
  std::map<const void*, const internal::RedirectEntry*> by_method_;
  std::map<std::string, const internal::RedirectEntry*, std::less<>> by_name_;
  std::string two_methods_;  // A name that two methods have.
  bool started_ = false;

  DirectLinks links_;
  internal::RedirectExecutor executor_;

  WaitGroup calls_;  // Whose completion has not run.
  std::atomic<bool> stopped_ = false;

  mutable Mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<internal::RedirectGather>> gathers_
      ZEZE_GUARDED_BY(mutex_);
  std::int64_t last_session_ ZEZE_GUARDED_BY(mutex_) = 0;

  std::atomic<std::uint64_t> local_calls_ = 0;
  std::atomic<std::uint64_t> remote_calls_ = 0;
  std::atomic<std::uint64_t> failed_calls_ = 0;
  std::atomic<std::uint64_t> unknown_methods_ = 0;
  std::atomic<std::uint64_t> ignored_results_ = 0;
};

}  // namespace zeze::arch
