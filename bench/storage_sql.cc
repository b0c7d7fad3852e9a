// Fenced flushes to PostgreSQL and MariaDB, beside the fastest bare statement that writes as many
// rows: the same client library, the same server, a table of its own. The servers do not wait for
// their disks, so that what is compared is work, not a disk's mood.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <libpq-fe.h>
#include <mysql.h>

#include "bench/bench.h"
#include "bench/measure.h"
#include "zeze/base/result.h"
#include "zeze/storage/sql/database_url.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/storage/testing/database_server.h"

namespace zeze::bench {
namespace {

constexpr std::size_t kRows = 1000;
constexpr std::int64_t kKeySpace = 100'000;
constexpr std::size_t kValueBytes = 100;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(result).value();
}

// Rows of one flush: distinct keys in ascending order, spread over the whole range.
struct Batch {
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

Batch NewBatch(FastRandom& random) {
  constexpr std::int64_t kStep = kKeySpace / static_cast<std::int64_t>(kRows);
  Batch batch;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::int64_t key = static_cast<std::int64_t>(i) * kStep + random.Below(kStep);
    batch.keys.push_back(fmt::format("{:08}", key));
    std::string value(kValueBytes, 'x');
    for (std::size_t k = 0; k < 40; ++k) value[k] = static_cast<char>(random.Next() >> 56);
    batch.values.push_back(std::move(value));
  }
  return batch;
}

class BarePostgres {
 public:
  explicit BarePostgres(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    Check(PQexec(connection_, "CREATE TABLE bare (id bytea PRIMARY KEY, value bytea NOT NULL)"));
    Check(PQprepare(connection_, "put",
                    "INSERT INTO bare (id, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])"
                    " ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                    0, nullptr));
  }
  BarePostgres(const BarePostgres&) = delete;
  BarePostgres& operator=(const BarePostgres&) = delete;
  ~BarePostgres() { PQfinish(connection_); }

  void Write(const Batch& batch) {
    const std::string keys = Array(batch.keys);
    const std::string values = Array(batch.values);
    const char* parameters[] = {keys.data(), values.data()};
    const int lengths[] = {static_cast<int>(keys.size()), static_cast<int>(values.size())};
    const int formats[] = {1, 1};
    Check(PQexecPrepared(connection_, "put", 2, parameters, lengths, formats, 0));
  }

 private:
  void Check(PGresult* result) {
    const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!done) throw std::runtime_error(PQerrorMessage(connection_));
  }

  static void AddInteger(std::string& text, std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  }

  static std::string Array(const std::vector<std::string>& values) {
    std::string text;
    for (std::size_t head :
         {std::size_t{1}, std::size_t{0}, std::size_t{17}, values.size(), std::size_t{1}}) {
      AddInteger(text, head);
    }
    for (const std::string& value : values) {
      AddInteger(text, value.size());
      text += value;
    }
    return text;
  }

  PGconn* connection_;
};

class BareMariaDb {
 public:
  explicit BareMariaDb(const std::string& url) : connection_(mysql_init(nullptr)) {
    const DatabaseUrl parts = Must(ParseDatabaseUrl(url));
    if (mysql_real_connect(connection_, parts.hosts[0].name.c_str(), parts.user.c_str(), "",
                           parts.database.c_str(), parts.hosts[0].port, nullptr, 0) == nullptr) {
      throw std::runtime_error(mysql_error(connection_));
    }
    Check(
        mysql_query(connection_,
                    "CREATE TABLE bare (id VARBINARY(2712) PRIMARY KEY, value LONGBLOB NOT NULL)"));
    statement_ = mysql_stmt_init(connection_);
    constexpr std::string_view kSql =
        "INSERT INTO bare (id, value) VALUES (?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value)";
    Check(mysql_stmt_prepare(statement_, kSql.data(), kSql.size()));
  }
  BareMariaDb(const BareMariaDb&) = delete;
  BareMariaDb& operator=(const BareMariaDb&) = delete;
  ~BareMariaDb() {
    mysql_stmt_close(statement_);
    mysql_close(connection_);
  }

