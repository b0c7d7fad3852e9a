// Calls to all groups, wherever they are.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Zeze/Builtin/ProviderDirect.h"
#include "zeze/arch/redirect/internal/redirect_all_batch.h"
#include "zeze/arch/redirect/internal/redirect_executor.h"
#include "zeze/arch/redirect/internal/redirect_gather.h"
#include "zeze/arch/redirect/internal/redirect_impl.h"
#include "zeze/arch/redirect/internal/redirect_raw.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result_code.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch {

namespace {

namespace direct = Zeze::Builtin::ProviderDirect;

using internal::RedirectAllDone;
using internal::RedirectAnswer;
using internal::RedirectCallOptions;
using internal::RedirectEntry;
using internal::RedirectGather;
using internal::RedirectLane;
using internal::RedirectWhere;

}  // namespace

void Redirect::Impl::BeginAll(const RedirectEntry& entry, std::uint32_t level,
                              const RedirectCallOptions& options, const std::string& parameters,
                              RedirectWhere where, RedirectAllDone done) {
  Executor* const executor = where == RedirectWhere::kWorker ? &application_.workers() : nullptr;
  std::int64_t refused = result_code::kSuccess;
  std::int64_t session = 0;
  std::shared_ptr<RedirectGather> gather;
  if (stopped_) {
    refused = result_code::kClosed;
  } else if (level == 0 || level > options_.level_max || parameters.size() > message_bytes_max_) {
    ZEZE_LOG_ERROR(
        "{} cannot be called in {} groups with {} bytes of parameters: at most {} and {}",
        entry.full_name, level, parameters.size(), options_.level_max, message_bytes_max_);
    refused = redirect_code::kError;
  } else {
    MutexLock lock(mutex_);
    if (gathers_.size() >= options_.all_calls_max) {
      refused = result_code::kBusy;
    } else {
      session = ++last_session_;
      // Ends with the callback, also if that throws or is dropped.
      calls_.Add();
      std::shared_ptr<Impl> ended(this,
                                  [self = shared_from_this()](Impl*) { self->calls_.Done(); });
      auto told = [ended = std::move(ended), session,
                   tell = std::move(done.done)](std::int64_t code) mutable {
        const std::shared_ptr<Impl> self = std::move(ended);
        self->Forget(session);
        tell(code);
      };
      gather = std::make_shared<RedirectGather>(
          level, options_.all_result_bytes_max, executor,
          RedirectAllDone{.each = std::move(done.each), .done = std::move(told)});
      gathers_[session] = gather;
    }
  }
  if (refused != result_code::kSuccess) {
    ++failed_calls_;
    if (executor == nullptr) return done.done(refused);
    return executor->Post(
        Task("a call to all groups that did not begin",
             [done = std::move(done.done), refused]() mutable { done(refused); }));
  }
  const std::chrono::nanoseconds timeout = TimeoutOf(options);
  io_.PostAfter(
      timeout, Task("a call to all groups has taken too long", [late = std::weak_ptr(gather)] {
        const auto unfinished = late.lock();
        if (unfinished == nullptr) return;
        unfinished->FailAll(
            {.outcome = RedirectOutcome::kUnknown, .code = redirect_code::kRequestTimeout});
      }));
  SendAll(entry, session, level, parameters, io_.clock().Now() + timeout, gather);
  // Stop may have looked before this call was there.
  if (stopped_) {
    gather->FailAll({.outcome = RedirectOutcome::kUnknown, .code = result_code::kClosed});
  }
}

void Redirect::Impl::SendAll(const RedirectEntry& entry, std::int64_t session, std::uint32_t level,
                             const std::string& parameters, std::chrono::nanoseconds deadline,
                             const std::shared_ptr<RedirectGather>& gather) {
  constexpr std::int32_t kNowhere = -1;
  std::map<std::int32_t, std::vector<std::uint32_t>> places;
  for (std::uint32_t group = 0; group < level; ++group) {
    // A group is a hash that falls into itself.
    const auto owner = OwnerOf(entry.service, {static_cast<std::int32_t>(group), level});
    places[owner.value_or(kNowhere)].push_back(group);
  }
  for (const auto& [server_id, groups] : places) {
    const ConnectionPtr connection = IsHere(server_id) ? nullptr : links_.Find(server_id);
    const std::int64_t connection_id = connection == nullptr ? 0 : connection->id();
    for (const std::uint32_t group : groups) gather->Expect(group, server_id, connection_id);
    if (IsHere(server_id)) {
      RunAllHere(entry, groups, parameters, deadline, gather);
      continue;
    }
    std::int64_t failure = result_code::kProviderNotExist;
    if (connection != nullptr) {
      direct::BModuleRedirectAllRequest request{
          .ModuleId = entry.module_id,
          .HashCodeConcurrentLevel = static_cast<std::int32_t>(level),
          .SourceProvider = links_.server_id(),
          .SessionId = session,
          .MethodFullName = entry.full_name,
          .Params = Binary(parameters),
          .ServiceNamePrefix = options_.name_prefix,
          .Version = entry.version};
      for (const std::uint32_t group : groups) {
        request.HashCodes.Add(static_cast<std::int32_t>(group));
      }
      if (connection->Send<direct::ModuleRedirectAllRequest>(request).ok()) continue;
      failure = result_code::kErrorSendFail;
    }
    std::vector<RedirectGather::GroupAnswer> failed;
    for (const std::uint32_t group : groups) {
      failed.push_back({group, {.code = failure, .message_code = redirect_code::kNoProvider}});
    }
    gather->Add(connection_id, std::move(failed));
  }
}

