// RedoJournal: one queue of a redo store.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/check.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/redo/redo_records.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"
#include "zeze/storage/storage.h"

namespace zeze {

using redo::ParsedRowKey;
using redo::ParseRowKey;
using redo::RowKey;

namespace {

// Tasks that are deleted in one step; more would delay threads that add.
constexpr std::int64_t kCompactBatch = 4096;
// Tasks that Adopt can give new ids in one write.
constexpr std::size_t kAdoptTasksMax = 1'000'000;
// How exact the age of confirmed tasks is.
constexpr std::int64_t kMarkPeriodMs = 60'000;

Result<void> CheckAdopt(std::string_view name, const RedoPosition& at, std::int64_t server_id,
                        std::int64_t first_new) {
  const std::int64_t done = std::max(at.floor_id, at.confirmed_id);
  if (first_new <= done || first_new > at.added_id + 1) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("redo queue '{}' has had {} tasks done and has {}: say which of them is "
                    "the first that was added after the copy was made, from {} to {}",
                    name, done, at.added_id, done + 1, at.added_id + 1));
  }
  if (server_id < first_new - 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queue '{}': the server has done {} tasks, so that {} to {} of "
                             "this store would be lost",
                             name, server_id, server_id + 1, first_new - 1));
  }
  if (at.added_id - done > static_cast<std::int64_t>(kAdoptTasksMax)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queue '{}' has {} tasks, more than {} cannot get new ids", name,
                             at.added_id - done, kAdoptTasksMax));
  }
  return {};
}

}  // namespace

Result<void> RedoJournal::FindLast() {
  MutexLock lock(mutex_);
  added_id_ = record_.floor_id;
  last_chain_ = record_.floor_chain;
  marked_id_ = record_.confirmed_id;
  std::optional<Error> error;
  const auto last = [&](std::string_view key, std::string_view value) {
    Result<ParsedRowKey> parsed = ParseRowKey(key);
    if (!parsed.ok()) {
      error = parsed.error();
      return false;
    }
    if (parsed.value().queue != number_) return false;
    Result<redo::TaskRecord> task = DecodeBean<redo::TaskRecord>(value);
    if (!task.ok()) {
      error = task.error();
      return false;
    }
    added_id_ = parsed.value().number;
    last_chain_ = task.value().chain;
    return false;
  };
  Result<std::size_t> walked = store_.task_table_->Walk(
      {.after = RowKey(number_ + 1, 0), .descending = true, .limit = 1}, last);
  if (!walked.ok()) return walked.error();
  if (error.has_value()) return *error;
  // What was confirmed is on the disk, or the disk has lost what it had acknowledged.
  if (added_id_ < record_.confirmed_id) {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("redo queue '{}': task {} was confirmed, but the last one in the store "
                    "is {}: the store has lost tasks",
                    name_, record_.confirmed_id, added_id_.load()));
  }
  return {};
}

Result<std::int64_t> RedoJournal::Add(std::int32_t type, std::string_view param) {
  const NewRedoTask task{.type = type, .param = param};
  return AddMany({&task, 1});
}

Result<std::int64_t> RedoJournal::AddMany(std::span<const NewRedoTask> tasks) {
  for (const NewRedoTask& task : tasks) {
    if (task.param.size() > kRedoParamBytesMax) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("redo queue '{}': the parameter of a task of type {} has {} bytes; at "
                      "most {} can be sent",
                      name_, task.type, task.param.size(), kRedoParamBytesMax));
    }
  }
  if (tasks.empty()) return added_id();
  return store_.Commit(*this, tasks);
}

RedoPosition RedoJournal::position() const {
  MutexLock lock(mutex_);
  return {.floor_id = record_.floor_id,
          .confirmed_id = record_.confirmed_id,
          .saved_id = record_.saved_id,
          .added_id = added_id(),
          .bound = record_.bound,
          .adopted_id = record_.adopted_id,
          .says_saved = record_.says_saved};
}

