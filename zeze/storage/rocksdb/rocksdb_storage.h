// RocksDbStorage: the embedded storage. One directory, one process, no server to run.
//
//   Result<std::unique_ptr<Storage>> opened = OpenRocksDbStorage({.directory = "data"});
//
// Each table is a column family of its own; a flush is one write batch over all of them, which
// RocksDB's log makes atomic. What a full disk, a damaged file or a second process does to it is in
// docs/storage.md.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

// Sizes are for one database with all its tables. The defaults suit a game server that keeps its
// working set in its own record cache, on a machine of two cores: RocksDB then takes about 150 MB
// at most, however large the data is.
struct RocksDbOptions {
  std::string directory;

  // Make the directory and an empty database if there is none. Off: a wrong path is an error.
  bool create_if_missing = true;

  // Look at a database that another process may have open, as it is now: later changes do not show,
  // and nothing can be written. Tables that are not there cannot be opened.
  bool read_only = false;

  // Uncompressed blocks, indexes and filters. The record cache above is the real cache; this one
  // serves misses. Indexes and filters need about 2 bytes for each row: give it more than that.
  std::size_t block_cache_bytes = std::size_t{64} << 20;

  // Written rows that are not yet in sorted files, all tables together. More makes fewer and larger
  // files, and a longer recovery.
  std::size_t memtable_bytes = std::size_t{64} << 20;

  // When the log is longer, the tables that hold it back are written out. It bounds recovery, which
  // reads the log at about 100 MB a second.
  std::size_t log_bytes_max = std::size_t{128} << 20;

  // Threads that write and merge files. Two leave the other core to the server.
  int background_threads = 2;

  // File descriptors. Needed when there are more files of about 64 MB than this; no error then, but
  // files are opened again.
  int open_files_max = 512;

  // Refuse larger flushes. They are held in memory three times; RocksDB itself ends at 4 GB.
  std::size_t flush_bytes_max = std::size_t{1} << 30;
};

// Opens the directory and takes it for this process. All tables on disk are kept, also those that
// the program never opens; Storage::ListTables names them.
//
// Errors: kInvalidArgument (not a directory, or one with other files in it), kNotFound (no database
// there and create_if_missing is off), kInUse (names the process that has it open), kUnavailable
// (no permission, no room), kCorrupt.
Result<std::unique_ptr<Storage>> OpenRocksDbStorage(const RocksDbOptions& options);

// "rocksdb:" and the directory; without one it is "db".
StorageDriver RocksDbStorageDriver();

}  // namespace zeze
