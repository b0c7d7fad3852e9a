#include "zeze/net/rsa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeze {
namespace {

using ::testing::HasSubstr;

const RsaPrivateKey& ServerKey() {
  static const RsaPrivateKey key = std::move(RsaPrivateKey::Generate().value());
  return key;
}

RsaPublicKey PublicKey() {
  return std::move(RsaPublicKey::FromModulusHex(ServerKey().ModulusHex()).value());
}

bool Same(const SessionKeys& one, const SessionKeys& two) {
  return one.to_server.key == two.to_server.key && one.to_server.iv == two.to_server.iv &&
         one.to_client.key == two.to_client.key && one.to_client.iv == two.to_client.iv;
}

TEST(Rsa, BothSidesHaveTheSameKeys) {
  Result<RsaSessionSecret> secret = RsaSessionSecret::Generate(PublicKey());
  ASSERT_TRUE(secret.ok()) << secret.error().message();
  EXPECT_EQ(secret.value().encrypted().size(), 256U);
  const SessionKeys& keys = secret.value().keys();
  EXPECT_NE(keys.to_server.key, keys.to_client.key);
  EXPECT_NE(keys.to_server.key, keys.to_server.iv);
  Result<SessionKeys> accepted = AcceptRsaSessionSecret(ServerKey(), secret.value().encrypted());
  ASSERT_TRUE(accepted.ok());
  EXPECT_TRUE(Same(accepted.value(), keys));
}

TEST(Rsa, TakesVectorsAndKeysInTheOrderOfTheFormat) {
  // Vector and key to the server, then vector and key to the client.
  std::string bytes;
  for (const char letter : {'a', 'b', 'c', 'd'}) bytes.append(16, letter);
  const std::string block = PublicKey().Encrypt(bytes).value();
  const SessionKeys keys = AcceptRsaSessionSecret(ServerKey(), block).value();
  EXPECT_EQ(keys.to_server.iv[0], 'a');
  EXPECT_EQ(keys.to_server.key[15], 'b');
  EXPECT_EQ(keys.to_client.iv[0], 'c');
  EXPECT_EQ(keys.to_client.key[15], 'd');
}

TEST(Rsa, TellsNobodyThatABlockIsWrong) {
  Result<RsaSessionSecret> secret = RsaSessionSecret::Generate(PublicKey());
  std::string altered = secret.value().encrypted();
  altered[100] = static_cast<char>(altered[100] ^ 1);
  for (const std::string& block :
       {altered, std::string(), std::string(256, 'x'), PublicKey().Encrypt("short").value()}) {
    Result<SessionKeys> one = AcceptRsaSessionSecret(ServerKey(), block);
    Result<SessionKeys> two = AcceptRsaSessionSecret(ServerKey(), block);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_FALSE(Same(one.value(), secret.value().keys()));
    EXPECT_FALSE(Same(one.value(), two.value()));
  }
}

TEST(Rsa, ReadsBackItsOwnKeyFile) {
  Result<RsaPrivateKey> copy = RsaPrivateKey::FromPkcs8(ServerKey().ToPkcs8());
  ASSERT_TRUE(copy.ok()) << copy.error().message();
  EXPECT_EQ(copy.value().ModulusHex(), ServerKey().ModulusHex());
}

TEST(Rsa, RefusesWhatIsNoKey) {
  Result<RsaPrivateKey> nothing = RsaPrivateKey::FromPkcs8("not a key");
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message(), HasSubstr("openssl genpkey"));
  for (const char* hex : {"", "12", "no digits", "-5"}) {
    EXPECT_FALSE(RsaPublicKey::FromModulusHex(hex).ok()) << hex;
  }
  EXPECT_FALSE(RsaPublicKey::FromModulusHex(std::string(512, 'e')).ok());  // Even.
  EXPECT_FALSE(RsaPublicKey::FromModulusHex(std::string(100000, 'f')).ok());
  EXPECT_FALSE(PublicKey().Encrypt(std::string(300, 'x')).ok());
}

}  // namespace
}  // namespace zeze
