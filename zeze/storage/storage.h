// Storage: where records live when they are not in memory. An ordered key/value store with named
// tables and one atomic write across all of them.
//
//   Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage({.directory = "data"});
//   if (!opened.ok()) return opened.error();       // The message says what to do.
//   Storage& storage = *opened.value();
//   StorageTable* roles = storage.OpenTable("demo_Game_tRole").value();
//
//   StorageWrite writes[] = {{roles, key_a, value_a}, StorageWrite::Remove(roles, key_b)};
//   Result<void> flushed = storage.Flush(writes, /*sync=*/true);
//   if (!flushed.ok() && flushed.error().code() == ErrorCode::kUnavailable) { /* repeat later */ }
//
//   BRole role;
//   Result<bool> found = roles->Find(key_a, [&](std::string_view value) { Decode(value, role); });
//
// Drivers: zeze/storage/memory (tests, caches), zeze/storage/rocksdb (embedded, the default). Every
// driver passes the suite in zeze/storage/testing/conformance.h, which is the precise form of what
// is promised here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/storage/fence.h"

namespace zeze {

class StorageTable;

// The longest key that every engine can index. Part of the stored format: never raise it.
inline constexpr std::size_t kStorageKeyBytesMax = 2712;

// The longest table name. One letter of it may take several bytes.
inline constexpr std::size_t kStorageTableNameBytesMax = 255;

// The table in which LoadVersioned and SaveVersioned keep their rows. Not to be opened by name.
inline constexpr std::string_view kStorageVersionedTable = "_ZezeDataWithVersion_";

// One change of one row. The bytes are borrowed until Flush returns.
struct StorageWrite {
  StorageTable* table = nullptr;
  std::string_view key = {};
  std::string_view value = {};  // The whole new value; ignored by a remove.
  bool remove = false;          // Removing a row that does not exist is no error.

  static StorageWrite Remove(StorageTable* table, std::string_view key) {
    return {.table = table, .key = key, .value = {}, .remove = true};
  }
};

// What one walk over a table gives.
struct StorageWalk {
  // Start behind this key (before it when descending); the key itself is left out, so that the last
  // key of a page is the start of the next. Absent: from the first (last) row.
  std::optional<std::string> after = std::nullopt;
  bool descending = false;
  bool keys_only = false;  // The value given to the callback is then empty.
  std::size_t limit = std::numeric_limits<std::size_t>::max();  // Rows at most.
};

// What an engine takes. Flush refuses more with kInvalidArgument; callers that cannot live with a
// refusal (a commit that was already acknowledged) check beforehand.
struct StorageLimits {
  std::size_t key_bytes_max = kStorageKeyBytesMax;
  std::size_t value_bytes_max = 0;
  std::size_t flush_bytes_max = 0;  // Keys, values and kStorageWriteOverheadBytes for each write.
};
inline constexpr std::size_t kStorageWriteOverheadBytes = 32;

// Framework data with a version, see Storage::SaveVersioned.
struct VersionedData {
  std::string data;
  std::int64_t version = 0;

  bool operator==(const VersionedData&) const = default;
};

// A table: rows of key and value bytes, both may be empty, ordered by the key's unsigned bytes.
// Thread-safe. Owned by its Storage; valid until that is closed or the table is dropped or renamed.
class StorageTable {
 public:
  StorageTable(const StorageTable&) = delete;
  StorageTable& operator=(const StorageTable&) = delete;
  virtual ~StorageTable() = default;

  virtual const std::string& name() const = 0;

  // Looks up a row; false if there is none. `found` sees the value where the engine keeps it (for
  // RocksDB inside the block cache, without a copy): decode there rather than copy. Its bytes are
  // gone when it returns, and it must not call this storage.
  // Errors: kUnavailable (the engine cannot answer now), kCorrupt.
  virtual Result<bool> Find(std::string_view key, FunctionRef<void(std::string_view)> found) = 0;

  // The same with one copy, into a string whose capacity is used again; unchanged if there is no
  // row.
  Result<bool> Find(std::string_view key, std::string& value) {
    return Find(key, [&value](std::string_view bytes) { value.assign(bytes); });
  }

  // Looks up several rows at once, which over a network costs one round trip instead of many. The
  // keys are all different.
  // `found` is called for those that exist, in any order, with the position of the key; otherwise
  // as Find.
  virtual Result<void> FindMany(std::span<const std::string_view> keys,
                                FunctionRef<void(std::size_t index, std::string_view value)> found);

