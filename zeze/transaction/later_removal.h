// LaterRemoval: the port through which records of a table are removed later. Table::DelayRemove
// asks for it, zeze/components/delay_remove does it.

#pragma once

#include <chrono>
#include <string>

namespace zeze {

class TableBase;
class Transaction;

// Thread-safe. Both calls are parts of the transaction: what they write commits with it, and what
// they throw rolls it back.
class LaterRemoval {
 public:
  virtual ~LaterRemoval() = default;

  // The record, which exists, is to be removed after so long; zero: as long as is usual.
  virtual void RemoveLater(Transaction& tx, TableBase& table, std::string encoded_key,
                           std::chrono::milliseconds delay) = 0;

  // The procedure has ended well and has written or removed the record, and did not ask for its
  // removal after that. Only of tables that tell writes.
  virtual void Written(Transaction& tx, TableBase& table, std::string encoded_key) = 0;
};

}  // namespace zeze
