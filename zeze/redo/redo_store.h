// RedoStore: the tasks of a program's redo queues on its own disk.
//
//   Result<std::shared_ptr<RedoStore>> store = RedoStore::Open({.directory = "redo"});
//   Result<RedoJournal*> journal = store.value()->OpenQueue("recharge");
//   Result<std::int64_t> id = journal.value()->Add(kRecharge, param);   // On the disk, synced.
//
// Programs use a RedoQueueClient, which sends what is here.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/redo/redo_records.h"
#include "zeze/storage/storage.h"

namespace zeze {

class RedoStore;

// Names of queues are keys at the server, too.
inline constexpr std::size_t kRedoQueueNameBytesMax = 255;
// A task travels in one frame; servers accept 2 MB unless told otherwise.
inline constexpr std::size_t kRedoParamBytesMax = std::size_t{1} << 20;

struct NewRedoTask {
  std::int32_t type = 0;
  std::string_view param = {};
};

struct RedoTask {
  std::int64_t id = 0;
  redo::TaskRecord record = {};
};

// How long tasks stay after the server has done them, so that a server whose database was set back
// can be given them again.
struct RedoKeepOptions {
  std::chrono::nanoseconds keep_for = std::chrono::hours(24 * 7);
  // No more than this many, whatever their age. Not applied to what the server has not saved.
  std::int64_t keep_max = 1'000'000;
};

// Where a queue is. Ids count from 1 without a gap.
struct RedoPosition {
  std::int64_t floor_id = 0;      // Deleted up to here: a server that is older cannot be helped.
  std::int64_t confirmed_id = 0;  // Done by the server up to here.
  std::int64_t saved_id = 0;      // And in its database.
  std::int64_t added_id = 0;
  bool bound = false;
  std::int64_t adopted_id = -1;
  bool says_saved = false;  // Some server has said what it has saved.

  std::int64_t backlog() const { return added_id - confirmed_id; }
};

// One queue of a store. Thread-safe, unless it says otherwise.
class RedoJournal {
 public:
  RedoJournal(const RedoJournal&) = delete;
  RedoJournal& operator=(const RedoJournal&) = delete;

  const std::string& name() const { return name_; }
  RedoStore& store() const { return store_; }

  // Returns the id of the (last) task when all of them are on the disk; those of one call have
  // consecutive ids and are there all or none. Blocks for one sync of the disk, which is shared
  // with everybody who adds at the same time.
  // Errors: kInvalidArgument (too large), kUnavailable (no room: nothing was added), kCorrupt,
  // kUnknownOutcome (the disk failed: nothing more can be added until the store is opened again,
  // which will say whether the task is there).
  Result<std::int64_t> Add(std::int32_t type, std::string_view param);
  Result<std::int64_t> AddMany(std::span<const NewRedoTask> tasks);

  // Everything up to this id is on the disk.
  std::int64_t added_id() const { return added_id_.load(std::memory_order_acquire); }

  RedoPosition position() const;

  // Tasks behind `after`, in order, from the disk: at most so many, and no more once they have so
  // many bytes.
  Result<std::vector<RedoTask>> Read(std::int64_t after, std::size_t count_max,
                                     std::size_t bytes_max) const;

  // What the tasks up to this id were; absent if that has been deleted, or was never added.
  Result<std::optional<std::int64_t>> ChainAt(std::int64_t id) const;

  // When the oldest task was confirmed that is still kept, as far as it is known: Unix ms.
  Result<std::optional<std::int64_t>> KeptSince() const;

  // How long the task behind this one has waited; 0 if there is none.
  std::chrono::nanoseconds AgeBehind(std::int64_t id) const;

  // --- For whoever sends: one at a time. ---

  // Synced: from now on a server may have done tasks of this store.
  Result<void> Bind();

  // What the server says; it may go back. Absent: it does not say what it has saved.
  // Not synced: after a crash the server is asked anyway.
  Result<void> Confirm(std::int64_t confirmed_id, std::optional<std::int64_t> saved_id);

  // Deletes some of what need not be kept any more; false: there was nothing.
  Result<bool> Compact(const RedoKeepOptions& keep);

  // An operator: the task is not to be run. It stays in its place, so that the server can keep it;
  // a copy stays here for ever.
  Result<void> Skip(std::int64_t id);

