// What every SQL driver shows of the copies of its database (rules 73 to 75).

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "zeze/base/result.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/testing/fenced_home.h"

namespace zeze {

using OpenStorageForTest = std::function<Result<std::unique_ptr<Storage>>()>;

inline std::unique_ptr<FencedProcess> OpenProcess(const OpenStorageForTest& open) {
  Result<std::unique_ptr<Storage>> opened = open();
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return opened.ok() ? std::make_unique<FencedProcess>(std::move(opened).value()) : nullptr;
}

inline ErrorCode CodeOfFind(FencedProcess& process) {
  std::string value;
  const Result<bool> found = process.storage().OpenTable("t").value()->Find("k", value);
  return found.ok() ? ErrorCode::kInvalidArgument : found.error().code();
}

// While a switch-over is under way nothing is written or read, and nobody is fenced.
inline void ExpectAFrozenCopyToPause(const OpenStorageForTest& open, DatabaseHome& home) {
  const std::unique_ptr<FencedProcess> process = OpenProcess(open);
  ASSERT_NE(process, nullptr);
  process->Start(1);
  ASSERT_EQ(process->FlushOutcome("k", "before"), "ok");

  const Result<std::string> marker = home.BeginSwitchOver();
  ASSERT_TRUE(marker.ok()) << marker.error().message();
  EXPECT_EQ(home.BeginSwitchOver().value(), marker.value());

  const std::string outcome = process->FlushOutcome("k", "after");
  EXPECT_TRUE(outcome == "unavailable" || outcome == "unknown outcome") << outcome;
  EXPECT_EQ(CodeOfFind(*process), ErrorCode::kUnavailable);
  const Result<std::unique_ptr<Storage>> other = open();
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find("frozen"), std::string::npos) << other.error().message();
  EXPECT_FALSE(home.FinishSwitchOver(marker.value()).ok()) << "it was begun here";
  EXPECT_FALSE(home.CancelSwitchOver("another marker").ok());

  ASSERT_TRUE(home.CancelSwitchOver(marker.value()).ok());
  EXPECT_EQ(process->FlushUntilKnown("k", "after"), "ok");
  EXPECT_EQ(process->Find("k"), "after");
}

// A copy that is not the one before is neither written nor read. `become_another` makes it one.
inline void ExpectAnotherCopyToBeRefused(const OpenStorageForTest& open, DatabaseHome& home,
                                         const std::function<void()>& become_another) {
  const std::unique_ptr<FencedProcess> process = OpenProcess(open);
  ASSERT_NE(process, nullptr);
  const std::int64_t epoch = process->Start(1);
  ASSERT_EQ(process->FlushOutcome("k", "before"), "ok");
  ASSERT_EQ(process->Find("k"), "before");
  ASSERT_TRUE(home.BeginSwitchOver().ok());  // Ends the sessions.
  become_another();

  EXPECT_EQ(CodeOfFind(*process), ErrorCode::kFenced);
  EXPECT_EQ(process->FlushOutcome("k", "after"), "fenced");
  EXPECT_EQ(FencedProcess::Outcome(process->fence().Renew()), "fenced");
  const Result<std::unique_ptr<Storage>> other = open();
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find("zeze cluster adopt"), std::string::npos)
      << other.error().message();

  constexpr std::int64_t kMargin = 1000;
  ASSERT_TRUE(home.Adopt(kMargin).ok());
  const std::unique_ptr<FencedProcess> next = OpenProcess(open);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->fence().ListLive().value().size(), 1U) << "the old epoch's lease is waited for";
  EXPECT_GT(next->Start(1), epoch + kMargin);
  EXPECT_EQ(next->Find("k"), "before");
  EXPECT_EQ(CodeOfFind(*process), ErrorCode::kFenced);
}

}  // namespace zeze
