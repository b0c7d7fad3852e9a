#include "zeze/admin/operator_list.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zeze/admin/operator_key.h"
#include "zeze/base/result.h"

namespace zeze::admin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string KeyText() {
  return OperatorKey::Generate().value().public_text();
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseOperators(text, "ops");
  return parsed.ok() ? "" : parsed.error().message();
}

TEST(OperatorList, ReadsNamesAndKeys) {
  const std::string alice = KeyText();
  const std::string bob = KeyText();
  const auto parsed =
      ParseOperators("# who\n\nalice " + alice + "\r\n  bob\t" + bob + "  # since May", "ops");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  ASSERT_EQ(2U, parsed.value().size());
  EXPECT_EQ("alice", parsed.value()[0].name);
  EXPECT_EQ(alice, FormatPublicKey(parsed.value()[0].public_key));
  EXPECT_EQ("bob", parsed.value()[1].name);
}

TEST(OperatorList, SaysWhichLineIsWrongAndWhatWasExpected) {
  const std::string key = KeyText();
  EXPECT_THAT(ErrorOf("a " + key + "\nb"), AllOf(StartsWith("ops:2: "), HasSubstr("a name and a")));
  EXPECT_THAT(ErrorOf("a " + key + " c"), HasSubstr("3 words"));
  EXPECT_THAT(ErrorOf("a ed25519:12"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(ErrorOf("a rsa:12"), HasSubstr("expected \"ed25519:\""));
  EXPECT_THAT(ErrorOf("a/b " + key), HasSubstr("is not a name"));
  EXPECT_THAT(ErrorOf("a " + key + "\na " + KeyText()), HasSubstr("a is there twice"));
  EXPECT_THAT(ErrorOf("# nobody\n"), HasSubstr("no operators"));
}

TEST(OperatorList, OneKeyIsOnePerson) {
  const std::string key = KeyText();
  EXPECT_THAT(ErrorOf("a " + key + "\nb " + key), HasSubstr("b has the key of a"));
}

class OperatorKeyTest : public ::testing::Test {
 protected:
  OperatorKeyTest()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("zeze_key_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove(path_);
  }
  ~OperatorKeyTest() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(OperatorKeyTest, SignsAfterItWasSavedAndLoaded) {
  const OperatorKey key = OperatorKey::Generate().value();
  ASSERT_TRUE(key.Save(path_).ok());
  const Result<OperatorKey> loaded = OperatorKey::Load(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const std::string signature = loaded.value().Sign("text");
  EXPECT_TRUE(VerifySignature(key.public_key(), "text", signature));
  EXPECT_FALSE(VerifySignature(key.public_key(), "texts", signature));
  EXPECT_FALSE(VerifySignature(OperatorKey::Generate().value().public_key(), "text", signature));
  EXPECT_EQ(key.public_key(), ParsePublicKey(loaded.value().public_text()).value());
}

TEST_F(OperatorKeyTest, IsNeverOverwritten) {
  const OperatorKey key = OperatorKey::Generate().value();
  ASSERT_TRUE(key.Save(path_).ok());
  EXPECT_EQ(ErrorCode::kInUse, OperatorKey::Generate().value().Save(path_).error().code());
  EXPECT_EQ(key.public_key(), OperatorKey::Load(path_).value().public_key());
}

TEST_F(OperatorKeyTest, IsRefusedIfOthersMayReadIt) {
  ASSERT_TRUE(OperatorKey::Generate().value().Save(path_).ok());
  ASSERT_EQ(0, chmod(path_.c_str(), 0640));
  EXPECT_THAT(OperatorKey::Load(path_).error().message(), HasSubstr("chmod 600"));
}

TEST(NewRequestId, IsAnotherEachTime) {
  EXPECT_EQ(32U, NewRequestId().size());
  EXPECT_NE(NewRequestId(), NewRequestId());
}

}  // namespace
}  // namespace zeze::admin
