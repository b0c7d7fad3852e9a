// TokenAuthenticator: clients show a signed token of the account service: short-lived, for one
// gateway or group of gateways, good for once.
//
//   TokenAuthenticator authenticator({.public_keys = {key}, .audience = "Game.Linkd"});
//   std::string token = SignToken(private_key, NewToken("alice", "Game.Linkd", minute));
//
// On the wire a token is 64 bytes of Ed25519 signature and the encoded BToken; what is signed is
// kTokenDomain and the encoded BToken.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze::arch {

// Keeps a signature from being taken for one of something else.
inline constexpr std::string_view kTokenDomain = "zeze.linkd.token.1\n";

// For account services in C++, tools and tests.
std::string SignToken(const admin::OperatorKey& key, const Zeze::Builtin::LinkdAuth::BToken& token);

// A token with a random id, from now on for so long.
Zeze::Builtin::LinkdAuth::BToken NewToken(std::string account, std::string audience,
                                          std::chrono::milliseconds life,
                                          const Clock& clock = SystemClock());

struct TokenOptions {
  std::vector<std::string> public_keys = {};  // Of the account service; any of them.
  std::string audience = "Linkd";

  // A token with a longer life is refused: used ones are remembered as long as they live.
  std::chrono::milliseconds life_max = std::chrono::minutes(5);
  // How much the clocks may differ.
  std::chrono::milliseconds clock_skew = std::chrono::seconds(5);

  // Refuse tokens that are not bound to their TLS connection: a stolen one is of no use then, not
  // even the first time. Clients connect first, and then ask the account service for a token.
  bool require_tls_binding = false;

  // Tokens that are remembered; beyond it clients are refused until some have expired.
  std::size_t used_max = 1'000'000;

  Clock* clock = &SystemClock();
};

// Guarantees that a token is accepted once by this object, and that tokens from before it was made
// are refused, as nobody knows which of them were used. Thread-safe.
class TokenAuthenticator final : public Authenticator {
 public:
  explicit TokenAuthenticator(TokenOptions options);

  Result<ClientIdentity> Authenticate(const Credentials& given) override;

  std::size_t used_count() const;

 private:
  std::int64_t NowMilliseconds() const;
  bool IsSigned(std::string_view signature, std::string_view payload) const;
  Result<void> CheckTimes(const Zeze::Builtin::LinkdAuth::BToken& token, std::int64_t now) const;
  Result<void> CheckBinding(const Zeze::Builtin::LinkdAuth::BToken& token,
                            const Credentials& given) const;
  Result<void> Use(const Zeze::Builtin::LinkdAuth::BToken& token, std::int64_t now);

  const TokenOptions options_;
  const std::int64_t started_;

  mutable Mutex mutex_;
  std::set<std::string> used_ ZEZE_GUARDED_BY(mutex_);  // Until they expire:
  std::multimap<std::int64_t, std::string> by_expiry_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch
