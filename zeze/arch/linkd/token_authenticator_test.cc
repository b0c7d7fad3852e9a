#include "zeze/arch/linkd/token_authenticator.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/manual_clock.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Zeze::Builtin::LinkdAuth::BToken;

class TokenAuthenticatorTest : public ::testing::Test {
 protected:
  BToken Fresh() { return NewToken("alice", "Linkd", seconds(60), clock_); }
  // The account, or why not.
  std::string Show(const std::string& token, std::int64_t version = 0) {
    const Result<ClientIdentity> identity =
        authenticator_.Authenticate({.token = token, .app_version = version});
    return identity.ok() ? identity.value().account : identity.error().message();
  }

  zeze::testing::ManualClock clock_;
  const admin::OperatorKey key_ = admin::OperatorKey::Generate().value();
  const admin::OperatorKey next_key_ = admin::OperatorKey::Generate().value();
  TokenAuthenticator authenticator_{{.public_keys = {key_.public_key(), next_key_.public_key()},
                                     .used_max = 3,
                                     .clock = &clock_}};
};

TEST_F(TokenAuthenticatorTest, ATokenIsGoodForOnce) {
  const std::string token = SignToken(key_, Fresh());

  EXPECT_EQ("alice", Show(token));

  const Result<ClientIdentity> again = authenticator_.Authenticate({.token = token});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(ErrorCode::kConflict, again.error().code());
  EXPECT_EQ("alice", Show(SignToken(key_, Fresh()))) << "another one";
}

TEST_F(TokenAuthenticatorTest, AnyOfTheKeysWill) {
  EXPECT_EQ("alice", Show(SignToken(next_key_, Fresh())));
  const admin::OperatorKey stranger = admin::OperatorKey::Generate().value();
  EXPECT_EQ("the token's signature is wrong", Show(SignToken(stranger, Fresh())));
}

TEST_F(TokenAuthenticatorTest, EveryBitCounts) {
  const std::string token = SignToken(key_, Fresh());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    EXPECT_NE("alice", Show(changed)) << i;
    EXPECT_NE("alice", Show(token.substr(0, i))) << i;
  }
  EXPECT_EQ("alice", Show(token));
}

TEST_F(TokenAuthenticatorTest, ASignatureOfSomethingElseIsNone) {
  ByteWriter payload;
  Fresh().Encode(payload);
  std::string token = key_.Sign(payload.view());  // Without the domain.
  token += payload.view();
  EXPECT_EQ("the token's signature is wrong", Show(token));
}

TEST_F(TokenAuthenticatorTest, ExpiredFutureOldAndLongOnesAreRefused) {
  const std::string token = SignToken(key_, Fresh());
  clock_.Advance(seconds(60));
  EXPECT_EQ("the token expired 0 ms ago", Show(token));

  BToken future = Fresh();
  future.issued += 6000;
  future.expires += 6000;
  EXPECT_NE("alice", Show(SignToken(key_, future)));

  BToken old = Fresh();
  old.issued -= 61'000;  // Before the authenticator was made.
  EXPECT_NE("alice", Show(SignToken(key_, old)));

  BToken lasting = Fresh();
  lasting.expires = lasting.issued + 300'001;
  EXPECT_NE("alice", Show(SignToken(key_, lasting)));
  lasting.issued = INT64_MIN;
  lasting.expires = INT64_MAX;
  EXPECT_NE("alice", Show(SignToken(key_, lasting)));

  BToken ended = Fresh();
  ended.expires = INT64_MIN;
  EXPECT_NE(Show(SignToken(key_, ended)).find("before that"), std::string::npos);
}

TEST_F(TokenAuthenticatorTest, AudienceVersionAccountAndIdMustFit) {
  BToken token = Fresh();
  token.audience = "Other";
  EXPECT_EQ("the token is for \"Other\", this is \"Linkd\"", Show(SignToken(key_, token)));
  token = Fresh();
  token.id.bytes = "short";
  EXPECT_NE("alice", Show(SignToken(key_, token)));
  token = Fresh();
  token.account = "";
  EXPECT_NE("", Show(SignToken(key_, token)));
  token = Fresh();
  token.appVersion = 5;
  EXPECT_NE("alice", Show(SignToken(key_, token), 4));
  EXPECT_EQ("alice", Show(SignToken(key_, token), 5));
}

TEST_F(TokenAuthenticatorTest, ABoundTokenIsGoodOnItsOwnConnectionOnly) {
  BToken token = Fresh();
  token.tlsBinding.bytes = std::string(32, 'a');
  const std::string bound = SignToken(key_, token);
  const auto show = [&](TokenAuthenticator& to, const std::string& text, std::string_view binding) {
    const Result<ClientIdentity> shown = to.Authenticate({.token = text, .tls_binding = binding});
    return shown.ok() ? ErrorCode{} : shown.error().code();
  };
  // Refused does not mean used.
  EXPECT_EQ(show(authenticator_, bound, ""), ErrorCode::kInUse);
  EXPECT_EQ(show(authenticator_, bound, std::string(32, 'b')), ErrorCode::kInUse);
  EXPECT_EQ(show(authenticator_, bound, std::string(31, 'a')), ErrorCode::kInUse);
  EXPECT_EQ(show(authenticator_, bound, std::string(32, 'a')), ErrorCode{});

  TokenAuthenticator strict({.public_keys = {key_.public_key()},
                             .audience = "Linkd",
                             .require_tls_binding = true,
                             .clock = &clock_});
  EXPECT_EQ(show(strict, SignToken(key_, Fresh()), std::string(32, 'a')), ErrorCode::kInUse);
  token.id.bytes = std::string(16, 'i');
  EXPECT_EQ(show(strict, SignToken(key_, token), std::string(32, 'a')), ErrorCode{});
}

TEST_F(TokenAuthenticatorTest, WhatIsRememberedHasABound) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ("alice", Show(SignToken(key_, Fresh())));
  EXPECT_NE("alice", Show(SignToken(key_, Fresh())));
  clock_.Advance(seconds(60));
  EXPECT_EQ("alice", Show(SignToken(key_, Fresh())));
  EXPECT_EQ(1U, authenticator_.used_count());
}

}  // namespace
}  // namespace zeze::arch