Result<std::vector<RedoTask>> RedoJournal::Read(std::int64_t after, std::size_t count_max,
                                                std::size_t bytes_max) const {
  const std::int64_t last = added_id();
  std::vector<RedoTask> tasks;
  if (after >= last) return tasks;
  std::size_t bytes = 0;
  std::optional<Error> error;
  Result<std::size_t> walked = store_.task_table_->Walk(
      {.after = RowKey(number_, after), .limit = count_max},
      [&](std::string_view key, std::string_view value) {
        Result<ParsedRowKey> parsed = ParseRowKey(key);
        if (!parsed.ok()) {
          error = parsed.error();
          return false;
        }
        const std::int64_t id = parsed.value().number;
        if (parsed.value().queue != number_ || id > last) return false;
        if (id != after + 1 + static_cast<std::int64_t>(tasks.size())) return false;
        Result<redo::TaskRecord> record = DecodeBean<redo::TaskRecord>(value);
        if (!record.ok()) {
          error = record.error();
          return false;
        }
        bytes += value.size();
        tasks.push_back({id, std::move(record).value()});
        return bytes < bytes_max;
      });
  if (!walked.ok()) return walked.error();
  if (error.has_value()) return *error;
  if (tasks.empty()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("redo queue '{}': task {} is not in the store, although task {} was "
                             "added",
                             name_, after + 1, last));
  }
  return tasks;
}

Result<RedoTask> RedoJournal::ReadOne(std::int64_t id) const {
  if (id > added_id()) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("redo queue '{}' has no task {}: the last one is {}", name_, id, added_id()));
  }
  Result<std::vector<RedoTask>> tasks = Read(id - 1, 1, 1);
  if (!tasks.ok()) return tasks.error();
  return std::move(tasks.value().front());
}

Result<std::optional<std::int64_t>> RedoJournal::ChainAt(std::int64_t id) const {
  {
    MutexLock lock(mutex_);
    if (id == record_.floor_id) return std::optional<std::int64_t>(record_.floor_chain);
    if (id < record_.floor_id || id > added_id()) return std::optional<std::int64_t>();
  }
  Result<RedoTask> task = ReadOne(id);
  if (!task.ok()) return task.error();
  return std::optional<std::int64_t>(task.value().record.chain);
}

Result<std::optional<std::int64_t>> RedoJournal::KeptSince() const {
  MutexLock lock(mutex_);
  std::optional<std::int64_t> since;
  Result<std::size_t> walked = store_.mark_table_->Walk(
      {.after = RowKey(number_, 0), .limit = 1}, [&](std::string_view key, std::string_view) {
        Result<ParsedRowKey> parsed = ParseRowKey(key);
        if (parsed.ok() && parsed.value().queue == number_) since = parsed.value().number;
        return false;
      });
  if (!walked.ok()) return walked.error();
  return since;
}

std::chrono::nanoseconds RedoJournal::AgeBehind(std::int64_t id) const {
  if (id >= added_id()) return std::chrono::nanoseconds(0);
  const Result<std::vector<RedoTask>> next = Read(id, 1, 1);
  if (!next.ok()) return std::chrono::nanoseconds(0);
  const std::int64_t added_ms = next.value().front().record.added_ms;
  return std::chrono::milliseconds(std::max<std::int64_t>(store_.NowMs() - added_ms, 0));
}

Result<void> RedoJournal::SaveRecord(const redo::QueueRecord& record, bool sync) {
  const std::string bytes = EncodeBean(record);
  const StorageWrite write{.table = store_.queue_table_, .key = name_, .value = bytes};
  if (Result<void> written = store_.storage_->Flush({&write, 1}, sync); !written.ok()) {
    return written;
  }
  record_ = record;
  return {};
}

Result<void> RedoJournal::Bind() {
  MutexLock lock(mutex_);
  if (record_.bound) return {};
  redo::QueueRecord record = record_;
  record.bound = true;
  return SaveRecord(record, /*sync=*/true);
}

Result<void> RedoJournal::Confirm(std::int64_t confirmed_id, std::optional<std::int64_t> saved_id) {
  MutexLock lock(mutex_);
  ZEZE_CHECK(confirmed_id <= added_id());
  redo::QueueRecord record = record_;
  record.confirmed_id = confirmed_id;
  // What a server saved may be gone with its database; no task after its last one is saved.
  record.saved_id = std::min(saved_id.value_or(record.saved_id), confirmed_id);
  saved_known_ = saved_id.has_value();
  record.says_saved = record.says_saved || saved_known_;
  if (confirmed_id > record.adopted_id) record.adopted_id = -1;
  const bool same = record.confirmed_id == record_.confirmed_id &&
                    record.saved_id == record_.saved_id && record.says_saved == record_.says_saved;
  if (same) return {};
  if (Result<void> saved = SaveRecord(record, /*sync=*/false); !saved.ok()) return saved;
  return Mark(store_.NowMs());
}

