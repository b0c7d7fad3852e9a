// What RocksDB is told about itself, in one place, so that a benchmark can open a bare database
// with exactly the options that RocksDbStorage uses:
//
//   rocksdb::Options options = MakeRocksDbOptions({.directory = path});
//   rocksdb::DB::Open(options, path, &db);

#pragma once

#include <rocksdb/options.h>

#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze {

// Of the database and, as its base, of every column family.
rocksdb::Options MakeRocksDbOptions(const RocksDbOptions& options);

// For Find, and for a walk of at most `limit` rows.
rocksdb::ReadOptions MakeRocksDbFindOptions();
rocksdb::ReadOptions MakeRocksDbWalkOptions(std::size_t limit);

}  // namespace zeze
