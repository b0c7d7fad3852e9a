#include "zeze/storage/postgres/postgres_storage.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"

namespace zeze {
namespace {

class PostgresHome final : public StorageHome {
 public:
  ~PostgresHome() override { SharedPostgresServer().DropDatabase(url_); }
  Result<std::unique_ptr<Storage>> Open() override { return OpenPostgresStorage({.url = url_}); }

 private:
  const std::string url_ = SharedPostgresServer().NewDatabase();
};

INSTANTIATE_TEST_SUITE_P(Postgres, StorageConformanceTest,
                         testing::Values(StorageDriver{
                             "postgres", [] { return std::make_unique<PostgresHome>(); }}),
                         StorageDriverName);

class FencedPostgresHome final : public FencedHome {
 public:
  ~FencedPostgresHome() override { SharedPostgresServer().DropDatabase(url_); }

  Result<std::unique_ptr<Storage>> Open(int proxy_port) override {
    std::string url = url_;
    if (proxy_port != 0) url.replace(PortAt(), port_text().size(), std::to_string(proxy_port));
    return OpenPostgresStorage({.url = url,
                                .statement_timeout = std::chrono::seconds(5),
                                .lock_timeout = std::chrono::milliseconds(200),
                                .retry_for = std::chrono::milliseconds(800)});
  }

  int port() const override { return std::stoi(port_text()); }
  std::string flush_begin() const override { return "BEGIN"; }

  bool FlushIsOpen(std::int32_t server_id) override {
    return SharedPostgresServer()
        .RunSql(url_, fmt::format("SELECT lane FROM zeze_fence WHERE server_id = {} AND lane = 0"
                                  " FOR UPDATE SKIP LOCKED",
                                  server_id))
        .empty();
  }

  void LoseLastFlush(std::int32_t server_id) override {
    SharedPostgresServer().RunSql(
        url_, fmt::format("UPDATE zeze_fence SET flush_seq = flush_seq - 1 WHERE server_id = {}",
                          server_id));
  }

  bool Restart() override {
    SharedPostgresServer().Restart();
    return true;
  }

 private:
  // "postgresql://zeze@127.0.0.1:5432/t1"
  std::size_t PortAt() const { return url_.find(':', url_.find('@')) + 1; }
  std::string port_text() const { return url_.substr(PortAt(), url_.rfind('/') - PortAt()); }

  const std::string url_ = SharedPostgresServer().NewDatabase();
};

INSTANTIATE_TEST_SUITE_P(Postgres, FenceConformanceTest,
                         testing::Values(FencedDriver{
                             "postgres", [] { return std::make_unique<FencedPostgresHome>(); }}),
                         FencedDriverName);

}  // namespace
}  // namespace zeze
