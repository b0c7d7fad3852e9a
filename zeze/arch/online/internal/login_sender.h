// LoginSender: the way to logged-in clients, and what is learnt on it about their connections.
//
// A gateway that answers that it has no such connection is right: connections' numbers never come
// again. One that cannot be reached, or does not answer, says nothing: such logins are suspects,
// asked about until somebody answers, and ended if nobody did for the whole delay.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/arch/online/internal/login_book.h"
#include "zeze/arch/online/internal/login_environment.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/provider/links.h"
#include "zeze/base/mutex.h"

namespace zeze::arch::internal {

// Thread-safe.
template <typename Key>
class LoginSender {
 public:
  LoginSender(LoginEnvironment<Key>& environment, LoginBook<Key>& book)
      : environment_(environment), book_(book) {}

  // One frame to many, in few messages to each gateway. Returns how many it was sent to: those with
  // a connection, as far as is known. Outside transactions; waits for records, not for gateways.
  std::size_t Send(std::span<const Key> keys, std::string_view frame);
  // To this login, and no later one of the key.
  std::size_t SendToLogin(const Key& key, std::int64_t version, std::string_view frame);

  // Whether a client that has just logged in is still there.
  void CheckNew(const Key& key, std::int64_t version, const LinkAddress& link);

  // All logins of this server: their records and their connections.
  void Verify();
  // Gateways that have gone, and suspects.
  void CheckSuspects();

  std::size_t suspect_count() const;

 private:
  struct Target {
    Key key;
    std::int64_t version;
    std::int64_t sid;
    bool here;  // Logged in on this server.
  };
  using Targets = std::vector<Target>;

  struct Suspect {
    std::int64_t version;
    LinkAddress link;
    std::chrono::nanoseconds since;
  };

  // Clients in one message to a gateway.
  static constexpr std::size_t kBatch = 1000;

  // None: it has no connection, as far as is known.
  std::optional<LoginRecord> Connected(const Key& key);
  Target TargetOf(const Key& key, const LoginRecord& login) const;

  // Return how many it was sent to.
  std::size_t SendInBatches(const std::string& link_name, const Targets& targets,
                            std::string_view frame);
  std::size_t SendTo(const std::string& link_name, Targets targets, std::string_view frame);
  void Learn(const std::string& link_name, const Targets& targets, const SendOutcome& outcome);
  void NoteSuspects(const std::string& link_name, const Targets& targets);
  void Clear(const Targets& targets);
  void Break(const Key& key, const LinkAddress& link);
  void Ask(const std::map<std::string, Targets>& by_link);
  std::map<std::string, Targets> LocalTargets();
  void NoteLostGateways();

  LoginEnvironment<Key>& environment_;
  LoginBook<Key>& book_;

  mutable Mutex mutex_;
  std::map<Key, Suspect> suspects_ ZEZE_GUARDED_BY(mutex_);
  std::set<std::string> gateways_ ZEZE_GUARDED_BY(mutex_);  // When last looked.
};

}  // namespace zeze::arch::internal