Result<void> RedoJournal::Mark(std::int64_t now_ms) {
  if (record_.confirmed_id <= marked_id_) {
    marked_id_ = record_.confirmed_id;
    return {};
  }
  if (now_ms < marked_ms_ + kMarkPeriodMs && now_ms >= marked_ms_) return {};
  const std::string key = RowKey(number_, now_ms);
  const std::string bytes = EncodeBean(redo::MarkRecord{.confirmed_id = record_.confirmed_id});
  const StorageWrite write{.table = store_.mark_table_, .key = key, .value = bytes};
  Result<void> written = store_.storage_->Flush({&write, 1}, /*sync=*/false);
  if (!written.ok()) return written;
  marked_ms_ = now_ms;
  marked_id_ = record_.confirmed_id;
  return {};
}

// Up to where nothing need be kept: confirmed so long ago, or by so many others; and saved by the
// server, if it says what it has saved. If it does not, only age counts.
Result<std::int64_t> RedoJournal::CompactLimit(const RedoKeepOptions& keep) {
  const std::int64_t keep_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(keep.keep_for).count();
  // Nothing is older than time, and negative numbers come after all others in the table.
  const std::int64_t old_ms = std::max<std::int64_t>(store_.NowMs() - keep_ms, 0);
  std::int64_t limit = record_.floor_id;
  std::optional<Error> error;
  Result<std::size_t> walked = store_.mark_table_->Walk(
      {.after = RowKey(number_, old_ms + 1), .descending = true, .limit = 1},
      [&](std::string_view key, std::string_view value) {
        Result<ParsedRowKey> parsed = ParseRowKey(key);
        Result<redo::MarkRecord> mark = DecodeBean<redo::MarkRecord>(value);
        if (!parsed.ok() || !mark.ok()) {
          error = !parsed.ok() ? parsed.error() : mark.error();
        } else if (parsed.value().queue == number_) {
          limit = std::max(limit, mark.value().confirmed_id);
        }
        return false;
      });
  if (!walked.ok()) return walked.error();
  if (error.has_value()) return *error;
  if (saved_known_) limit = std::max(limit, record_.confirmed_id - keep.keep_max);
  limit = std::min(limit, record_.confirmed_id);
  if (saved_known_) limit = std::min(limit, record_.saved_id);
  return limit;
}

Result<bool> RedoJournal::Compact(const RedoKeepOptions& keep) {
  MutexLock lock(mutex_);
  Result<std::int64_t> wanted = CompactLimit(keep);
  if (!wanted.ok()) return wanted.error();
  const std::int64_t limit = std::min(wanted.value(), record_.floor_id + kCompactBatch);
  if (limit <= record_.floor_id) return false;
  Result<RedoTask> last = ReadOne(limit);
  if (!last.ok()) return last.error();

  redo::QueueRecord record = record_;
  record.floor_id = limit;
  record.floor_chain = last.value().record.chain;
  std::vector<std::string> keys;
  for (std::int64_t id = record_.floor_id + 1; id <= limit; ++id) {
    keys.push_back(RowKey(number_, id));
  }
  std::vector<StorageWrite> writes;
  writes.reserve(keys.size() + 1);
  for (const std::string& key : keys) {
    writes.push_back(StorageWrite::Remove(store_.task_table_, key));
  }
  const std::string bytes = EncodeBean(record);
  writes.push_back({.table = store_.queue_table_, .key = name_, .value = bytes});
  // Marks of what is gone.
  std::vector<std::string> marks;
  Result<std::size_t> walked = store_.mark_table_->Walk(
      {.after = RowKey(number_, 0)}, [&](std::string_view key, std::string_view value) {
        Result<ParsedRowKey> parsed = ParseRowKey(key);
        if (!parsed.ok() || parsed.value().queue != number_) return false;
        Result<redo::MarkRecord> mark = DecodeBean<redo::MarkRecord>(value);
        if (!mark.ok() || mark.value().confirmed_id > limit) return false;
        marks.emplace_back(key);
        return true;
      });
  if (!walked.ok()) return walked.error();
  for (const std::string& key : marks) {
    writes.push_back(StorageWrite::Remove(store_.mark_table_, key));
  }
  if (Result<void> written = store_.storage_->Flush(writes, /*sync=*/false); !written.ok()) {
    return written.error();
  }
  record_ = record;
  return true;
}

