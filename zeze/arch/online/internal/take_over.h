// RegisterTakeOver: when a server is gone, the service manager asks a living one, and that ends the
// logins which the lost one has left behind.
//
//   return RegisterTakeOver(application, "Zeze.Arch.Online", [&](auto lost, const auto& proceed) {
//     return logins.LogoutAllOf(lost, proceed);
//   });
//
// The service manager asks until a server has said that the work is done, even if servers it asked
// crash. A server that cannot finish because the lease of the lost server still lasts refuses, and
// tries again by itself: first after a quarter of a second, then at growing pauses up to five
// seconds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"

namespace zeze::arch::internal {

enum class LostServer : std::uint8_t {
  kGone,
  kBack,      // A later process has its id, and ends by itself what earlier ones have left.
  kStranger,  // It never used this database: its logins are elsewhere.
};

// `lost_epoch`: of the process that the service manager misses. It may be there all the same, and
// only out of the service manager's reach: then its clients are told to connect again.
LostServer JudgeLostServer(const Fence::ServerRow& row, std::int64_t lost_epoch);

// Ends what a server has, if `proceed` says so once it is known what that is: whoever has logged in
// there before a later process of its id has started is not one of that process.
using LogoutAll = std::function<Result<std::size_t>(std::int32_t server_id,
                                                    const std::function<Result<bool>()>& proceed)>;

// For the start of a module. Nothing happens without a service manager, or if no other server can
// use the database. Fails with what the database says.
Result<void> RegisterTakeOver(Application& application, std::string notify_id,
                              LogoutAll logout_all);

}  // namespace zeze::arch::internal
