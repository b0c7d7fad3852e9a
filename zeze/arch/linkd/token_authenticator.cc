#include "zeze/arch/linkd/token_authenticator.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::arch {

using Zeze::Builtin::LinkdAuth::BToken;

namespace {

constexpr std::size_t kTokenBytesMax = 2048;
constexpr std::size_t kIdBytesMin = 16;
constexpr std::size_t kIdBytesMax = 64;
constexpr std::size_t kAccountBytesMax = 256;

std::int64_t Milliseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// The account service has signed it, but it does not open this gateway now.
Error Unsuitable(std::string what) {
  return {ErrorCode::kIncompatible, std::move(what)};
}

std::string SignedText(std::string_view payload) {
  std::string text(kTokenDomain);
  text += payload;
  return text;
}

}  // namespace

std::string SignToken(const admin::OperatorKey& key, const BToken& token) {
  ByteWriter payload;
  token.Encode(payload);
  std::string text = key.Sign(SignedText(payload.view()));
  text += payload.view();
  return text;
}

BToken NewToken(std::string account, std::string audience, std::chrono::milliseconds life,
                const Clock& clock) {
  const std::int64_t now = Milliseconds(clock.SystemNow());
  BToken token{.account = std::move(account),
               .audience = std::move(audience),
               .expires = now + life.count(),
               .issued = now};
  token.id.bytes = admin::NewRequestId();
  return token;
}

TokenAuthenticator::TokenAuthenticator(TokenOptions options)
    : options_(std::move(options)), started_(Milliseconds(options_.clock->SystemNow())) {}

std::int64_t TokenAuthenticator::NowMilliseconds() const {
  return Milliseconds(options_.clock->SystemNow());
}

bool TokenAuthenticator::IsSigned(std::string_view signature, std::string_view payload) const {
  const std::string text = SignedText(payload);
  return std::ranges::any_of(options_.public_keys, [&](const std::string& key) {
    return admin::VerifySignature(key, text, signature);
  });
}

Result<void> TokenAuthenticator::CheckTimes(const BToken& token, std::int64_t now) const {
  // No number is trusted to be one that can be reckoned with.
  if (token.issued < 0 || token.expires < token.issued) {
    return Unsuitable(fmt::format("the token is issued at {} and expires at {}, before that",
                                  token.issued, token.expires));
  }
  if (now >= token.expires) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("the token expired {} ms ago", now - token.expires));
  }
  if (token.issued > now + options_.clock_skew.count()) {
    return Unsuitable(fmt::format("the token comes from {} ms in the future: are the clocks set?",
                                  token.issued - now));
  }
  if (token.expires - token.issued > options_.life_max.count()) {
    return Unsuitable(fmt::format("the token lives longer than {} ms", options_.life_max.count()));
  }
  if (token.issued < started_) {
    return Unsuitable(
        "the token is older than this gateway, which does not know whether it was used");
  }
  return {};
}

Result<void> TokenAuthenticator::CheckBinding(const BToken& token, const Credentials& given) const {
  const std::string& wanted = token.tlsBinding.bytes;
  if (wanted.empty() && !options_.require_tls_binding) return {};
  const bool fits = !wanted.empty() && wanted.size() == given.tls_binding.size() &&
                    CRYPTO_memcmp(wanted.data(), given.tls_binding.data(), wanted.size()) == 0;
  if (fits) return {};
  return Error(ErrorCode::kInUse, wanted.empty() ? "the token is not bound to a TLS connection"
                                  : given.tls_binding.empty()
                                      ? "the token is bound to a TLS connection, this is none"
                                      : "the token is bound to another TLS connection");
}

Result<ClientIdentity> TokenAuthenticator::Authenticate(const Credentials& given) {
  if (given.token.size() <= admin::kSignatureBytes || given.token.size() > kTokenBytesMax) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a token of {} bytes", given.token.size()));
  }
  const std::string_view signature = given.token.substr(0, admin::kSignatureBytes);
  const std::string_view payload = given.token.substr(admin::kSignatureBytes);
  if (!IsSigned(signature, payload)) {
    return Error(ErrorCode::kCorrupt, "the token's signature is wrong");
  }
  BToken token;
  ByteReader in(payload);
  token.Decode(in);
  if (!in.ok()) return Unsuitable(in.ToError("a token").message());
  if (token.audience != options_.audience) {
    return Unsuitable(
        fmt::format("the token is for \"{}\", this is \"{}\"", token.audience, options_.audience));
  }
  if (token.account.empty() || token.account.size() > kAccountBytesMax) {
    return Unsuitable(fmt::format("the token's account has {} bytes", token.account.size()));
  }
  if (token.id.bytes.size() < kIdBytesMin || token.id.bytes.size() > kIdBytesMax) {
    return Unsuitable(fmt::format("the token's id has {} bytes", token.id.bytes.size()));
  }
  if (token.appVersion != 0 && token.appVersion != given.app_version) {
    return Unsuitable("the token is for a client of another version");
  }
  if (Result<void> bound = CheckBinding(token, given); !bound.ok()) return bound.error();
  const std::int64_t now = NowMilliseconds();
  if (Result<void> times = CheckTimes(token, now); !times.ok()) return times.error();
  if (Result<void> used = Use(token, now); !used.ok()) return used.error();
  return ClientIdentity{.account = token.account, .app_version = given.app_version};
}

Result<void> TokenAuthenticator::Use(const BToken& token, std::int64_t now) {
  const MutexLock lock(mutex_);
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    used_.erase(by_expiry_.begin()->second);
    by_expiry_.erase(by_expiry_.begin());
  }
  if (used_.contains(token.id.bytes)) {
    return Error(ErrorCode::kConflict,
                 fmt::format("the token of \"{}\" was used before", token.account));
  }
  if (used_.size() >= options_.used_max) {
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} tokens have been used that are not expired: no more can be "
                             "remembered",
                             used_.size()));
  }
  used_.insert(token.id.bytes);
  by_expiry_.emplace(token.expires, token.id.bytes);
  return {};
}

std::size_t TokenAuthenticator::used_count() const {
  const MutexLock lock(mutex_);
  return used_.size();
}

}  // namespace zeze::arch