  // An operator: the server has done the tasks of a lost store, up to server_id. The tasks of this
  // store from first_new on get the ids after it. A new store has nothing confirmed, and all of its
  // tasks are new. In a store that was restored from a copy, the tasks added after the copy was
  // made are new; the server has done the older ones, because it runs tasks in order. Older tasks
  // that were not confirmed are kept like skipped ones. Nothing may be added meanwhile.
  Result<void> Adopt(std::int64_t server_id, std::int64_t server_chain, std::int64_t first_new = 1);

  // Called after tasks were added, by whoever added them: it must not wait.
  void OnAdded(std::function<void()> callback);

 private:
  friend class RedoStore;

  RedoJournal(RedoStore& store, std::string name, const redo::QueueRecord& record)
      : store_(store), name_(std::move(name)), number_(record.number), record_(record) {}

  Result<void> FindLast();
  Result<RedoTask> ReadOne(std::int64_t id) const;
  Result<std::int64_t> CompactLimit(const RedoKeepOptions& keep) ZEZE_REQUIRES(mutex_);
  Result<void> Mark(std::int64_t now_ms) ZEZE_REQUIRES(mutex_);
  Result<void> SaveRecord(const redo::QueueRecord& record, bool sync) ZEZE_REQUIRES(mutex_);

  RedoStore& store_;
  const std::string name_;
  const std::int32_t number_;

  // Written by whoever commits (see RedoStore), read by all.
  std::atomic<std::int64_t> added_id_ = 0;
  std::int64_t last_chain_ = 0;  // Behind added_id_. Of whoever commits.

  mutable Mutex mutex_;
  redo::QueueRecord record_ ZEZE_GUARDED_BY(mutex_);
  bool saved_known_ ZEZE_GUARDED_BY(mutex_) = false;
  std::int64_t marked_ms_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::int64_t marked_id_ ZEZE_GUARDED_BY(mutex_) = 0;

  mutable Mutex callback_mutex_;
  std::function<void()> on_added_ ZEZE_GUARDED_BY(callback_mutex_);
};

struct RedoStoreOptions {
  std::string directory = {};
  bool create_if_missing = true;
  // As the store is now, while another process may use it. Everything that writes fails.
  bool read_only = false;
  Clock* clock = &SystemClock();
};

// One directory, one process. Thread-safe.
class RedoStore {
 public:
  // Errors: those of OpenRocksDbStorage.
  static Result<std::shared_ptr<RedoStore>> Open(const RedoStoreOptions& options);
  // On a storage of another kind: for tests.
  static Result<std::shared_ptr<RedoStore>> Open(std::unique_ptr<Storage> storage, Clock& clock,
                                                 bool read_only = false);

  RedoStore(const RedoStore&) = delete;
  RedoStore& operator=(const RedoStore&) = delete;
  ~RedoStore();

  // The queue of that name, made if there is none. The same name gives the same pointer, valid as
  // long as the store. Errors: kInvalidArgument (the name is empty or too long).
  Result<RedoJournal*> OpenQueue(std::string_view name);

  // Of all queues, ascending.
  std::vector<std::string> Queues() const;

  // Random, made with the store: servers notice when it is another.
  std::int64_t id() const { return record_.store_id; }

  Clock& clock() const { return clock_; }

 private:
  friend class RedoJournal;
  struct Group;
  struct PendingAdd;

  RedoStore(std::unique_ptr<Storage> storage, Clock& clock)
      : storage_(std::move(storage)), clock_(clock) {}

  Result<void> Load(bool read_only);
  // Returns the id of the last task.
  Result<std::int64_t> Commit(RedoJournal& journal, std::span<const NewRedoTask> tasks);
  Result<void> Commit(PendingAdd& add);
  Result<void> Write(Group& group);
  std::int64_t NowMs() const;

  const std::unique_ptr<Storage> storage_;
  Clock& clock_;
  StorageTable* store_table_ = nullptr;
  StorageTable* queue_table_ = nullptr;
  StorageTable* task_table_ = nullptr;
  StorageTable* mark_table_ = nullptr;
  StorageTable* skipped_table_ = nullptr;

  mutable Mutex queues_mutex_;
  redo::StoreRecord record_;
  std::map<std::string, std::unique_ptr<RedoJournal>, std::less<>> journals_
      ZEZE_GUARDED_BY(queues_mutex_);

  // Group commit: while one thread writes, others gather in the next group.
  Mutex commit_mutex_;
  std::shared_ptr<Group> gathering_ ZEZE_GUARDED_BY(commit_mutex_);
  bool committing_ ZEZE_GUARDED_BY(commit_mutex_) = false;
  std::optional<Error> broken_ ZEZE_GUARDED_BY(commit_mutex_);
};

}  // namespace zeze
