// The application of the crash test: two redo queues, whose task number N adds one to the record N
// of the queue's table. Exactly once means: every record is 1.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/redo_queue/redo_queue_server.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"
#include "zeze/transaction/testing/beans.h"

namespace zeze::redo_test {

inline constexpr const char* kQueues[] = {"recharge", "mail"};
inline constexpr std::int32_t kType = 1;

struct Shop {
  // An address of a database, or a directory.
  static Result<std::unique_ptr<Shop>> Open(const std::string& where, std::uint16_t port) {
    auto shop = std::make_unique<Shop>(port);
    ApplicationOptions options{.worker_threads = 4,
                               .checkpoint_period = std::chrono::milliseconds(100)};
    options.lease = std::chrono::milliseconds(500);
    if (where.find("://") == std::string::npos) {
      options.storage_directory = where;
    } else {
      options.storage = StorageKind::kPostgreSql;
      options.storage_url = where;
    }
    Result<std::unique_ptr<Application>> opened = Application::Open("shop", options);
    if (!opened.ok()) return opened.error();
    shop->application = std::move(opened).value();
    shop->application->AddTable(shop->recharge);
    shop->application->AddTable(shop->mail);
    shop->application->AddModule(shop->redo);
    if (Result<void> started = shop->application->Start(); !started.ok()) return started.error();
    return shop;
  }

  explicit Shop(std::uint16_t port) : redo({.acceptors = {{.ip = "127.0.0.1", .port = port}}}) {
    for (const char* queue : kQueues) {
      auto& table = queue[0] == 'r' ? recharge : mail;
      redo.Register(queue, kType, [&table](Transaction& tx, const Binary& param) {
        table.GetOrAdd(tx, std::stoll(param.bytes))->balance += 1;
        return true;
      });
    }
  }

  Table<std::int64_t, testing::BAccount> recharge{
      TableDescriptor{.id = 1, .name = "redo_recharge"}};
  Table<std::int64_t, testing::BAccount> mail{TableDescriptor{.id = 2, .name = "redo_mail"}};
  RedoQueueServer redo;
  std::unique_ptr<Application> application;
};

}  // namespace zeze::redo_test
