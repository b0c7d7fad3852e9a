#include "zeze/storage/sql/sql_flush.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/sql/sql_connection.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// The keys of each chunk; tables are only compared.
class FlushCutTest : public testing::Test {
 protected:
  void Put(std::size_t table, const std::string& key) { Add({.table = Table(table)}, key); }
  void Remove(std::size_t table, const std::string& key) {
    Add({.table = Table(table), .remove = true}, key);
  }

  std::vector<std::string> Cut(const FlushCut& cut) {
    std::vector<std::string> chunks;
    ForEachChunk(writes_, cut, [&](std::span<const StorageWrite> chunk) {
      std::string& keys = chunks.emplace_back();
      for (const StorageWrite& write : chunk) keys += write.key;
      return SqlAnswer();
    });
    return chunks;
  }

  std::vector<StorageWrite> writes_;

 private:
  StorageTable* Table(std::size_t table) {
    return reinterpret_cast<StorageTable*>(&places_[table]);
  }
  void Add(StorageWrite write, const std::string& key) {
    keys_.push_back(std::make_unique<std::string>(key));
    write.key = *keys_.back();
    writes_.push_back(write);
  }

  double places_[2] = {};
  std::vector<std::unique_ptr<std::string>> keys_;
};

TEST_F(FlushCutTest, NothingIsNoChunk) {
  EXPECT_TRUE(Cut({.bytes_max = 10}).empty());
}

TEST_F(FlushCutTest, EachTableHasChunksOfItsOwn) {
  Put(0, "a");
  Put(0, "b");
  Put(1, "c");
  EXPECT_EQ(Cut({.bytes_max = 10}), (std::vector<std::string>{"ab", "c"}));
}

TEST_F(FlushCutTest, PutsAndRemovesAreCutApartWhereTheyAreDifferentStatements) {
  Put(0, "a");
  Remove(0, "b");
  Remove(0, "c");
  EXPECT_EQ(Cut({.bytes_max = 10}), std::vector<std::string>{"abc"});
  EXPECT_EQ(Cut({.bytes_max = 10, .puts_apart = true}), (std::vector<std::string>{"a", "bc"}));
}

TEST_F(FlushCutTest, ARowThatIsTooLargeStandsAlone) {
  Put(0, "a");
  Put(0, "bbbb");
  Put(0, "c");
  Put(0, "d");
  EXPECT_EQ(Cut({.bytes_max = 3}), (std::vector<std::string>{"a", "bbbb", "cd"}));
  EXPECT_EQ(Cut({.bytes_max = 3, .row_overhead_bytes = 1}),
            (std::vector<std::string>{"a", "bbbb", "c", "d"}));
}

TEST_F(FlushCutTest, TheFirstFailureEndsIt) {
  Put(0, "a");
  Put(1, "b");
  int calls = 0;
  const SqlAnswer answer = ForEachChunk(writes_, {.bytes_max = 9}, [&](auto) -> SqlAnswer {
    ++calls;
    return {SqlFailure::kLost, "gone"};
  });
  EXPECT_EQ(answer.failure(), SqlFailure::kLost);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace zeze
