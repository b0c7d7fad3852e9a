// MemoryStorage: tables that live as long as the process. For tests, and for servers whose data may
// be forgotten.
//
//   std::unique_ptr<Storage> storage = OpenMemoryStorage();
//
// To play a restart, keep the database and open it again:
//
//   std::shared_ptr<MemoryDatabase> database = NewMemoryDatabase();
//   OpenMemoryStorage(database)->Flush(writes, true);
//   std::unique_ptr<Storage> restarted = OpenMemoryStorage(database);   // Finds the rows again.

#pragma once

#include <memory>

#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze {

// The rows, apart from the Storage through which they are reached.
class MemoryDatabase;

std::shared_ptr<MemoryDatabase> NewMemoryDatabase();

// For tests: from now on it says that it is another copy, as after a fail-over to a replica that
// may lack what was acknowledged.
void BecomeAnotherCopy(MemoryDatabase& database);

// Never fails, and no operation ever returns kUnavailable, kUnknownOutcome or kCorrupt. Several
// storages may be open on one database, as several servers on one SQL database, each with a fence
// of its own. A null database stands for a new one.
//
// One mutex guards a whole database; it is held for the work on the maps, never for a callback.
std::unique_ptr<Storage> OpenMemoryStorage(std::shared_ptr<MemoryDatabase> database = nullptr);

// "memory:": a database of its own for each storage.
StorageDriver MemoryStorageDriver();

}  // namespace zeze
