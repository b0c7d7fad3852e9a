// ValueOperations: what a transaction does with a value whose type it does not know.

#pragma once

#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"

namespace zeze::internal {

struct ValueOperations {
  ValueHeader* (*copy)(Participant& by, const ValueHeader& value);
  void (*assign)(ValueHeader& to, const ValueHeader& from);
  Disposer dispose;
  // Whether the edited value is what the record had; false if that cannot be told cheaply. The
  // answer counts only if the record's word is found unchanged later.
  bool (*unchanged)(const Record& record, const ValueHeader& edited, const ValueHeader* committed);
  // Sets the bean's version variable to the old value's plus one; null if it has none.
  void (*raise_version)(ValueHeader& value, const ValueHeader* old);

  // Both null if values are apart from their records. Otherwise a value is stored by whoever holds
  // the record's lock, and fetched as a copy by anybody: true if the word is the same before and
  // after.
  void (*store)(Record& record, const ValueHeader& value);
  ValueHeader* (*fetch)(Participant& by, const Record& record);

  bool in_record() const { return store != nullptr; }
};

}  // namespace zeze::internal
