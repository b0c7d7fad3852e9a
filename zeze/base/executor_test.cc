#include "zeze/base/executor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace zeze {
namespace {

TEST(Task, CallsWhatItWasMadeOf) {
  int calls = 0;
  Task task = [&calls] { ++calls; };

  task();

  EXPECT_EQ(calls, 1);
  EXPECT_STREQ(task.name(), "unnamed task");
}

TEST(Task, CarriesItsNameWhenMoved) {
  Task task("save player", [] {});

  Task moved = std::move(task);

  EXPECT_STREQ(moved.name(), "save player");
}

TEST(Task, OwnsMoveOnlyStateAndDestroysItOnce) {
  const auto witness = std::make_shared<int>(7);
  int seen = 0;
  {
    Task task = [owned = std::make_unique<std::shared_ptr<int>>(witness), &seen] {
      seen = **owned;
    };
    Task moved = std::move(task);
    EXPECT_FALSE(task);  // NOLINT(bugprone-use-after-move): that is the point.
    Task assigned;
    assigned = std::move(moved);
    assigned();
    EXPECT_EQ(witness.use_count(), 2);
  }

  EXPECT_EQ(seen, 7);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(Task, KeepsLargeCallablesOnTheHeap) {
  std::array<std::string, 8> words;
  words.fill("a text that is too long for a small string");
  std::size_t length = 0;

  Task task = [words, &length] { length = words[7].size(); };
  Task moved = std::move(task);
  moved();

  EXPECT_EQ(length, words[7].size());
}

TEST(Task, KeepsOveralignedCallablesAligned) {
  struct alignas(64) Block {
    int value = 5;
  };
  bool aligned = false;
  Task task = [block = Block(), &aligned] {
    aligned = reinterpret_cast<std::uintptr_t>(&block) % 64 == 0 && block.value == 5;
  };

  Task moved = std::move(task);
  moved();

  EXPECT_TRUE(aligned);
}

TEST(TaskDeathTest, CallingAnEmptyTaskIsCaught) {
  EXPECT_DEATH(Task()(), "check failed: operations_ != nullptr");
}

}  // namespace
}  // namespace zeze
