// The walks of table.h.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/storage/storage.h"
#include "zeze/transaction/key_range.h"
#include "zeze/transaction/table.h"

namespace zeze {

template <typename K, typename V>
Result<std::optional<K>> Table<K, V>::WalkPage(const std::optional<K>& after,
                                               FunctionRef<bool(const K&, const V&)> visit,
                                               const WalkOptions& options) {
  CheckAttached();
  ZEZE_REQUIRE(storage_ != nullptr, "table " + name_ +
                                        (memory() ? " is a memory" : " is no stored") +
                                        " table: it has no order to page by");
  ZEZE_REQUIRE(options.page_size > 0, "a page of table " + name_ + " must have room for a record");
  std::optional<std::string> start;
  if (after) start = EncodedKey(*after);
  BadRows bad(*this, options);
  while (true) {
    Result<Page> page = ReadPage({}, start, options, false, bad);
    if (!page.ok()) return page.error();
    std::optional<K> last;
    for (Row& row : page.value().rows) {
      last = row.key;
      if (!visit(row.key, *row.value)) return last;
    }
    if (!page.value().last) return std::optional<K>();
    // A key that cannot be decoded is no place to go on: the walk begins again after the last
    // record that was given, and passes it once more.
    Result<K> next = DecodedKey(*page.value().last);
    if (last && next.ok()) return std::optional<K>(std::move(next).value());
    if (last) return last;
    start = page.value().last;  // A page of removed and bad rows only.
  }
}

template <typename K, typename V>
Result<std::size_t> Table<K, V>::WalkStorage(FunctionRef<bool(const K&, const V&)> visit,
                                             const WalkOptions& options) {
  CheckAttached();
  ZEZE_REQUIRE(options.page_size > 0, "a page of table " + name_ + " must have room for a record");
  std::size_t count = 0;
  BadRows bad(*this, options);
  std::optional<std::string> after;
  do {
    StoredRows page;
    {
      const internal::ContextLease context(engine_->contexts());
      const InsideScope inside(*context);
      if (!engine_->ReadsAllowed()) return ReadRefused();
      if (storage_ == nullptr) return std::size_t{0};
      Result<StoredRows> read = ReadStored({}, after, options, false);
      if (!read.ok()) return read.error();
      page = std::move(read).value();
    }
    for (const auto& [key_bytes, value_bytes] : page.rows) {
      Result<Row> row = DecodeRow(key_bytes, value_bytes);
      if (!row.ok()) {
        bad.Tell(key_bytes, value_bytes, row.error().message());
        continue;
      }
      ++count;
      if (!visit(row.value().key, *row.value().value)) return count;
    }
    after.reset();
    if (page.cut) after = std::move(page.rows.back().first);
  } while (after);
  return count;
}

template <typename K, typename V>
template <typename Visit>
bool Table<K, V>::WalkShard(std::size_t shard, Visit visit, const KeyRange<K>* range,
                            std::size_t& count) {
  for (const K& key : CachedKeys(shard)) {
    if (range != nullptr && !range->Contains(key)) continue;
    Row row{key, ReadCached(key)};
    if (!row.value) continue;
    ++count;
    if (!Give(visit, row)) return false;
  }
  return true;
}

template <typename K, typename V>
template <typename Visit>
Result<typename Table<K, V>::Walked> Table<K, V>::WalkStoredSpan(const internal::KeySpan& span,
                                                                 Visit visit,
                                                                 const WalkOptions& options,
                                                                 BadRows& bad) {
  constexpr bool kKeysOnly = std::is_same_v<Visit, FunctionRef<bool(const K&)>>;
  Walked walked;
  std::optional<std::string> after;
  do {
    Result<Page> page = ReadPage(span, after, options, kKeysOnly, bad);
    if (!page.ok()) return page.error();
    for (const Row& row : page.value().rows) {
      ++walked.count;
      walked.stopped = !Give(visit, row);
      if (walked.stopped) return walked;
    }
    after = std::move(page.value().last);
  } while (after);
  return walked;
}

template <typename K, typename V>
template <typename Visit>
Result<std::size_t> Table<K, V>::WalkKeyRange(const KeyRange<K>& range, Visit visit,
                                              const WalkOptions& options) {
  CheckAttached();
  ZEZE_REQUIRE(options.page_size > 0, "a page of table " + name_ + " must have room for a record");
  std::size_t count = 0;
  if (storage_ == nullptr) {
    for (std::size_t shard = 0; shard < internal::RecordMap::kShardCount; ++shard) {
      // Needs nothing that Stop takes away, but ends as other walks do.
      if (!engine_->ReadsAllowed()) return ReadRefused();
      if (!WalkShard(shard, visit, &range, count)) break;
    }
    return count;
  }
  BadRows bad(*this, options);
  Spans spans(*this, range, options);
  while (true) {
    Result<std::optional<internal::KeySpan>> span = spans.Next(bad);
    if (!span.ok()) return span.error();
    if (!span.value()) return count;
    Result<Walked> walked = WalkStoredSpan(*span.value(), visit, options, bad);
    if (!walked.ok()) return walked.error();
    count += walked.value().count;
    if (walked.value().stopped) return count;
  }
}

// The spans of a range one after the other. Those of a prefix are one for each length that keys
// have: which lengths there are shows the key that follows the last span.
template <typename K, typename V>
class Table<K, V>::Spans {
 public:
  Spans(Table& table, const KeyRange<K>& range, const WalkOptions& options)
      : table_(table), range_(range), descending_(options.descending) {
    if (range.prefix()) return;
    spans_ = range.Spans();
    if (!descending_) std::reverse(spans_.begin(), spans_.end());
  }

