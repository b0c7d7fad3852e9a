#include "zeze/redo/redo_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/stable_sort.h"
#include "zeze/bean/codec.h"
#include "zeze/redo/redo_records.h"
#include "zeze/redo/run_task.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage.h"

namespace zeze {

namespace {

constexpr std::string_view kStoreKey = "store";

std::int64_t RandomId() {
  std::random_device device;
  std::int64_t id = 0;
  while (id == 0) {
    id = static_cast<std::int64_t>((std::uint64_t{device()} << 32 | device()) >> 1);
  }
  return id;
}

}  // namespace

// The tasks that one thread adds in one call.
struct RedoStore::PendingAdd {
  RedoJournal* journal = nullptr;
  std::span<const NewRedoTask> tasks = {};
  std::int64_t last_id = 0;  // Out.
};

// The tasks that are written and synced together.
struct RedoStore::Group {
  std::vector<PendingAdd*> adds;

  Mutex mutex;
  CondVar changed;
  bool done ZEZE_GUARDED_BY(mutex) = false;
  bool leader_wanted ZEZE_GUARDED_BY(mutex) = false;  // One of its threads is to write it.
  Result<void> result ZEZE_GUARDED_BY(mutex);
};

Result<std::shared_ptr<RedoStore>> RedoStore::Open(const RedoStoreOptions& options) {
  Result<std::unique_ptr<Storage>> storage =
      OpenRocksDbStorage({.directory = options.directory,
                          .create_if_missing = options.create_if_missing && !options.read_only,
                          .read_only = options.read_only,
                          .block_cache_bytes = std::size_t{8} << 20,
                          .memtable_bytes = std::size_t{32} << 20});
  if (!storage.ok()) return storage.error();
  return Open(std::move(storage).value(), *options.clock, options.read_only);
}

Result<std::shared_ptr<RedoStore>> RedoStore::Open(std::unique_ptr<Storage> storage, Clock& clock,
                                                   bool read_only) {
  std::shared_ptr<RedoStore> store(new RedoStore(std::move(storage), clock));
  if (Result<void> loaded = store->Load(read_only); !loaded.ok()) return loaded.error();
  return store;
}

RedoStore::~RedoStore() = default;

Result<void> RedoStore::Load(bool read_only) {
  const std::pair<std::string_view, StorageTable**> tables[] = {{"store", &store_table_},
                                                                {"queues", &queue_table_},
                                                                {"tasks", &task_table_},
                                                                {"marks", &mark_table_},
                                                                {"skipped", &skipped_table_}};
  for (const auto& [name, table] : tables) {
    Result<StorageTable*> opened = storage_->OpenTable(name);
    if (!opened.ok()) return opened.error();
    *table = opened.value();
  }
  std::string bytes;
  Result<bool> found = store_table_->Find(kStoreKey, bytes);
  if (!found.ok()) return found.error();
  if (found.value()) {
    Result<redo::StoreRecord> record = DecodeBean<redo::StoreRecord>(bytes);
    if (!record.ok()) return record.error();
    record_ = record.value();
  } else {
    record_.store_id = RandomId();
  }
  // Also when it is there: what an earlier process wrote and did not sync is synced with it, before
  // any of that is sent.
  bytes = EncodeBean(record_);
  const StorageWrite write{.table = store_table_, .key = kStoreKey, .value = bytes};
  if (!read_only) {
    Result<void> written = storage_->Flush({&write, 1}, /*sync=*/true);
    if (!written.ok()) return written;
  }

  MutexLock lock(queues_mutex_);
  std::optional<Error> error;
  Result<std::size_t> walked =
      queue_table_->Walk({}, [&](std::string_view name, std::string_view value) {
        queues_mutex_.AssertHeld();
        Result<redo::QueueRecord> record = DecodeBean<redo::QueueRecord>(value);
        if (!record.ok()) {
          error = record.error();
          return false;
        }
        journals_.emplace(name, std::unique_ptr<RedoJournal>(
                                    new RedoJournal(*this, std::string(name), record.value())));
        return true;
      });
  if (!walked.ok()) return walked.error();
  if (error.has_value()) return *error;
  for (auto& [name, journal] : journals_) {
    if (Result<void> ready = journal->FindLast(); !ready.ok()) return ready;
  }
  return {};
}

Result<RedoJournal*> RedoStore::OpenQueue(std::string_view name) {
  if (name.empty() || name.size() > kRedoQueueNameBytesMax) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" cannot be the name of a redo queue: expected 1 to {} bytes",
                             name, kRedoQueueNameBytesMax));
  }
  MutexLock lock(queues_mutex_);
  if (auto it = journals_.find(name); it != journals_.end()) return it->second.get();
  redo::StoreRecord record = record_;
  record.queues += 1;
  const redo::QueueRecord queue{.number = record.queues,
                                .floor_chain = redo::FirstChain(record.store_id, name)};
  const std::string store_bytes = EncodeBean(record);
  const std::string queue_bytes = EncodeBean(queue);
  const StorageWrite writes[] = {
      {.table = store_table_, .key = kStoreKey, .value = store_bytes},
      {.table = queue_table_, .key = name, .value = queue_bytes},
  };
  if (Result<void> written = storage_->Flush(writes, /*sync=*/true); !written.ok()) {
    return written.error();
  }
  record_.queues = record.queues;  // And nothing else: id() is read without a lock.
  std::unique_ptr<RedoJournal> journal(new RedoJournal(*this, std::string(name), queue));
  if (Result<void> ready = journal->FindLast(); !ready.ok()) return ready.error();
  return journals_.emplace(name, std::move(journal)).first->second.get();
}

