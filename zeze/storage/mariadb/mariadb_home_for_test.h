// Homes for the conformance suites on MariaDB: one server, or the nodes of a cluster in turn.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"

namespace zeze {

class MariaDbHome final : public StorageHome {
 public:
  explicit MariaDbHome(DatabaseServer& server)
      : server_(server), urls_(server.NewDatabaseOnEachNode()) {}
  ~MariaDbHome() override { server_.DropDatabase(urls_.front()); }

  // Every time another node.
  Result<std::unique_ptr<Storage>> Open() override {
    return OpenMariaDbStorage(PatientOptions<MariaDbOptions>(urls_[opened_++ % urls_.size()]));
  }

 private:
  DatabaseServer& server_;
  const std::vector<std::string> urls_;
  std::size_t opened_ = 0;
};

class FencedMariaDbHome final : public FencedHome {
 public:
  explicit FencedMariaDbHome(DatabaseServer& server)
      : server_(server), urls_(server.NewDatabaseOnEachNode()) {}
  ~FencedMariaDbHome() override { server_.DropDatabase(urls_.front()); }

  // The proxy stands in front of the first node; others are opened on every node in turn, the
  // second first.
  Result<std::unique_ptr<Storage>> Open(int proxy_port, Patience patience) override {
    std::string url = urls_[++opened_ % urls_.size()];
    if (proxy_port != 0) {
      url = urls_.front();
      url.replace(PortAt(url), PortText(url).size(), std::to_string(proxy_port));
    }
    MariaDbOptions options = PatientOptions<MariaDbOptions>(url);
    if (patience == Patience::kShort) {
      options.lock_timeout = std::chrono::seconds(1);
      options.retry_for = std::chrono::milliseconds(1500);
    }
    return OpenMariaDbStorage(options);
  }

  int port() const override { return std::stoi(PortText(urls_.front())); }
  std::string flush_begin() const override { return "UPDATE zeze_fence"; }

  bool FlushIsOpen(std::int32_t server_id) override {
    return server_
        .RunSql(urls_.front(),
                fmt::format("SELECT lane FROM zeze_fence WHERE server_id = {} AND lane = 0"
                            " FOR UPDATE SKIP LOCKED",
                            server_id))
        .empty();
  }

  bool writers_wait() const override { return urls_.size() == 1; }

  void LoseLastFlush(std::int32_t server_id) override {
    server_.RunSql(
        urls_.front(),
        fmt::format("UPDATE zeze_fence SET flush_seq = flush_seq - 1 WHERE server_id = {}",
                    server_id));
  }

  bool BecomeOld() override {
    server_.RunSql(
        urls_.front(),
        "DROP TABLE zeze_lease; DROP TABLE zeze_cluster; DROP TABLE zeze_table;"
        "ALTER TABLE zeze_fence DROP COLUMN secret; ALTER TABLE zeze_global DROP COLUMN secret;"
        "ALTER TABLE zeze_fence DROP COLUMN incarnation, DROP COLUMN seq_lost, DROP COLUMN yields;"
        "DROP TABLE zeze_wanted, zeze_yield; ALTER TABLE zeze_fenced DROP COLUMN renew_seq");
    return true;
  }

  bool Restart() override {
    if (urls_.size() > 1) return false;
    server_.Restart();
    return true;
  }

 private:
  // "mysql://root@127.0.0.1:3306/t1"
  static std::size_t PortAt(const std::string& url) { return url.find(':', url.find('@')) + 1; }
  static std::string PortText(const std::string& url) {
    return url.substr(PortAt(url), url.rfind('/') - PortAt(url));
  }

  DatabaseServer& server_;
  const std::vector<std::string> urls_;
  std::atomic<std::size_t> opened_ = 0;
};

}  // namespace zeze
