// What a server knows of the clients that it has bound, whatever crosses on the wire.

#include "zeze/arch/provider/internal/link.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace zeze::arch::internal {
namespace {

constexpr std::int64_t kSid = 5;
constexpr std::int32_t kMap = 200;

TEST(Link, AClientThatAnotherServerHasTakenIsNotBound) {
  Link link("gateway");
  link.NoteBinding(kSid, kMap);
  link.NoteBindAnswer(kSid, kMap);
  EXPECT_TRUE(link.IsBound(kSid, kMap));

  EXPECT_TRUE(link.NoteTaken(kSid, kMap));
  EXPECT_FALSE(link.IsBound(kSid, kMap));
  EXPECT_FALSE(link.NoteTaken(kSid, kMap)) << "once";
}

// It left, went elsewhere and came back before this server heard of it.
TEST(Link, ANoticeFromBeforeItsOwnBindIsIgnored) {
  Link link("gateway");
  link.NoteBinding(kSid, kMap);
  link.NoteBindAnswer(kSid, kMap);
  link.NoteBinding(kSid, kMap);

  EXPECT_FALSE(link.NoteTaken(kSid, kMap));
  link.NoteBindAnswer(kSid, kMap);
  EXPECT_TRUE(link.IsBound(kSid, kMap));
  EXPECT_TRUE(link.NoteTaken(kSid, kMap)) << "sent after the answer";
}

TEST(Link, ANoticeAfterItsOwnUnbindIsIgnored) {
  Link link("gateway");
  link.NoteBinding(kSid, kMap);
  link.NoteBindAnswer(kSid, kMap);
  link.NoteUnbound(kSid, kMap);

  EXPECT_FALSE(link.NoteTaken(kSid, kMap));
}

}  // namespace
}  // namespace zeze::arch::internal