  void Write(const Batch& batch) {
    auto count = static_cast<unsigned>(batch.keys.size());
    std::vector<const char*> bytes[2];
    std::vector<unsigned long> lengths[2];
    MYSQL_BIND binds[2] = {};
    const std::vector<std::string>* columns[] = {&batch.keys, &batch.values};
    for (std::size_t i = 0; i < 2; ++i) {
      for (const std::string& value : *columns[i]) {
        bytes[i].push_back(value.data());
        lengths[i].push_back(value.size());
      }
      binds[i].buffer_type = MYSQL_TYPE_BLOB;
      binds[i].buffer = bytes[i].data();
      binds[i].length = lengths[i].data();
    }
    Check(mysql_stmt_attr_set(statement_, STMT_ATTR_ARRAY_SIZE, &count) ||
          mysql_stmt_bind_param(statement_, binds) || mysql_stmt_execute(statement_));
  }

 private:
  void Check(int failed) {
    if (failed != 0) throw std::runtime_error(mysql_error(connection_));
  }

  MYSQL* connection_;
  MYSQL_STMT* statement_ = nullptr;
};

// In turns, flush by flush; what a pause of the machine hits counts for neither.
Figure CompareFlushes(const Run& run, Storage& storage,
                      const std::function<void(const Batch&)>& bare) {
  StorageTable* table = Must(storage.OpenTable("ours"));
  Must(storage.fence()->Start({.server_id = 1, .holder = "bench"}));
  const auto ours = [&](const Batch& batch) {
    std::vector<StorageWrite> writes;
    writes.reserve(batch.keys.size());
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      writes.push_back({.table = table, .key = batch.keys[i], .value = batch.values[i]});
    }
    const Result<void> flushed = storage.Flush(writes, true);
    if (!flushed.ok()) throw std::runtime_error(flushed.error().message());
  };
  FastRandom random(1);
  for (int i = 0; i < 100; ++i) {  // Until most keys are there.
    const Batch batch = NewBatch(random);
    ours(batch);
    bare(batch);
  }
  std::vector<double> our_times;
  std::vector<double> bare_times;
  std::vector<double> ratios;
  const double end = WallSeconds() + run.settings().seconds;
  while (ratios.size() < 20 || WallSeconds() < end) {
    const Batch batch = NewBatch(random);
    const double begin = WallSeconds();
    ours(batch);
    const double middle = WallSeconds();
    bare(batch);
    const double after = WallSeconds();
    our_times.push_back(middle - begin);
    bare_times.push_back(after - middle);
    ratios.push_back((after - middle) / (middle - begin));
  }
  const auto rows = static_cast<double>(kRows);
  return {.name = "",
          .value = rows / Median(our_times),
          .unit = "rows/s",
          .peer = "",
          .peer_value = rows / Median(bare_times),
          .ratio = Median(our_times) > 0 ? Median(bare_times) / Median(our_times) : 0,
          .goal = Goal::RatioAtLeast(0.9),
          .note = fmt::format("{} rounds, ratio {:.2f} .. {:.2f}", ratios.size(),
                              Percentile(ratios, 0.25), Percentile(ratios, 0.75))};
}

void PostgresFlush(Run& run) {
  const std::unique_ptr<DatabaseServer> server = Must(StartPostgresServer({}));
  const std::string url = server->NewDatabase();
  const std::unique_ptr<Storage> storage = Must(OpenStorage({.url = url}));
  BarePostgres bare(url);
  Figure figure = CompareFlushes(run, *storage, [&](const Batch& batch) { bare.Write(batch); });
  figure.name = "storage.postgres_flush";
  figure.peer = "bare upsert from unnest";
  run.Report(std::move(figure));
}

void MariaDbFlush(Run& run) {
  const std::unique_ptr<DatabaseServer> server = Must(StartMariaDbServer({}));
  const std::string url = server->NewDatabase();
  const std::unique_ptr<Storage> storage = Must(OpenStorage({.url = url}));
  BareMariaDb bare(url);
  Figure figure = CompareFlushes(run, *storage, [&](const Batch& batch) { bare.Write(batch); });
  figure.name = "storage.mariadb_flush";
  figure.peer = "bare array INSERT";
  run.Report(std::move(figure));
}

constexpr Benchmark kBenchmarks[] = {
    {"storage.postgres_flush", "fenced flushes of 1,000 rows of 108 bytes", &PostgresFlush},
    {"storage.mariadb_flush", "fenced flushes of 1,000 rows of 108 bytes", &MariaDbFlush},
};

}  // namespace

std::span<const Benchmark> SqlBenchmarks() {
  return kBenchmarks;
}

}  // namespace zeze::bench
