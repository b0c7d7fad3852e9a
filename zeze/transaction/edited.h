// Edited, Found: handles of a record in a transaction, as Table gives them.
//
//   zeze::Edited<BRole> role = roles.Edit(tx, id);
//   if (role) role->level += 1;
//
// A handle is good as long as the body of its procedure runs, on its thread. Using it later (in an
// action, in another transaction, elsewhere), using an empty one, or one whose record was removed,
// throws UsageError: the procedure rolls back and the message names the record.

#pragma once

#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/value.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// The editable content of a record in a transaction. It finds the one working copy each time it is
// used, so it survives nested procedures and their rollbacks.
template <typename V>
class Edited {
 public:
  Edited() = default;
  // Empty if the record does not exist.
  Edited(Transaction& tx, internal::Access& access) : handle_(tx.HandleOf(access)) {}

  explicit operator bool() const { return handle_.present; }
  V* operator->() const { return &Content(); }
  V& operator*() const { return Content(); }

 private:
  V& Content() const {
    internal::Access& access = Transaction::ResolveContent(handle_);
    handle_.transaction->MakeEditable(access);
    return static_cast<internal::Value<V>*>(access.working)->value;
  }

  internal::Handle handle_;
};

// A record as Get shows it, that can be edited without looking for it again.
template <typename V>
class Found {
 public:
  Found() = default;
  Found(Transaction& tx, internal::Access& access, const V* content)
      : handle_(tx.HandleOf(access)), content_(content) {}

  explicit operator bool() const { return content_ != nullptr; }
  const V* operator->() const { return &**this; }
  const V& operator*() const {
    Transaction::Resolve(handle_);
    return *content_;
  }

  // As Table::Edit.
  Edited<V> Edit() const {
    internal::Access& access = Transaction::Resolve(handle_);
    if (access.content() != nullptr) {  // Otherwise it was removed since.
      internal::PrefetchForWrite(access.record);
      handle_.transaction->MakeEditable(access);
    }
    return {*handle_.transaction, access};
  }

 private:
  internal::Handle handle_;
  const V* content_ = nullptr;
};

}  // namespace zeze