  // Gives rows in key order to `row` until it returns false, the limit is reached or there are no
  // more, and returns how many it gave. The bytes are gone when the callback returns; the callback
  // may call Find and Flush.
  // A walk is no transaction. A row that is there all the time is given exactly once; a row that is
  // written meanwhile is given in its old or new state, or left out if one of them is absence.
  // Does not push rows that were read by Find out of the engine's cache.
  // Errors: as Find; rows given before the error were right.
  virtual Result<std::size_t> Walk(
      const StorageWalk& walk,
      FunctionRef<bool(std::string_view key, std::string_view value)> row) = 0;

  // About how many rows there are; may be wrong by a factor after many overwrites and removes.
  virtual Result<std::uint64_t> SizeApprox() = 0;

 protected:
  StorageTable() = default;
};

// Thread-safe: every function may be called from every thread, except Close and the destructor,
// which must be the last calls, and DropTable and RenameTable, which must not run beside a use of
// that table. Every function may block on the disk or the network.
class Storage {
 public:
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  // Closes. What a Flush acknowledged stays acknowledged, whatever happens here.
  virtual ~Storage() = default;

  // Engine and place, for logs: "rocksdb /srv/game/data".
  virtual std::string Description() const = 0;

  virtual StorageLimits limits() const = 0;

  // The table of that name, created if there is none. The same name gives the same pointer.
  // Errors: kInvalidArgument (empty, too long, control characters, or a name that the engine or
  // the framework keeps for itself), kUnavailable.
  virtual Result<StorageTable*> OpenTable(std::string_view name) = 0;

  // The names of all tables in the database, opened or not, ascending. Also those that the program
  // does not know (removed from the schema, or of a newer version): they are kept.
  virtual Result<std::vector<std::string>> ListTables() = 0;

  // Applies all writes or none, whatever crashes when. Requires: every table is of this storage;
  // writes of one table stand together, ascending by key, no key twice. Concurrent flushes are
  // applied one after the other in some order.
  //
  // The effects appear at one moment: after any read saw one of them, every later read sees all.
  // sync = true: after success they survive the loss of power. sync = false: they survive the end
  // of this process, and the loss of power up to some earlier flush (never with a gap).
  //
  // Errors, and what the caller may do:
  //   kInvalidArgument  above limits(). Nothing was written; repeating is useless.
  //   kUnavailable      Nothing was written and nothing will be: repeat it when the cause is gone
  //                     (no room on the disk, server not reachable). The storage goes on by itself.
  //   kUnknownOutcome   Written or not, also after a restart: repeat exactly the same writes before
  //                     any other flush of these rows. After success of that everything is known.
  //   kCorrupt          The database is damaged; nothing more can be written. Stop the process.
  //   kFenced           Nothing was written and nothing ever will be: the rights of this process
  //                     were taken away. Discard everything, end, no last checkpoint.
  virtual Result<void> Flush(std::span<const StorageWrite> writes, bool sync) = 0;

  // Null: the database belongs to one process, which a lock keeps alone.
  virtual Fence* fence() { return nullptr; }

  // Framework data (schemas, addresses) that several processes may change: read, compute, save with
  // the version that was read. Absent data has version 0. Returns the new version, one higher.
  // Synced. Not atomic with a Flush.
  // Errors: kConflict (the stored version is another: load again), and those of Flush.
  virtual Result<std::optional<VersionedData>> LoadVersioned(std::string_view id) = 0;
  virtual Result<std::int64_t> SaveVersioned(std::string_view id, std::string_view data,
                                             std::int64_t version) = 0;

  // Removes a table with all its rows; pointers to it become invalid. Errors: kNotFound.
  virtual Result<void> DropTable(std::string_view name) = 0;

  // Gives a table a new name; pointers to it become invalid. If the process ends in between, the
  // table has the old name or the new one, or RenameTable with the same names again finishes it.
  // Errors: kNotFound, kConflict (a table of the new name has rows), kInvalidArgument.
  virtual Result<void> RenameTable(std::string_view from, std::string_view to) = 0;

  // Ends background work and gives the database free for other processes. Tables and other calls
  // are not allowed afterwards. A second Close does nothing.
  // Errors are for the log: nothing acknowledged is lost by them.
  virtual Result<void> Close() = 0;

 protected:
  Storage() = default;
};

// For drivers: what all of them check and say in the same way.
Result<void> CheckStorageTableName(std::string_view name);
Result<void> CheckStorageWrites(std::span<const StorageWrite> writes, const StorageLimits& limits);
Result<void> CheckStorageVersioned(std::string_view id, std::string_view data,
                                   const StorageLimits& limits);
Error StorageTableNotFound(std::string_view attempt, std::string_view name);
Error StorageRenameConflict(std::string_view from, std::string_view to);
Error StorageVersionConflict(std::string_view id, std::int64_t expected, std::int64_t stored);

}  // namespace zeze
