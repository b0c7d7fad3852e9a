#include "zeze/transaction/internal/table_walk.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/checkpoint.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/key_range.h"
#include "zeze/transaction/table_base.h"

namespace zeze::internal {

namespace {

// A storage begins after a key, a span with it.
bool BeginsAtFrom(const KeySpan& span, const std::optional<std::string>& after, bool descending) {
  return !after && !descending && span.from;
}

StorageWalk StorageWalkOf(const KeySpan& span, const std::optional<std::string>& after,
                          bool keys_only, const WalkOptions& options) {
  return {.after = after ? after : (options.descending ? span.to : span.from),
          .descending = options.descending,
          .keys_only = keys_only,
          .limit = options.page_size};
}

}  // namespace

BadRows::~BadRows() {
  if (unnamed_ == 0) return;
  ZEZE_LOG_ERROR("a walk of table {} left out {} more rows that cannot be decoded", table_.name(),
                 unnamed_);
}

void BadRows::Tell(std::string_view key, std::string_view value, const std::string& why) {
  constexpr std::size_t kLinesMax = 10;
  if (options_.on_bad_row) {
    options_.on_bad_row({.table = table_.name(), .key = key, .value = value, .why = why});
  } else if (logged_ < kLinesMax) {
    ++logged_;
    ZEZE_LOG_ERROR("a walk leaves out a row of {} bytes: {}; Put replaces it, Remove removes it",
                   value.size(), why);
  } else {
    ++unnamed_;
  }
}

TableWalk::TableWalk(TableBase& table, const WalkOptions& options, RowSink& sink)
    : table_(table), options_(options), sink_(sink) {
  table.CheckAttached();
  ZEZE_REQUIRE(options.page_size > 0,
               fmt::format("a page of table {} must have room for a record", table.name()));
}

Result<void> TableWalk::GiveSpans(const KeySpans& spans, bool keys_only) {
  if (spans.prefix) return GivePrefix(*spans.prefix, keys_only);
  for (std::size_t i = 0; i < spans.spans.size(); ++i) {
    const std::size_t at = options_.descending ? spans.spans.size() - 1 - i : i;
    const Result<bool> more = GiveSpan(spans.spans[at], keys_only);
    if (!more.ok()) return more.error();
    if (!more.value()) break;
  }
  return {};
}

// One span for each length that keys have: which lengths there are shows the key that follows the
// last span.
Result<void> TableWalk::GivePrefix(const std::string& prefix, bool keys_only) {
  const bool descending = options_.descending;
  std::optional<std::size_t> last;
  while (true) {
    KeySpan rest;
    if (last) {
      const KeySpan done = PrefixSpan(prefix, *last);
      (descending ? rest.to : rest.from) = descending ? done.from : done.to;
    } else if (!descending) {
      rest.from = PrefixSpan(prefix, prefix.size()).from;
    }
    const Result<std::optional<std::size_t>> next = FirstLength(rest);
    if (!next.ok()) return next.error();
    std::optional<std::size_t> length = next.value();
    if (length && last == length) length = descending ? *length - 1 : *length + 1;
    const bool done = !length || *length < prefix.size() || (descending && last == std::size_t{0});
    if (done) return {};
    last = length;
    const Result<bool> more = GiveSpan(PrefixSpan(prefix, *length), keys_only);
    if (!more.ok()) return more.error();
    if (!more.value()) return {};
  }
}

Result<bool> TableWalk::GiveSpan(const KeySpan& span, bool keys_only) {
  std::optional<std::string> after;
  do {
    Result<std::optional<std::string>> last = ReadPage(span, after, keys_only);
    if (!last.ok()) return last.error();
    if (!sink_.Give()) return false;
    after = std::move(last).value();
  } while (after);
  return true;
}

Result<std::optional<std::size_t>> TableWalk::FirstLength(const KeySpan& span) {
  const WalkOptions one{.descending = options_.descending, .page_size = 1};
  std::optional<std::string> after;
  do {
    Result<std::optional<std::string>> last = ReadPage(span, after, /*keys_only=*/true, one);
    if (!last.ok()) return last.error();
    if (const auto length = sink_.TakeFirstLength()) return length;
    after = std::move(last).value();
  } while (after);
  return std::optional<std::size_t>();
}

Result<void> TableWalk::GiveStored() {
  std::optional<std::string> after;
  while (true) {
    StoredRows page;
    {
      const ContextLease context(table_.engine()->contexts());
      const ReadScope inside(*context);
      if (!table_.engine()->ReadsAllowed()) return table_.ReadRefused();
      if (table_.storage() == nullptr) return {};
      Result<StoredRows> read = ReadStored({}, after, /*keys_only=*/false, options_);
      if (!read.ok()) return read.error();
      page = std::move(read).value();
    }
    for (const auto& [key, value] : page.rows) {
      sink_.TakeStored(key, value, /*keys_only=*/false);
      if (!sink_.Give()) return {};
    }
    if (!page.cut) return {};
    after = std::move(page.rows.back().first);
  }
}

// A page of encoded rows of the storage. The caller is inside and may read.
Result<TableWalk::StoredRows> TableWalk::ReadStored(const KeySpan& span,
                                                    const std::optional<std::string>& after,
                                                    bool keys_only, const WalkOptions& options) {
  StoredRows page;
  std::size_t bytes = 0;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!span.Contains(key)) return false;
    page.rows.emplace_back(key, keys_only ? std::string_view() : value);
    bytes += key.size() + page.rows.back().second.size();
    page.cut = page.rows.size() >= options.page_size || bytes >= options.page_bytes;
    return !page.cut;
  };
  if (BeginsAtFrom(span, after, options.descending)) {
    const Result<bool> found = table_.storage()->Find(
        *span.from, [&](std::string_view value) { static_cast<void>(add(*span.from, value)); });
    if (!found.ok()) return found.error();
  }
  if (!page.cut) {
    const Result<std::size_t> walked =
        table_.storage()->Walk(StorageWalkOf(span, after, keys_only, options), add);
    if (!walked.ok()) return walked.error();
  }
  return page;
}

