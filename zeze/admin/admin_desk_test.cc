#include "zeze/admin/admin_desk.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/admin/operator_key.h"
#include "zeze/admin/operator_list.h"
#include "zeze/base/result.h"

namespace zeze::admin {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Alice, Bob and Carol; two of them must agree; and Mallory, who is none of them.
class AdminDeskTest : public ::testing::Test {
 protected:
  using Time = AdminDesk::Time;

  AdminDeskTest() {
    std::vector<Operator> operators;
    for (const char* name : {"alice", "bob", "carol", "mallory"}) {
      OperatorKey key = OperatorKey::Generate().value();
      if (std::string(name) != "mallory") {
        operators.push_back({.name = name, .public_key = key.public_key()});
      }
      keys_.emplace(name, std::move(key));
    }
    options_ = {.operators = std::move(operators),
                .approvals = 2,
                .delay = seconds(60),
                .patience = minutes(15),
                .open_max = 3};
    desk_.emplace(options_);
  }

  static AdminRequest Request(std::int32_t server_id, const std::string& id = "id1") {
    return {.id = id,
            .shard = 0,
            .term = 5,
            .server_id = server_id,
            .epoch = 3,
            .session = 9,
            .proposer = "alice",
            .reason = "its host is dead"};
  }
  std::string Sign(const std::string& name, const std::string& text) {
    return keys_.at(name).Sign(text);
  }
  Result<AdminStep> Take(Result<AdminStep> step) {
    if (step.ok()) desk_->Take(now_, step.value());
    return step;
  }
  Result<AdminStep> Propose(const AdminRequest& request) {
    return Take(desk_->Propose(now_, request, Sign(request.proposer, ApprovalText(request))));
  }
  Result<AdminStep> Approve(const AdminRequest& request, const std::string& name) {
    return Take(desk_->Approve(now_, request.id, name, Sign(name, ApprovalText(request))));
  }
  Result<AdminStep> Cancel(const AdminRequest& request, const std::string& name) {
    return Take(desk_->Cancel(now_, request.id, name, Sign(name, CancellationText(request))));
  }
  RequestState StateOf(const std::string& id) {
    for (const RequestView& view : desk_->List()) {
      if (view.request.id == id) return view.state;
    }
    ADD_FAILURE() << "no request " << id;
    return RequestState::kWaiting;
  }

  std::map<std::string, OperatorKey> keys_;
  AdminDeskOptions options_;
  std::optional<AdminDesk> desk_;
  Time now_ = seconds(1000);
};

TEST_F(AdminDeskTest, IsCarriedOutAfterTwoApprovalsAndTheDelay) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  EXPECT_EQ(RequestState::kWaiting, StateOf("id1"));
  EXPECT_FALSE(desk_->Due(now_ + minutes(14)));

  ASSERT_TRUE(Approve(request, "bob").ok());
  EXPECT_EQ(RequestState::kScheduled, StateOf("id1"));
  EXPECT_THAT(desk_->List().front().approved_by, ElementsAre("alice", "bob"));
  EXPECT_FALSE(desk_->Due(now_ + seconds(59)));

  now_ += seconds(60);
  const std::optional<AdminStep> due = desk_->Due(now_);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(AdminStep::Kind::kRun, due->kind);
  EXPECT_EQ(request, due->request);
  EXPECT_THAT(due->details, HasSubstr("approved by alice, bob"));
  desk_->Take(now_, *due);
  EXPECT_FALSE(desk_->Due(now_ + minutes(100))) << "only once";

  desk_->Take(now_, desk_->Finish("id1", true, "evicted"));
  EXPECT_EQ(RequestState::kDone, StateOf("id1"));
}

TEST_F(AdminDeskTest, NothingHappensBeforeTheLogHasIt) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(desk_->Propose(now_, request, Sign("alice", ApprovalText(request))).ok());
  EXPECT_EQ(0U, desk_->List().size());
}

TEST_F(AdminDeskTest, OneApprovalIsEnoughIfSoConfigured) {
  options_.approvals = 1;
  desk_.emplace(options_);
  ASSERT_TRUE(Propose(Request(7)).ok());
  EXPECT_EQ(RequestState::kScheduled, StateOf("id1"));
}

TEST_F(AdminDeskTest, TheSameOperatorCountsOnce) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  const Result<AdminStep> again = Approve(request, "alice");
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message(),
              AllOf(HasSubstr("alice has approved"), HasSubstr("2 different operators")));
  EXPECT_EQ(RequestState::kWaiting, StateOf("id1"));
}

