// Ledger: the tables of the crash test, and what must not be.

#pragma once

#include <cstdint>
#include <iostream>
#include <string>

#include <fmt/core.h>

#include "crash/Ledger.module.h"
#include "zeze/transaction/transaction.h"

namespace zeze::crash_test {

class Ledger final : public crash::Ledger::ModuleLedgerBase {
 public:
  explicit Ledger(std::int32_t server_id) : server_id_(server_id) {}

  // For ever, if the transaction commits.
  void Fault(Transaction& tx, const std::string& what) {
    tFaults.GetOrAdd(tx, what)->number += 1;
    tx.AfterCommit([what] { std::cout << "fault: " + what + "\n" << std::flush; });
  }
  // A record for each server, so that they do not wait for each other.
  void Count(Transaction& tx, const std::string& what, std::int64_t more = 1) {
    tCounts.GetOrAdd(tx, fmt::format("{}@{}", what, server_id_))->number += more;
  }

 private:
  const std::int32_t server_id_;
};

}  // namespace zeze::crash_test