// Unsaved inserts are noted before the storage is read: a record that is saved and evicted between
// the two is then seen in the storage, never missed. A row that may have been written since it was
// read, while its record was evicted, is read again (AddRow).
Result<std::optional<std::string>> TableWalk::ReadPage(const KeySpan& span,
                                                       const std::optional<std::string>& after,
                                                       bool keys_only, const WalkOptions& options) {
  // Two contexts: this one says only that somebody reads, so it keeps nothing alive that is made
  // meanwhile; the other one looks at values, row by row.
  const ContextLease reading(table_.engine()->contexts());
  const ReadScope inside(*reading);
  if (!table_.engine()->ReadsAllowed()) return table_.ReadRefused();
  const std::vector<std::string> inserts =
      table_.unsaved_inserts().Page(StorageWalkOf(span, after, keys_only, options),
                                    BeginsAtFrom(span, after, options.descending));
  const std::uint64_t serial = table_.engine()->checkpoint().write_serial();
  const Result<StoredRows> read = ReadStored(span, after, keys_only, options);
  if (!read.ok()) return read.error();
  const auto& [stored, cut] = read.value();

  std::optional<std::string> last;
  const ContextLease context(table_.engine()->contexts());
  std::size_t s = 0;
  std::size_t i = 0;
  std::size_t taken = 0;
  std::size_t bytes = 0;  // About, of the rows that came from the cache.
  bool done = false;
  while (taken < options.page_size && (taken == 0 || bytes < options.page_bytes)) {
    const bool has_stored = s < stored.size();
    // After the last row of a page that was cut others may come before the insert.
    const bool has_insert = i < inserts.size() && span.Contains(inserts[i]) && (has_stored || !cut);
    done = !has_stored && !has_insert && !cut;
    if (!has_stored && !has_insert) break;
    const int order = !has_insert ? -1
                      : !has_stored
                          ? 1
                          : stored[s].first.compare(inserts[i]) * (options.descending ? -1 : 1);
    const std::string& key = order <= 0 ? stored[s].first : inserts[i];
    const std::string* value = order <= 0 ? &stored[s].second : nullptr;
    if (Result<void> added = AddRow(*context, key, value, serial, keys_only, bytes); !added.ok()) {
      return added.error();
    }
    last = key;
    ++taken;
    if (order <= 0) ++s;
    if (order >= 0) ++i;
  }
  if (done) last.reset();
  return last;
}

// The cache wins over the storage's row; null: the key was an unsaved insert. `serial` is of before
// the storage was read.
Result<void> TableWalk::AddRow(Context& context, const std::string& key, const std::string* value,
                               std::uint64_t serial, bool keys_only, std::size_t& bytes) {
  const ReadScope inside(context);
  if (sink_.TakeCached(context, key, keys_only, bytes)) return {};
  std::string reread;
  const bool written = serial % 2 != 0 || table_.engine()->checkpoint().write_serial() != serial;
  if (value == nullptr || written) {
    // Perhaps saved and evicted since: the storage has it now, or it was removed.
    const Result<bool> found = table_.storage()->Find(key, reread);
    if (!found.ok()) return found.error();
    if (!found.value()) return {};
    value = &reread;
  }
  sink_.TakeStored(key, *value, keys_only);
  return {};
}

}  // namespace zeze::internal