TEST_F(AdminDeskTest, OnlyOperatorsMayAskApproveAndCancel) {
  AdminRequest foreign = Request(7);
  foreign.proposer = "mallory";
  EXPECT_THAT(Propose(foreign).error().message(), HasSubstr("not an operator"));

  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  EXPECT_THAT(Approve(request, "mallory").error().message(), HasSubstr("not an operator"));
  EXPECT_THAT(Cancel(request, "mallory").error().message(), HasSubstr("not an operator"));
  // Mallory's key under Bob's name.
  EXPECT_THAT(
      desk_->Approve(now_, "id1", "bob", Sign("mallory", ApprovalText(request))).error().message(),
      HasSubstr("the signature is not bob's"));
  EXPECT_FALSE(desk_->Approve(now_, "id1", "bob", "").ok());
  EXPECT_FALSE(desk_->Approve(now_, "id1", "bob", std::string(64, 'x')).ok());
}

TEST_F(AdminDeskTest, ASignatureFitsOneRequestAndOnePurpose) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  const std::string cancel = Sign("bob", CancellationText(request));
  const std::string approve = Sign("bob", ApprovalText(request));

  EXPECT_FALSE(desk_->Approve(now_, "id1", "bob", cancel).ok());
  EXPECT_FALSE(desk_->Cancel(now_, "id1", "bob", approve).ok());
  std::vector<AdminRequest> others(7, request);
  others[0].id = "id2";
  others[1].server_id = 8;
  others[2].epoch = 4;
  others[3].session = 10;
  others[4].term = 6;
  others[5].shard = 1;
  others[6].reason = "another";
  for (const AdminRequest& other : others) {
    EXPECT_FALSE(desk_->Approve(now_, "id1", "bob", Sign("bob", ApprovalText(other))).ok());
  }
  EXPECT_TRUE(desk_->Approve(now_, "id1", "bob", approve).ok());
}

TEST_F(AdminDeskTest, AnOldApprovalIsWorthNothingForTheNextRequest) {
  const AdminRequest first = Request(7, "id1");
  ASSERT_TRUE(Propose(first).ok());
  const std::string replayed = Sign("bob", ApprovalText(first));
  ASSERT_TRUE(Cancel(first, "carol").ok());
  ASSERT_TRUE(Propose(Request(7, "id2")).ok());

  EXPECT_FALSE(desk_->Approve(now_, "id1", "bob", replayed).ok());
  EXPECT_FALSE(desk_->Approve(now_, "id2", "bob", replayed).ok());
}

TEST_F(AdminDeskTest, AnyOperatorCancelsUntilItRuns) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  ASSERT_TRUE(Approve(request, "bob").ok());
  ASSERT_TRUE(Cancel(request, "carol").ok());
  EXPECT_EQ(RequestState::kCancelled, StateOf("id1"));
  EXPECT_FALSE(desk_->Due(now_ + minutes(100)));
  EXPECT_THAT(Approve(request, "carol").error().message(),
              HasSubstr("request id1 is cancelled: by carol"));

  const AdminRequest next = Request(7, "id2");
  ASSERT_TRUE(Propose(next).ok());
  ASSERT_TRUE(Approve(next, "bob").ok());
  now_ += seconds(60);
  desk_->Take(now_, desk_->Due(now_).value());
  EXPECT_THAT(Cancel(next, "carol").error().message(), HasSubstr("being carried out"));
}

TEST_F(AdminDeskTest, ExpiresWithoutApprovals) {
  const AdminRequest request = Request(7);
  ASSERT_TRUE(Propose(request).ok());
  now_ += minutes(15);
  EXPECT_THAT(Approve(request, "bob").error().message(), HasSubstr("has expired"));
  const std::optional<AdminStep> due = desk_->Due(now_);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(AdminStep::Kind::kExpire, due->kind);
  desk_->Take(now_, *due);
  EXPECT_EQ(RequestState::kExpired, StateOf("id1"));
}

TEST_F(AdminDeskTest, OpenRequestsAreFewAndOnePerServer) {
  ASSERT_TRUE(Propose(Request(1, "a")).ok());
  EXPECT_THAT(Propose(Request(1, "b")).error().message(), HasSubstr("is open already"));
  ASSERT_TRUE(Propose(Request(2, "b")).ok());
  ASSERT_TRUE(Propose(Request(3, "c")).ok());
  EXPECT_THAT(Propose(Request(4, "d")).error().message(), HasSubstr("which is the most"));
}

TEST_F(AdminDeskTest, AReasonIsOneLine) {
  AdminRequest request = Request(7);
  request.reason = "fine\nserver   8";
  EXPECT_THAT(Propose(request).error().message(), HasSubstr("one line"));
  request.reason = std::string(501, 'x');
  EXPECT_FALSE(Propose(request).ok());
}

TEST_F(AdminDeskTest, TheLogGetsTheSignatures) {
  const AdminRequest request = Request(7);
  const Result<AdminStep> step = Propose(request);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ("alice", step.value().actor);
  EXPECT_THAT(step.value().details,
              AllOf(HasSubstr("server 7 epoch 3"), HasSubstr("its host is dead"),
                    HasSubstr("signature " + ToHex(Sign("alice", ApprovalText(request))))));
}

}  // namespace
}  // namespace zeze::admin
