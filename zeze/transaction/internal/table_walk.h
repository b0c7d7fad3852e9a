// TableWalk: reads what storage and cache have of a table, by encoded keys and page by page. Knows
// no types: what a row is says the table, by its RowSink.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/key_range.h"
#include "zeze/transaction/table_base.h"

namespace zeze::internal {

// Tells one walk's bad rows to its options, or to the log.
class BadRows {
 public:
  BadRows(const TableBase& table, const WalkOptions& options) : table_(table), options_(options) {}
  ~BadRows();
  BadRows(const BadRows&) = delete;
  BadRows& operator=(const BadRows&) = delete;

  void Tell(std::string_view key, std::string_view value, const std::string& why);

 private:
  const TableBase& table_;
  const WalkOptions& options_;
  std::size_t logged_ = 0;
  std::size_t unnamed_ = 0;
};

// The rows of the page that is being read, decoded, until the visitor gets them.
class RowSink {
 public:
  RowSink() = default;
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;
  virtual ~RowSink() = default;

  // Takes the row if the cache has it. False: the cache does not know the newest committed state of
  // the key. Adds about how many bytes an unsaved value has. The context is inside.
  virtual bool TakeCached(Context& context, std::string_view key, bool keys_only,
                          std::size_t& bytes) = 0;
  // Takes a row as the storage has it, or tells that it is bad.
  virtual void TakeStored(std::string_view key, std::string_view value, bool keys_only) = 0;

  // Gives the rows to the visitor. False: it wants no more.
  virtual bool Give() = 0;
  // The length of the first row's key, if there is a row; gives nobody anything. Of texts only.
  virtual std::optional<std::size_t> TakeFirstLength() = 0;
};

class TableWalk {
 public:
  // Throws UsageError if the table has no engine, or a page no room.
  TableWalk(TableBase& table, const WalkOptions& options, RowSink& sink);

  // Storage and cache merged, until the visitor has had enough. The spans follow each other.
  Result<void> GiveSpans(const KeySpans& spans, bool keys_only);

  // Rows of the storage alone.
  Result<void> GiveStored();

  // The next keys of a span, after (before) `after`. Returns the key to go on after; none: the span
  // is done.
  Result<std::optional<std::string>> ReadPage(const KeySpan& span,
                                              const std::optional<std::string>& after,
                                              bool keys_only) {
    return ReadPage(span, after, keys_only, options_);
  }

 private:
  struct StoredRows {
    std::vector<std::pair<std::string, std::string>> rows;
    bool cut = false;  // The span may have more rows.
  };

  Result<std::optional<std::string>> ReadPage(const KeySpan& span,
                                              const std::optional<std::string>& after,
                                              bool keys_only, const WalkOptions& options);
  Result<StoredRows> ReadStored(const KeySpan& span, const std::optional<std::string>& after,
                                bool keys_only, const WalkOptions& options);
  Result<void> AddRow(Context& context, const std::string& key, const std::string* value,
                      std::uint64_t serial, bool keys_only, std::size_t& bytes);
  // The length of the first key in the span.
  Result<std::optional<std::size_t>> FirstLength(const KeySpan& span);
  Result<bool> GiveSpan(const KeySpan& span, bool keys_only);
  Result<void> GivePrefix(const std::string& prefix, bool keys_only);

  TableBase& table_;
  const WalkOptions& options_;
  RowSink& sink_;
};

}  // namespace zeze::internal
