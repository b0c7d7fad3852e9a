// RocksDB's account of itself, in the file LOG of the database directory; warnings also go to the
// server's log.

#pragma once

#include <memory>
#include <string>

#include <rocksdb/env.h>

namespace zeze {

// RocksDB's own logger stops the process (in a build with assertions) when the disk is full. This
// one loses lines then. It keeps the current file and one older one, of 4 MB each.
std::shared_ptr<rocksdb::Logger> OpenRocksDbLog(const std::string& directory);

}  // namespace zeze
