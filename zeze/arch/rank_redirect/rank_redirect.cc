#include "zeze/arch/rank_redirect/rank_redirect.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/app/application.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/arch/redirect/redirect_reply.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch {

namespace {

RedirectHash HashOf(std::uint32_t group, std::uint32_t level) {
  return {static_cast<std::int32_t>(group), level};
}

}  // namespace

void RankRedirect::Connect(Redirect& redirect, std::int32_t module_id, Run update, Run deliver) {
  redirect.AddEncoded(
      {.module_id = module_id, .full_name = std::string(kUpdate), .run = std::move(update)});
  redirect.AddEncoded(
      {.module_id = module_id, .full_name = std::string(kDeliver), .run = std::move(deliver)});
  module_id_ = module_id;
  redirect_.store(&redirect);
}

bool RankRedirect::OwnsGroup(std::uint32_t group, std::uint32_t level) {
  const Redirect* redirect = redirect_.load();
  if (redirect == nullptr) return true;
  const std::optional<std::int32_t> owner = redirect->OwnerOf(module_id_, HashOf(group, level));
  return !owner || *owner == redirect->server_id();
}

void RankRedirect::Send(std::uint32_t group, std::uint32_t level, std::string parameters,
                        Completion done) {
  redirect_.load()->ToHashEncoded(
      kUpdate, HashOf(group, level), std::move(parameters),
      [done = std::move(done)](const RedirectReply<Binary>& reply) { done(reply.code); });
}

void RankRedirect::Deliver(std::uint32_t group, std::uint32_t level, std::string updates,
                           const Delivered& done) {
  redirect_.load()->ToHashEncoded(
      kDeliver, HashOf(group, level), std::move(updates),
      [done](const RedirectReply<Binary>& reply) { done(reply.code, reply.result.bytes); });
}

}  // namespace zeze::arch
