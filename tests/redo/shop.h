// The application of the crash test: a server that counts the tasks of two redo queues.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/redo/shop_counters.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/redo_queue/redo_queue_server.h"

namespace zeze::redo_test {

struct Shop {
  // An address of a database, or a directory.
  static Result<std::unique_ptr<Shop>> Open(const std::string& where, std::uint16_t port) {
    auto shop = std::make_unique<Shop>(port);
    ApplicationOptions options{.worker_threads = 4,
                               .checkpoint_period = std::chrono::milliseconds(100)};
    options.lease = std::chrono::milliseconds(500);
    const bool is_url = where.find("://") != std::string::npos;
    options.storage = {.url = is_url ? where : "rocksdb:" + where};
    Result<std::unique_ptr<Application>> opened = Application::Open("shop", options);
    if (!opened.ok()) return opened.error();
    shop->application = std::move(opened).value();
    shop->counters.AddTo(*shop->application);
    shop->application->AddModule(shop->redo);
    if (Result<void> started = shop->application->Start(); !started.ok()) return started.error();
    return shop;
  }

  explicit Shop(std::uint16_t port) : redo({.acceptors = {{.ip = "127.0.0.1", .port = port}}}) {
    counters.Register(redo);
  }

  ShopCounters counters;
  RedoQueueServer redo;
  std::unique_ptr<Application> application;
};

}  // namespace zeze::redo_test
