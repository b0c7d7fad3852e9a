#include "zeze/storage/rocksdb/internal/rocksdb_options.h"

#include <algorithm>
#include <cstddef>

#include <rocksdb/cache.h>
#include <rocksdb/compression_type.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

// Pages of a walk shorter than this are read block by block, as RocksDB sees fit.
constexpr std::size_t kReadaheadFromRows = 10000;

rocksdb::BlockBasedTableOptions MakeTableOptions(const RocksDbOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  // Point reads decompress one block for one row: small ones are faster to read.
  table.block_size = 4096;
  table.format_version = 5;
  // 1 % of the lookups of an absent row read a file. Inserting a new record looks it up first.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  // Otherwise every open file holds its index and filter outside of any bound.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  return table;
}

}  // namespace

rocksdb::Options MakeRocksDbOptions(const RocksDbOptions& options) {
  rocksdb::Options result;
  result.create_if_missing = options.create_if_missing;
  result.max_background_jobs = options.background_threads;
  result.max_open_files = options.open_files_max;

  // Memory: one table may fill half of it before it is written out; all tables together share it.
  result.write_buffer_size = std::max(options.memtable_bytes / 2, kMegabyte);
  result.db_write_buffer_size = options.memtable_bytes;
  // Flushes go on into a new memtable while older ones are written out.
  result.max_write_buffer_number = 4;
  // Looking up a row that is in no memtable, the usual case, then costs no search in them.
  result.memtable_prefix_bloom_size_ratio = 0.02;
  result.memtable_whole_key_filtering = true;
  // A flush arrives in key order: each row is inserted next to the previous one.
  result.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(0));

  // Log. Point in time: after a crash everything up to the first torn record counts, which is more
  // than every synced flush. The sizes of finished logs are recorded, so that a missing one is
  // noticed.
  result.max_total_wal_size = options.log_bytes_max;
  result.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  result.track_and_verify_wals_in_manifest = true;

  // Files.
  result.compression = rocksdb::kLZ4Compression;
  result.target_file_size_base = 64 * kMegabyte;
  result.max_bytes_for_level_base = std::max(4 * result.write_buffer_size, 64 * kMegabyte);
  // Keeps obsolete rows to about a tenth of the data.
  result.level_compaction_dynamic_level_bytes = true;
  // Write files out while they grow, not in one burst that delays the log's sync.
  result.bytes_per_sync = kMegabyte;
  result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(MakeTableOptions(options)));

  // RocksDB's own log file: enough to find out what happened last week, never more.
  result.max_log_file_size = 4 * kMegabyte;
  result.keep_log_file_num = 4;
  result.stats_dump_period_sec = 0;
  result.stats_persist_period_sec = 0;
  return result;
}

rocksdb::ReadOptions MakeRocksDbFindOptions() {
  return {};
}

rocksdb::ReadOptions MakeRocksDbWalkOptions(std::size_t limit) {
  rocksdb::ReadOptions options;
  // A walk reads each block once: in the cache it would only push out what Find needs.
  options.fill_cache = false;
  options.adaptive_readahead = true;
  if (limit >= kReadaheadFromRows) options.readahead_size = kMegabyte;
  return options;
}

}  // namespace zeze
