// TestBatches: flushes that carry their number in every row they write, so that half of one, or
// one that came before its predecessor, would show.

#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/check.h"
#include "zeze/storage/storage.h"

namespace zeze {

class TestBatches {
 public:
  static constexpr std::size_t kRowsPerTable = 20;

  struct State {
    int first = 0;  // Lowest and highest number in any row; 0 if there are no rows.
    int last = 0;
    bool whole = true;  // Every row is there in every table, or none is.

    bool operator==(const State&) const = default;
  };

  explicit TestBatches(Storage& storage) : storage_(storage) {
    for (const char* name : {"a", "b", "c"}) tables_.push_back(storage.OpenTable(name).value());
  }

  // Rewrites all rows of all tables, with random bytes that no compression makes small.
  Result<void> Flush(int number, std::size_t value_bytes, bool sync) {
    std::string value = std::to_string(number) + " ";
    while (value.size() < value_bytes) value += static_cast<char>(random_());
    std::vector<std::string> keys;
    for (std::size_t row = 0; row < kRowsPerTable; ++row) keys.push_back(std::to_string(100 + row));
    std::vector<StorageWrite> writes;
    for (StorageTable* table : tables_) {
      for (const std::string& key : keys) {
        writes.push_back({.table = table, .key = key, .value = value});
      }
    }
    return storage_.Flush(writes, sync);
  }

  State Read() {
    State state;
    std::size_t rows = 0;
    for (StorageTable* table : tables_) {
      Result<std::size_t> walked = table->Walk({}, [&](std::string_view, std::string_view value) {
        const int number = std::stoi(std::string(value.substr(0, value.find(' '))));
        state.first = rows == 0 ? number : std::min(state.first, number);
        state.last = std::max(state.last, number);
        ++rows;
        return true;
      });
      ZEZE_CHECK(walked.ok());
    }
    state.whole = rows == 0 || rows == tables_.size() * kRowsPerTable;
    return state;
  }

 private:
  Storage& storage_;
  std::vector<StorageTable*> tables_;
  std::mt19937_64 random_{1};
};

}  // namespace zeze
