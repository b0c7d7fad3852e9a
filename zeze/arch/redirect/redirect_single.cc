// Calls to one server: here, or through its connection.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/redirect/direct_links.h"
#include "zeze/arch/redirect/internal/redirect_executor.h"
#include "zeze/arch/redirect/internal/redirect_impl.h"
#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/arch/ring/hash_ring.h"
#include "zeze/base/clock.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/net/connection.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch {

namespace {

namespace direct = Zeze::Builtin::ProviderDirect;

using internal::RedirectAnswer;
using internal::RedirectCallOptions;
using internal::RedirectDone;
using internal::RedirectEntry;
using internal::RedirectLane;
using internal::RedirectTarget;
using internal::RedirectWhere;

}  // namespace

// A call from here that has not completed.
class Redirect::Impl::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<Impl> the_impl, RedirectWhere where, RedirectDone done)
      : impl(std::move(the_impl)), where_(where), done_(std::move(done)) {
    impl->calls_.Add();
  }
  ~Call() { impl->calls_.Done(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Only the first one counts. On a worker: the completion runs right here.
  void Finish(RedirectAnswer answer, bool on_worker) {
    if (finished_.exchange(true)) return;
    if (answer.outcome != RedirectOutcome::kDone) ++impl->failed_calls_;
    if (on_worker || where_ == RedirectWhere::kAnywhere) return Tell(answer);
    impl->application_.workers().Post(
        Task("completion of a redirected call",
             [self = shared_from_this(), answer = std::move(answer)] { self->Tell(answer); }));
  }
  void Fail(RedirectOutcome outcome, std::int64_t code) {
    Finish({.outcome = outcome, .code = code}, false);
  }

  const std::shared_ptr<Impl> impl;
  const RedirectEntry* entry = nullptr;
  std::int32_t server_id = -1;
  std::chrono::nanoseconds deadline{0};
  direct::BModuleRedirectArgument argument;

 private:
  // What a callback throws ends here: whoever ran the method has its own accounts to settle.
  void Tell(const RedirectAnswer& answer) {
    try {
      done_({.outcome = answer.outcome,
             .code = answer.code,
             .server_id = server_id,
             .result = answer.result});
    } catch (const std::exception& error) {
      ZEZE_LOG_ERROR("the callback of a redirected call has thrown: {}", error.what());
    } catch (...) {
      ZEZE_LOG_ERROR("the callback of a redirected call has thrown");
    }
  }

  const RedirectWhere where_;
  RedirectDone done_;
  std::atomic<bool> finished_ = false;
};

std::optional<std::int32_t> Redirect::Impl::OwnerOf(const std::string& service,
                                                    RedirectHash hash) const {
  const std::shared_ptr<const HashRing> ring = links_.Ring(service);
  if (ring == nullptr) return std::nullopt;
  const std::string* identity = hash.level == 0
                                    ? ring->Lookup(hash.hash)
                                    : ring->LookupGroup(HashGroup(hash.hash, hash.level));
  if (identity == nullptr) return std::nullopt;
  const std::int32_t server_id = ServerIdOf(*identity);
  if (server_id < 0) return std::nullopt;
  return server_id;
}

std::optional<std::int32_t> Redirect::Impl::Choose(const RedirectEntry& entry,
                                                   const RedirectTarget& target) const {
  switch (target.kind) {
    case RedirectTarget::Kind::kHash:
      return OwnerOf(entry.service, {target.value, target.level});
    case RedirectTarget::Kind::kServerOrOther:
      if (!IsHere(target.value) && links_.Find(target.value) == nullptr) {
        return ChooseOther(entry, target.value);
      }
      return target.value;
    case RedirectTarget::Kind::kServer:
      return target.value;
  }
  return std::nullopt;
}

std::optional<std::int32_t> Redirect::Impl::ChooseOther(const RedirectEntry& entry,
                                                        std::int32_t hash) const {
  const auto reachable = [this](std::int32_t id) {
    return IsHere(id) || links_.Find(id) != nullptr;
  };
  const std::optional<std::int32_t> owner = OwnerOf(entry.service, hash);
  if (!owner.has_value() || reachable(*owner)) return owner;
  // The ring may still name the one that is gone.
  for (const std::string& identity : links_.Ring(entry.service)->identities()) {
    const std::int32_t id = ServerIdOf(identity);
    if (id >= 0 && reachable(id)) return id;
  }
  return std::nullopt;
}

void Redirect::Impl::Begin(const RedirectEntry& entry, const RedirectTarget& target,
                           const RedirectCallOptions& options, std::string parameters,
                           RedirectWhere where, RedirectDone done) {
  const auto call = std::make_shared<Call>(shared_from_this(), where, std::move(done));
  if (stopped_) return call->Fail(RedirectOutcome::kNotDone, result_code::kClosed);
  const std::optional<std::int32_t> server_id = Choose(entry, target);
  if (!server_id.has_value()) {
    return call->Fail(RedirectOutcome::kNotDone, redirect_code::kNoProvider);
  }
  call->entry = &entry;
  call->server_id = *server_id;
  call->deadline = io_.clock().Now() + TimeoutOf(options);
  const bool by_hash = target.kind == RedirectTarget::Kind::kHash;
  std::int32_t key = options.key;
  if (key == 0 && by_hash) {
    const std::uint32_t group = target.level == 0 ? static_cast<std::uint32_t>(target.value)
                                                  : HashGroup(target.value, target.level);
    key = internal::RedirectKeyOf(entry.module_id, group);
  }
  call->argument = {.ModuleId = entry.module_id,
                    .HashCode = target.value,
                    .RedirectType = by_hash ? direct::BModuleRedirectArgument::RedirectTypeHash
                                            : direct::BModuleRedirectArgument::RedirectTypeToServer,
                    .MethodFullName = entry.full_name,
                    .Params = Binary(std::move(parameters)),
                    .ServiceNamePrefix = options_.name_prefix,
                    .Version = entry.version,
                    .Key = options.ordered ? key : 0,
                    .NoOneByOne = !options.ordered};
  if (IsHere(*server_id)) {
    ++local_calls_;
    RunHere(call);
  } else {
    ++remote_calls_;
    SendTo(call);
  }
}

namespace {

std::optional<RedirectLane> LaneOf(const direct::BModuleRedirectArgument& argument,
                                   std::int64_t connection_id) {
  if (argument.NoOneByOne) return std::nullopt;
  return argument.Key != 0 ? RedirectLane::OfKey(argument.Key)
                           : RedirectLane::OfConnection(connection_id);
}

}  // namespace

void Redirect::Impl::RunHere(const CallPtr& call) {
  const std::optional<RedirectLane> lane = LaneOf(call->argument, 0);
  executor_.Run({.entry = call->entry,
                 .hash = call->argument.HashCode,
                 .lane = lane,
                 .parameters = std::move(call->argument.Params.bytes),
                 .deadline = call->deadline,
                 .finish = [call](RedirectAnswer answer) {
                   // What did not run may be told on the thread that asked.
                   const bool ran = answer.outcome != RedirectOutcome::kNotDone;
                   call->Finish(std::move(answer), ran);
                 }});
}

void Redirect::Impl::SendTo(const CallPtr& call) {
  const std::size_t bytes = call->argument.Params.bytes.size();
  if (bytes > message_bytes_max_) {
    ZEZE_LOG_ERROR("the parameters of {} have {} bytes, at most {} can be sent",
                   call->entry->full_name, bytes, message_bytes_max_);
    return call->Fail(RedirectOutcome::kNotDone, redirect_code::kError);
  }
  const std::chrono::nanoseconds patience =
      std::min(options_.link_wait, call->deadline - io_.clock().Now());
  links_.WithConnection(
      call->server_id, patience, bytes + sizeof(Call), [call](Result<ConnectionPtr> connection) {
        if (connection.ok()) return call->impl->SendOn(call, *connection.value());
        switch (connection.error().code()) {
          case ErrorCode::kOverloaded:
            return call->Fail(RedirectOutcome::kNotDone, result_code::kBusy);
          case ErrorCode::kShuttingDown:
            return call->Fail(RedirectOutcome::kNotDone, result_code::kClosed);
          default:
            return call->Fail(RedirectOutcome::kNotDone, redirect_code::kLinkTimeout);
        }
      });
}

void Redirect::Impl::SendOn(const CallPtr& call, Connection& connection) {
  const std::chrono::nanoseconds left = call->deadline - io_.clock().Now();
  if (left.count() <= 0) {
    return call->Fail(RedirectOutcome::kNotDone, redirect_code::kRequestTimeout);
  }
  const Result<void> sent = connection.Call<direct::ModuleRedirect>(
      call->argument, {.timeout = left, .dispatch = Dispatch::kInline},
      [call](RpcReply<direct::ModuleRedirect> reply) {
        switch (reply.outcome) {
          case RpcOutcome::kAnswered:
            return call->Finish({.outcome = internal::OutcomeOf(reply.result_code),
                                 .code = reply.result_code,
                                 .result = std::move(reply.result.Params.bytes)},
                                false);
          case RpcOutcome::kTimedOut:
            return call->Fail(RedirectOutcome::kUnknown, redirect_code::kRequestTimeout);
          case RpcOutcome::kClosed:
            return call->Fail(RedirectOutcome::kUnknown, result_code::kClosed);
          case RpcOutcome::kBadAnswer:
            return call->Fail(RedirectOutcome::kUnknown, redirect_code::kError);
        }
      });
  if (sent.ok()) return;
  const bool full = sent.error().code() == ErrorCode::kOverloaded;
  call->Fail(RedirectOutcome::kNotDone, full ? result_code::kBusy : result_code::kErrorSendFail);
}

const RedirectEntry* Redirect::Impl::FindByName(const std::string& full_name, std::int32_t version,
                                                std::int64_t& code) {
  const auto found = by_name_.find(full_name);
  code = found == by_name_.end() || !found->second->is_here() ? redirect_code::kMethodNotFound
         : found->second->version != version                  ? redirect_code::kVersion
                                                              : result_code::kSuccess;
  if (code == result_code::kSuccess) return found->second;
  ++unknown_methods_;
  ZEZE_LOG_WARNING_EVERY(std::chrono::seconds(1),
                         "another server calls {} in version {}, which is not here", full_name,
                         version);
  return nullptr;
}

void Redirect::Impl::OnRedirect(Request<direct::ModuleRedirect> request) {
  direct::BModuleRedirectArgument& argument = request.argument();
  std::int64_t code = 0;
  const RedirectEntry* entry = FindByName(argument.MethodFullName, argument.Version, code);
  if (entry == nullptr) {
    (void)request.Answer(code, {.ModuleId = argument.ModuleId, .ServerId = links_.server_id()});
    return;
  }
  const std::optional<RedirectLane> lane = LaneOf(argument, request.connection()->id());
  std::string parameters = std::move(argument.Params.bytes);
  const std::int32_t hash = argument.HashCode;
  auto pending = std::make_shared<Request<direct::ModuleRedirect>>(std::move(request));
  executor_.Run({.entry = entry,
                 .hash = hash,
                 .lane = lane,
                 .parameters = std::move(parameters),
                 .finish = [self = shared_from_this(), pending](RedirectAnswer answer) {
                   // If the caller's connection is gone nobody is left to be told.
                   (void)pending->Answer(answer.code, {.ModuleId = pending->argument().ModuleId,
                                                       .ServerId = self->links_.server_id(),
                                                       .Params = Binary(std::move(answer.result))});
                 }});
}

}  // namespace zeze::arch