std::vector<std::string> RedoStore::Queues() const {
  MutexLock lock(queues_mutex_);
  std::vector<std::string> names;
  names.reserve(journals_.size());
  for (const auto& [name, journal] : journals_) names.push_back(name);
  return names;
}

std::int64_t RedoStore::NowMs() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             clock_.SystemNow().time_since_epoch())
      .count();
}

Result<std::int64_t> RedoStore::Commit(RedoJournal& journal, std::span<const NewRedoTask> tasks) {
  PendingAdd add{.journal = &journal, .tasks = tasks};
  if (Result<void> committed = Commit(add); !committed.ok()) return committed.error();
  return add.last_id;
}

// The first thread of a group writes it, when the group before it is written; the others wait.
Result<void> RedoStore::Commit(PendingAdd& add) {
  std::shared_ptr<Group> group;
  bool leads = false;
  {
    MutexLock lock(commit_mutex_);
    if (broken_.has_value()) return *broken_;
    if (gathering_ == nullptr) gathering_ = std::make_shared<Group>();
    group = gathering_;
    group->adds.push_back(&add);
    if (!committing_) {
      committing_ = true;
      gathering_ = nullptr;
      leads = true;
    }
  }
  if (!leads) {
    MutexLock lock(group->mutex);
    while (!group->done && !group->leader_wanted) group->changed.Wait(group->mutex);
    if (group->done) return group->result;
    group->leader_wanted = false;
  }

  Result<void> result = Write(*group);

  std::shared_ptr<Group> next;
  {
    MutexLock lock(commit_mutex_);
    if (!result.ok() && result.error().code() != ErrorCode::kUnavailable) broken_ = result.error();
    next = std::move(gathering_);
    gathering_ = nullptr;
    committing_ = next != nullptr;
  }
  if (next != nullptr) {
    MutexLock lock(next->mutex);
    next->leader_wanted = true;
    next->changed.NotifyOne();
  }
  {
    MutexLock lock(group->mutex);
    group->done = true;
    group->result = result;
  }
  group->changed.NotifyAll();
  return result;
}

Result<void> RedoStore::Write(Group& group) {
  {
    MutexLock lock(commit_mutex_);
    if (broken_.has_value()) return *broken_;
  }
  // Rows of one queue stand together; within it in the order of the calls.
  StableSort(group.adds, [](const auto* left, const auto* right) {
    return std::less<>()(left->journal, right->journal);
  });
  struct Row {
    std::string key;
    std::size_t begin;
    std::size_t end;
  };
  struct Progress {
    RedoJournal* journal;
    std::int64_t last_id;
    std::int64_t chain;
  };
  std::vector<Row> rows;
  std::vector<Progress> progress;
  ByteWriter arena;
  const std::int64_t now_ms = NowMs();
  redo::TaskRecord record;
  for (PendingAdd* add : group.adds) {
    RedoJournal& journal = *add->journal;
    if (progress.empty() || progress.back().journal != &journal) {
      progress.push_back({&journal, journal.added_id(), journal.last_chain_});
    }
    Progress& at = progress.back();
    for (const NewRedoTask& task : add->tasks) {
      at.last_id += 1;
      at.chain = redo::NextChain(at.chain, at.last_id, task.type, now_ms, task.param);
      record.type = task.type;
      record.param.bytes.assign(task.param);
      record.added_ms = now_ms;
      record.chain = at.chain;
      const std::size_t begin = arena.size();
      record.Encode(arena);
      rows.push_back({redo::RowKey(journal.number_, at.last_id), begin, arena.size()});
    }
    add->last_id = at.last_id;
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& left, const Row& right) { return left.key < right.key; });
  std::vector<StorageWrite> writes;
  writes.reserve(rows.size());
  for (const Row& row : rows) {
    writes.push_back({.table = task_table_,
                      .key = row.key,
                      .value = arena.view().substr(row.begin, row.end - row.begin)});
  }
  if (Result<void> written = storage_->Flush(writes, /*sync=*/true); !written.ok()) return written;

  for (const Progress& at : progress) {
    at.journal->last_chain_ = at.chain;
    at.journal->added_id_.store(at.last_id, std::memory_order_release);
    MutexLock lock(at.journal->callback_mutex_);
    if (at.journal->on_added_) at.journal->on_added_();
  }
  return {};
}

}  // namespace zeze
