// The templates of redirect.h: encode, call without types, decode.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "zeze/arch/redirect/redirect.h"

namespace zeze::arch {

namespace internal {

template <typename... P>
std::string EncodeRedirectParameters(const std::tuple<P...>& values) {
  ByteWriter out;
  WriteRedirectParameters(out, values);
  return out.Release();
}

template <typename R>
void DecodeRedirectReply(const RedirectRaw& raw, RedirectReply<R>& reply) {
  reply.outcome = raw.outcome;
  reply.code = raw.code;
  reply.server_id = raw.server_id;
  if (raw.code != 0) return;
  ByteReader in(raw.result);
  ReadRedirectResult(in, reply.result);
  if (in.ok()) return;
  LogBadRedirectResult(raw.server_id, in.error_message());
  reply.result = R{};
  reply.outcome = RedirectOutcome::kUnknown;
  reply.code = redirect_code::kError;
}

}  // namespace internal

template <auto Method>
RedirectCall<Method>::RedirectCall(Redirect& redirect, const internal::RedirectTarget& target,
                                   Values values)
    : redirect_(&redirect), target_(target), values_(std::move(values)) {}

template <auto Method>
void RedirectCall<Method>::Send() && {
  internal::BeginRedirect(*redirect_, &internal::kRedirectKey<Method>, target_, options_,
                          internal::EncodeRedirectParameters(values_),
                          internal::RedirectWhere::kAnywhere, [](const internal::RedirectRaw&) {});
}

template <auto Method>
void RedirectCall<Method>::Then(Callback callback) && {
  internal::BeginRedirect(*redirect_, &internal::kRedirectKey<Method>, target_, options_,
                          internal::EncodeRedirectParameters(values_),
                          internal::RedirectWhere::kWorker,
                          [callback = std::move(callback)](const internal::RedirectRaw& raw) {
                            Reply reply;
                            internal::DecodeRedirectReply(raw, reply);
                            callback(std::move(reply));
                          });
}

template <auto Method>
typename RedirectCall<Method>::Reply RedirectCall<Method>::Wait() && {
  const internal::RedirectPatience patience = internal::PatienceOf(*redirect_, options_);
  auto wait = std::make_shared<internal::RedirectWait<Reply>>();
  internal::BeginRedirect(*redirect_, &internal::kRedirectKey<Method>, target_, options_,
                          internal::EncodeRedirectParameters(values_),
                          internal::RedirectWhere::kAnywhere,
                          [wait](const internal::RedirectRaw& raw) {
                            Reply reply;
                            internal::DecodeRedirectReply(raw, reply);
                            wait->Set(std::move(reply));
                          });
  std::optional<Reply> reply = wait->Await(patience);
  if (reply.has_value()) return std::move(*reply);
  return {.outcome = RedirectOutcome::kUnknown, .code = redirect_code::kRequestTimeout};
}

template <auto Method>
void RedirectCall<Method>::AfterCommit(Transaction& tx) && {
  tx.AfterCommit(Task("redirect after commit",
                      [call = std::move(*this)]() mutable { std::move(call).Send(); }));
}

template <auto Method>
void RedirectCall<Method>::AfterCommit(Transaction& tx, Callback callback) && {
  tx.AfterCommit(Task("redirect after commit",
                      [call = std::move(*this), callback = std::move(callback)]() mutable {
                        std::move(call).Then(std::move(callback));
                      }));
}

template <auto Method>
typename RedirectCall<Method>::Reply RedirectCall<Method>::Nested(Transaction& tx) && {
  static_assert(Signature::kInTransaction,
                "only a method that takes a Transaction& can be nested in one");
  const internal::RedirectHere here =
      internal::FindRedirect(*redirect_, &internal::kRedirectKey<Method>);
  Reply reply;
  reply.server_id = here.server_id;
  reply.code = tx.Call(here.procedure, [&](Transaction& inner) {
    return Signature::Call(static_cast<typename Signature::Class&>(here.module), &inner,
                           target_.value, values_, reply.result);
  });
  if (reply.code == 0) {
    reply.outcome = RedirectOutcome::kDone;
  } else {
    reply.result = {};
  }
  return reply;
}

template <auto Method>
RedirectAllCall<Method>::RedirectAllCall(Redirect& redirect, std::uint32_t level, Values values)
    : redirect_(&redirect), level_(level), values_(std::move(values)) {}

template <auto Method>
void RedirectAllCall<Method>::Begin(Callback callback, internal::RedirectWhere where) && {
  struct Gathered {
    GroupCallback each;
    Callback callback;
    Reply reply = {};
  };
  auto gathered = std::make_shared<Gathered>(
      Gathered{.each = std::move(each_), .callback = std::move(callback)});
  internal::BeginRedirectAll(
      *redirect_, &internal::kRedirectKey<Method>, level_, options_,
      internal::EncodeRedirectParameters(values_), where,
      {.each =
           [gathered, level = level_](const internal::RedirectGroupRaw& raw) {
             if (gathered->reply.groups.empty()) gathered->reply.groups.resize(level);
             GroupReply& reply = gathered->reply.groups[raw.group];
             internal::DecodeRedirectReply<Result>(raw, reply);
             reply.group = raw.group;
             reply.message_code = raw.message_code;
             if (gathered->each) gathered->each(reply);
           },
       .done =
           [gathered](std::int64_t code) {
             gathered->reply.code = code;
             if (gathered->callback) gathered->callback(std::move(gathered->reply));
           }});
}

template <auto Method>
void RedirectAllCall<Method>::Send() && {
  std::move(*this).Begin(nullptr, internal::RedirectWhere::kWorker);
}

template <auto Method>
void RedirectAllCall<Method>::Then(Callback callback) && {
  std::move(*this).Begin(std::move(callback), internal::RedirectWhere::kWorker);
}

template <auto Method>
typename RedirectAllCall<Method>::Reply RedirectAllCall<Method>::Wait() && {
  const internal::RedirectPatience patience = internal::PatienceOf(*redirect_, options_);
  const std::uint32_t level = level_;
  // Only a callback of the user needs a worker.
  const auto where = each_ ? internal::RedirectWhere::kWorker : internal::RedirectWhere::kAnywhere;
  auto wait = std::make_shared<internal::RedirectWait<Reply>>();
  std::move(*this).Begin([wait](Reply reply) { wait->Set(std::move(reply)); }, where);
  // The call itself ends in time, with what it has; more patience is for busy threads only.
  std::optional<Reply> reply =
      wait->Await({patience.clock, patience.deadline + std::chrono::seconds(5)});
  if (reply.has_value()) return std::move(*reply);
  Reply late;
  for (std::uint32_t group = 0; group < level; ++group) {
    GroupReply& missing = late.groups.emplace_back();
    missing.outcome = RedirectOutcome::kUnknown;
    missing.code = redirect_code::kRequestTimeout;
    missing.group = group;
  }
  return late;
}

template <auto Method>
void RedirectAllCall<Method>::AfterCommit(Transaction& tx, Callback callback) && {
  tx.AfterCommit(Task("redirect to all after commit",
                      [call = std::move(*this), callback = std::move(callback)]() mutable {
                        std::move(call).Then(std::move(callback));
                      }));
}

}  // namespace zeze::arch