  Result<std::optional<internal::KeySpan>> Next(BadRows& bad) {
    if constexpr (KeyRange<K>::kHasPrefixes) {
      if (range_.prefix()) return NextLength(bad);
    }
    std::optional<internal::KeySpan> span;
    if (!spans_.empty()) {
      span = std::move(spans_.back());
      spans_.pop_back();
    }
    return span;
  }

 private:
  Result<std::optional<internal::KeySpan>> NextLength(BadRows& bad) {
    const std::size_t shortest = range_.prefix()->size();
    internal::KeySpan rest;
    if (length_) {
      const internal::KeySpan done = range_.SpanOfLength(*length_);
      (descending_ ? rest.to : rest.from) = descending_ ? done.from : done.to;
    } else if (!descending_) {
      rest.from = range_.SpanOfLength(shortest).from;
    }
    Result<std::optional<std::size_t>> next = table_.FirstLength(rest, descending_, bad);
    if (!next.ok()) return next.error();
    std::optional<std::size_t> length = next.value();
    if (length && length_ == length) length = descending_ ? *length - 1 : *length + 1;
    if (!length || *length < shortest || (descending_ && length_ == std::size_t{0})) {
      return std::optional<internal::KeySpan>();
    }
    length_ = length;
    return std::optional(range_.SpanOfLength(*length));
  }

  Table& table_;
  const KeyRange<K>& range_;
  const bool descending_;
  std::vector<internal::KeySpan> spans_;  // The next one is the last.
  std::optional<std::size_t> length_;     // Of the last span of a prefix.
};

template <typename K, typename V>
Result<std::optional<std::size_t>> Table<K, V>::FirstLength(const internal::KeySpan& span,
                                                            bool descending, BadRows& bad)
  requires KeyRange<K>::kHasPrefixes
{
  std::optional<std::string> after;
  do {
    Result<Page> page = ReadPage(span, after, {.descending = descending, .page_size = 1},
                                 /*keys_only=*/true, bad);
    if (!page.ok()) return page.error();
    for (const Row& row : page.value().rows) {
      return std::optional(KeyRange<K>::BytesOf(row.key).size());
    }
    after = std::move(page.value().last);
  } while (after);
  return std::optional<std::size_t>();
}

template <typename K, typename V>
Result<typename Table<K, V>::StoredRows> Table<K, V>::ReadStored(
    const internal::KeySpan& span, const std::optional<std::string>& after,
    const WalkOptions& options, bool keys_only) {
  StoredRows page;
  std::size_t bytes = 0;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!span.Contains(key)) return false;
    page.rows.emplace_back(key, keys_only ? std::string_view() : value);
    bytes += key.size() + page.rows.back().second.size();
    page.cut = page.rows.size() >= options.page_size || bytes >= options.page_bytes;
    return !page.cut;
  };
  if (BeginsAtFrom(span, after, options)) {
    Result<bool> found = storage_->Find(
        *span.from, [&](std::string_view value) { static_cast<void>(add(*span.from, value)); });
    if (!found.ok()) return found.error();
  }
  if (!page.cut) {
    Result<std::size_t> walked =
        storage_->Walk(StorageWalkOf(span, after, options, keys_only), add);
    if (!walked.ok()) return walked.error();
  }
  return page;
}

