// Edited, Found: handles of a record in a transaction, as Table gives them.
//
//   zeze::Edited<BRole> role = roles.Edit(tx, id);
//   if (role) role->level += 1;

#pragma once

#include <cstddef>
#include <cstdint>

#include "zeze/base/check.h"
#include "zeze/transaction/record.h"
#include "zeze/transaction/transaction.h"
#include "zeze/transaction/value.h"

namespace zeze {

// The editable content of a record in a transaction. It finds the one working copy each time it is
// used, so it survives nested procedures and their rollbacks. Using it after the record was removed
// or the transaction ended stops the program with a message.
template <typename V>
class Edited {
 public:
  Edited() = default;
  Edited(Transaction& tx, internal::Access& access)
      : tx_(&tx),
        serial_(tx.serial()),
        index_(tx.IndexOf(access)),
        generation_(access.generation) {}

  explicit operator bool() const { return tx_ != nullptr; }
  V* operator->() const { return &Content(); }
  V& operator*() const { return Content(); }

 private:
  V& Content() const {
    ZEZE_CHECK(tx_ != nullptr);  // The record is absent: test the handle first.
    if (tx_->serial() != serial_) tx_->BadHandle("a handle was used after its transaction ended");
    internal::Access& access = tx_->at(index_);
    if (access.generation != generation_) {
      tx_->BadHandle("a handle was used after its record was removed");
    }
    tx_->MakeEditable(access);
    return static_cast<internal::Value<V>*>(access.working)->value;
  }

  Transaction* tx_ = nullptr;
  std::uint64_t serial_ = 0;
  std::size_t index_ = 0;
  std::uint32_t generation_ = 0;
};

// A record as Get shows it, that can be edited without looking for it again.
template <typename V>
class Found {
 public:
  Found() = default;
  Found(Transaction& tx, internal::Access& access, const V* content)
      : tx_(&tx), serial_(tx.serial()), index_(tx.IndexOf(access)), content_(content) {}

  explicit operator bool() const { return content_ != nullptr; }
  const V* operator->() const { return content_; }
  const V& operator*() const { return *content_; }

  // As Table::Edit.
  Edited<V> Edit() const {
    ZEZE_CHECK(content_ != nullptr);  // The record is absent: test first.
    if (tx_->serial() != serial_) tx_->BadHandle("a record was edited after its transaction ended");
    internal::Access& access = tx_->at(index_);
    if (access.content() == nullptr) return {};  // Removed since.
    internal::PrefetchForWrite(access.record);
    tx_->MakeEditable(access);
    return {*tx_, access};
  }

 private:
  Transaction* tx_ = nullptr;
  std::uint64_t serial_ = 0;
  std::size_t index_ = 0;
  const V* content_ = nullptr;
};

}  // namespace zeze
