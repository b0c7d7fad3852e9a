// What a database must show whose table is locked by somebody else, as by ALTER TABLE.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/storage/storage.h"

namespace zeze {

// `lock` locks the table "locked" for some seconds and returns when that is over; `waiting` counts
// the sessions that wait for it. While twice as many threads as there are connections read the
// locked table, reads of another table must go on.
inline void ExpectOtherTablesToGoOn(Storage& storage, const std::function<void()>& lock,
                                    const std::function<int()>& waiting) {
  constexpr int kReaders = 16;
  constexpr int kStuckReaders = 6;  // As many of 8 connections as one table may have.
  StorageTable* locked = storage.OpenTable("locked").value();
  StorageTable* other = storage.OpenTable("other").value();
  const StorageWrite write = {.table = other, .key = "k", .value = "v"};
  ASSERT_TRUE(storage.Flush({&write, 1}, true).ok());

  std::future<void> locking = std::async(std::launch::async, lock);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      std::string value;
      while (!done.load()) {
        const Result<bool> ignored = locked->Find("k", value);  // Fails after lock_timeout.
        static_cast<void>(ignored);
      }
    });
  }
  const auto deadline = SystemClock().Now() + std::chrono::minutes(1);
  while (waiting() < kStuckReaders && SystemClock().Now() < deadline) std::this_thread::yield();

  int reads = 0;
  std::string value;
  const auto locked_still = [&] {
    return locking.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  while (locked_still() && reads < 100) {
    const Result<bool> found = other->Find("k", value);
    EXPECT_TRUE(found.ok()) << found.error().message();
    ++reads;
  }
  EXPECT_TRUE(locked_still()) << reads << " reads of another table while one was locked";
  EXPECT_EQ(reads, 100);
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace zeze
