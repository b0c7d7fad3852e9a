#include "zeze/global/service/unfenced_trust.h"

#include <chrono>

#include <gtest/gtest.h>

#include "zeze/global/service/wire.h"

namespace zeze::global {
namespace {

using std::chrono::seconds;

class UnfencedTrustTest : public ::testing::Test {
 protected:
  UnfencedTrustTest() { trust_.OnLogin(seconds(100), {}); }
  UnfencedTrust trust_{seconds(8)};
};

TEST_F(UnfencedTrustTest, NothingIsUsableBeforeALogin) {
  const UnfencedTrust trust(seconds(8));
  EXPECT_EQ(seconds(0), trust.usable_until());
  EXPECT_FALSE(trust.must_save());
  EXPECT_FALSE(trust.must_drop(seconds(100)));
}

TEST_F(UnfencedTrustTest, RightsAreUsableForEightSecondsFromWhatWasAnswered) {
  EXPECT_EQ(seconds(108), trust_.usable_until());
  trust_.OnAnswer(seconds(105));
  EXPECT_EQ(seconds(113), trust_.usable_until());
  trust_.OnAnswer(seconds(104));  // Answers may come in any order.
  EXPECT_EQ(seconds(113), trust_.usable_until());
}

TEST_F(UnfencedTrustTest, OutOfSightNothingIsUsableAndEverythingIsSavedFirst) {
  trust_.OnLost();
  EXPECT_EQ(seconds(0), trust_.usable_until());
  EXPECT_TRUE(trust_.must_save());
  EXPECT_FALSE(trust_.must_drop(seconds(200))) << "not before it is saved";
  trust_.OnAnswer(seconds(103));
  EXPECT_EQ(seconds(0), trust_.usable_until()) << "an answer that was on its way";
}

TEST_F(UnfencedTrustTest, AGlobalThatRemembersTheSessionSoonRemembersTheRights) {
  trust_.OnLost();
  trust_.OnSaved();
  EXPECT_FALSE(trust_.must_drop(seconds(107)));
  EXPECT_TRUE(trust_.has_rights());
  trust_.OnRelogin(seconds(107));
  EXPECT_EQ(seconds(115), trust_.usable_until());
}

TEST_F(UnfencedTrustTest, AGlobalThatDoesNotRememberIsNotBelieved) {
  trust_.OnLost();
  trust_.OnSaved();
  trust_.OnReloginRefused();
  EXPECT_TRUE(trust_.must_drop(seconds(101)));
  trust_.OnDropped();
  EXPECT_FALSE(trust_.has_rights());
  EXPECT_FALSE(trust_.must_drop(seconds(101)));
  trust_.OnLogin(seconds(102), {});
  EXPECT_EQ(seconds(110), trust_.usable_until());
}

TEST_F(UnfencedTrustTest, AfterTooLongTheRightsAreGivenUpWhateverTheGlobalRemembers) {
  trust_.OnLost();
  trust_.OnSaved();
  EXPECT_TRUE(trust_.must_drop(seconds(108)));
}

TEST_F(UnfencedTrustTest, SavingEndsBeforeTheGlobalGivesTheRightsToOthers) {
  trust_.OnLost();
  EXPECT_EQ(seconds(168), trust_.save_until());  // The old Global waits until 175.
}

}  // namespace
}  // namespace zeze::global