Result<void> RedoJournal::Skip(std::int64_t id) {
  Result<RedoTask> task = ReadOne(id);
  if (!task.ok()) return task.error();
  MutexLock lock(mutex_);
  if (id <= record_.confirmed_id) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queue '{}': task {} is done, the last one that is done is {}",
                             name_, id, record_.confirmed_id));
  }
  task.value().record.skip = true;
  const std::string key = RowKey(number_, id);
  const std::string bytes = EncodeBean(task.value().record);
  const StorageWrite writes[] = {
      {.table = store_.task_table_, .key = key, .value = bytes},
      {.table = store_.skipped_table_, .key = key, .value = bytes},
  };
  return store_.storage_->Flush(writes, /*sync=*/true);
}

Result<void> RedoJournal::Adopt(std::int64_t server_id, std::int64_t server_chain,
                                std::int64_t first_new) {
  const RedoPosition at = position();
  const std::int64_t done = std::max(at.floor_id, at.confirmed_id);
  if (Result<void> can = CheckAdopt(name_, at, server_id, first_new); !can.ok()) return can;
  std::vector<RedoTask> tasks;  // All that are not confirmed.
  while (done + static_cast<std::int64_t>(tasks.size()) < at.added_id) {
    Result<std::vector<RedoTask>> page =
        Read(done + static_cast<std::int64_t>(tasks.size()), 4096, std::size_t{16} << 20);
    if (!page.ok()) return page.error();
    for (RedoTask& task : page.value()) tasks.push_back(std::move(task));
  }

  MutexLock lock(mutex_);
  redo::QueueRecord record = record_;
  record.floor_id = server_id;
  record.floor_chain = server_chain;
  record.confirmed_id = server_id;
  record.saved_id = 0;
  record.bound = true;
  record.adopted_id = server_id;
  std::map<std::string, std::string> puts;
  std::map<std::string, bool> rows;         // By key: whether it is removed.
  std::map<std::string, std::string> kept;  // Done by the server, as the operator says.
  std::int64_t chain = server_chain;
  for (std::int64_t id = at.floor_id + 1; id <= done; ++id) rows[RowKey(number_, id)] = true;
  for (const RedoTask& task : tasks) {
    rows[RowKey(number_, task.id)] = true;
    if (task.id < first_new) kept[RowKey(number_, task.id)] = EncodeBean(task.record);
  }
  for (RedoTask& task : tasks) {
    if (task.id < first_new) continue;
    const std::int64_t id = server_id + 1 + task.id - first_new;
    chain =
        redo::NextChain(chain, id, task.record.type, task.record.added_ms, task.record.param.bytes);
    task.record.chain = chain;
    const std::string key = RowKey(number_, id);
    rows[key] = false;
    puts[key] = EncodeBean(task.record);
  }
  std::vector<StorageWrite> writes;
  writes.reserve(rows.size() + 1);
  for (const auto& [key, remove] : rows) {
    writes.push_back(
        remove ? StorageWrite::Remove(store_.task_table_, key)
               : StorageWrite{.table = store_.task_table_, .key = key, .value = puts.at(key)});
  }
  for (const auto& [key, value] : kept) {
    writes.push_back({.table = store_.skipped_table_, .key = key, .value = value});
  }
  const std::string bytes = EncodeBean(record);
  writes.push_back({.table = store_.queue_table_, .key = name_, .value = bytes});
  if (Result<void> written = store_.storage_->Flush(writes, /*sync=*/true); !written.ok()) {
    return written;
  }
  record_ = record;
  last_chain_ = chain;
  added_id_ = server_id + at.added_id - first_new + 1;
  return {};
}

void RedoJournal::OnAdded(std::function<void()> callback) {
  MutexLock lock(callback_mutex_);
  on_added_ = std::move(callback);
}

}  // namespace zeze