void Redirect::Impl::RunAllHere(const RedirectEntry& entry,
                                const std::vector<std::uint32_t>& groups,
                                const std::string& parameters, std::chrono::nanoseconds deadline,
                                const std::shared_ptr<RedirectGather>& gather) {
  for (const std::uint32_t group : groups) {
    const auto key = internal::RedirectKeyOf(entry.module_id, group);
    executor_.Run({.entry = &entry,
                   .hash = static_cast<std::int32_t>(group),
                   .lane = RedirectLane::OfKey(key),
                   .parameters = parameters,
                   .deadline = deadline,
                   .finish = [self = shared_from_this(), gather, group](RedirectAnswer answer) {
                     std::vector<RedirectGather::GroupAnswer> one(1);
                     one.front() = {group,
                                    {.outcome = answer.outcome,
                                     .code = answer.code,
                                     .result = std::move(answer.result)}};
                     gather->Add(0, std::move(one));
                   }});
  }
}

void Redirect::Impl::OnRedirectAll(const Message<direct::ModuleRedirectAllRequest>& message) {
  const direct::BModuleRedirectAllRequest& request = message.argument;
  const std::uint32_t level = static_cast<std::uint32_t>(request.HashCodeConcurrentLevel);
  std::int64_t refused = 0;
  const RedirectEntry* entry = FindByName(request.MethodFullName, request.Version, refused);
  std::int64_t return_code = result_code::kNotImplement;
  const bool valid = level > 0 && level <= options_.level_max &&
                     std::ranges::all_of(request.HashCodes, [level](std::int32_t group) {
                       return static_cast<std::uint32_t>(group) < level;
                     });
  if (entry != nullptr && !valid) {
    refused = redirect_code::kError;
    return_code = result_code::kLogicError;
  }
  const auto batch = std::make_shared<internal::RedirectAllBatch>(
      io_, message.connection,
      direct::BModuleRedirectAllResult{.ModuleId = request.ModuleId,
                                       .ServerId = links_.server_id(),
                                       .SourceProvider = request.SourceProvider,
                                       .MethodFullName = request.MethodFullName,
                                       .SessionId = request.SessionId},
      request.HashCodes.size(), refused);
  for (const std::int32_t group : request.HashCodes) {
    if (refused != 0) {
      batch->Add(group, return_code, {});
      continue;
    }
    const auto key = internal::RedirectKeyOf(entry->module_id, static_cast<std::uint32_t>(group));
    executor_.Run({.entry = entry,
                   .hash = group,
                   .lane = RedirectLane::OfKey(key),
                   .parameters = request.Params.bytes,
                   .finish = [self = shared_from_this(), batch, group](RedirectAnswer answer) {
                     batch->Add(group, answer.code, std::move(answer.result));
                   }});
  }
}

void Redirect::Impl::OnRedirectAllResult(const Message<direct::ModuleRedirectAllResult>& message) {
  std::shared_ptr<RedirectGather> gather;
  {
    MutexLock lock(mutex_);
    const auto found = gathers_.find(message.argument.SessionId);
    if (found != gathers_.end()) gather = found->second;
  }
  if (gather == nullptr) {
    ignored_results_ += message.argument.Hashs.size();
    return;
  }
  std::vector<RedirectGather::GroupAnswer> answers;
  for (const auto& entry : message.argument.Hashs) {
    const std::int64_t code =
        entry.value.ReturnCode != 0 ? entry.value.ReturnCode : message.result_code;
    answers.push_back({static_cast<std::uint32_t>(entry.key),
                       {.outcome = internal::OutcomeOf(code),
                        .code = code,
                        .message_code = message.result_code,
                        .result = entry.value.Params.bytes}});
  }
  ignored_results_ += gather->Add(message.connection->id(), std::move(answers));
}

void Redirect::Impl::OnLost(std::int64_t connection_id) {
  for (const auto& gather : Gathers()) {
    gather->FailConnection(connection_id,
                           {.outcome = RedirectOutcome::kUnknown, .code = result_code::kClosed});
  }
}

void Redirect::Impl::Forget(std::int64_t session) {
  MutexLock lock(mutex_);
  gathers_.erase(session);
}

std::vector<std::shared_ptr<RedirectGather>> Redirect::Impl::Gathers() const {
  std::vector<std::shared_ptr<RedirectGather>> all;
  MutexLock lock(mutex_);
  all.reserve(gathers_.size());
  for (const auto& [session, gather] : gathers_) all.push_back(gather);
  return all;
}

}  // namespace zeze::arch