template <typename K, typename V>
Result<typename Table<K, V>::Page> Table<K, V>::ReadPage(const internal::KeySpan& span,
                                                         const std::optional<std::string>& after,
                                                         const WalkOptions& options, bool keys_only,
                                                         BadRows& bad) {
  // Two contexts: this one says only that somebody reads, so it keeps nothing alive that is made
  // meanwhile; the other one looks at values, row by row.
  const internal::ContextLease reading(engine_->contexts());
  const InsideScope inside(*reading);
  if (!engine_->ReadsAllowed()) return ReadRefused();
  const bool begins = BeginsAtFrom(span, after, options);
  const std::vector<std::string> inserts =
      UnsavedInserts(StorageWalkOf(span, after, options, keys_only), begins);
  const std::uint64_t serial = engine_->checkpoint().write_serial();
  Result<StoredRows> read = ReadStored(span, after, options, keys_only);
  if (!read.ok()) return read.error();
  const auto& [stored, cut] = read.value();

  Page page;
  const internal::ContextLease context(engine_->contexts());
  std::size_t s = 0;
  std::size_t i = 0;
  std::size_t taken = 0;
  bool done = false;
  while (taken < options.page_size && (taken == 0 || page.bytes < options.page_bytes)) {
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
    if (Result<void> added = AddRow(*context, key, value, serial, keys_only, page, bad);
        !added.ok()) {
      return added.error();
    }
    page.last = key;
    ++taken;
    if (order <= 0) ++s;
    if (order >= 0) ++i;
  }
  if (done) page.last.reset();
  return page;
}

template <typename K, typename V>
Result<void> Table<K, V>::AddRow(internal::Context& context, const std::string& key_bytes,
                                 const std::string* value_bytes, std::uint64_t serial,
                                 bool keys_only, Page& page, BadRows& bad) {
  Result<K> key = DecodedKey(key_bytes);
  if (!key.ok()) {
    bad.Tell(key_bytes, value_bytes == nullptr ? "" : *value_bytes, key.error().message());
    return {};
  }
  const InsideScope inside(context);
  Cached cached = LookUp(context, key.value(), keys_only);
  if (cached.known) {
    page.bytes += cached.bytes;
    if (cached.exists) page.rows.push_back({std::move(key).value(), std::move(cached.value)});
    return {};
  }
  std::string reread;
  const bool written = serial % 2 != 0 || engine_->checkpoint().write_serial() != serial;
  if (value_bytes == nullptr || written) {
    // Perhaps saved and evicted since: the storage has it now, or it was removed.
    Result<bool> found = storage_->Find(key_bytes, reread);
    if (!found.ok()) return found.error();
    if (!found.value()) return {};
    value_bytes = &reread;
  }
  if (keys_only) {
    page.rows.push_back({std::move(key).value(), std::nullopt});
    return {};
  }
  Result<Row> row = DecodeRow(key_bytes, *value_bytes);
  if (row.ok()) {
    page.rows.push_back(std::move(row).value());
  } else {
    bad.Tell(key_bytes, *value_bytes, row.error().message());
  }
  return {};
}

template <typename K, typename V>
std::vector<K> Table<K, V>::CachedKeys(std::size_t shard) {
  const internal::ContextLease context(engine_->contexts());
  const InsideScope inside(*context);
  std::vector<internal::Record*> records;
  records_.Snapshot(context->participant, shard, records);
  std::vector<K> keys;
  keys.reserve(records.size());
  for (const internal::Record* record : records) {
    keys.push_back(static_cast<const RecordType*>(record)->key);
  }
  return keys;
}

template <typename K, typename V>
Result<typename Table<K, V>::Row> Table<K, V>::DecodeRow(std::string_view key_bytes,
                                                         std::string_view value_bytes) const {
  Result<K> key = DecodedKey(key_bytes);
  if (!key.ok()) return key.error();
  Row row{std::move(key).value(), V{}};
  ByteReader in(value_bytes);
  row.value->Decode(in);
  if (in.ok()) return row;
  return Error(ErrorCode::kCorrupt, "cannot decode record " + KeyText(row.key) + " of table " +
                                        name_ + ": " + in.error_message());
}

}  // namespace zeze
