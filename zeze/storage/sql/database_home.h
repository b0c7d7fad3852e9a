// DatabaseHome: what operators do with the copies of a database (rules 73 to 75 of
// docs/architecture.md). Works on exactly the copy that the address names, whatever its state.
//
//   Result<std::string> marker = old_copy->BeginSwitchOver();     // Then promote the replica.
//   Result<void> finished = new_copy->FinishSwitchOver(marker.value());

#pragma once

#include <cstdint>
#include <string>

#include "zeze/base/result.h"
#include "zeze/storage/sql/database_copy.h"

namespace zeze {

// Not thread-safe. Errors of all calls: kUnavailable (nothing happened), kUnknownOutcome (it
// happened or not: repeat it), kInvalidArgument (it cannot be done here; the message says why).
class DatabaseHome {
 public:
  DatabaseHome(const DatabaseHome&) = delete;
  DatabaseHome& operator=(const DatabaseHome&) = delete;
  virtual ~DatabaseHome() = default;

  struct Facts {
    std::string identity;  // Of this copy; empty if it takes no writes.
    HomeRow row;
  };
  virtual Result<Facts> Read() = 0;

  // In the copy that counts: it takes no flush, renewal, start or eviction any more, all sessions of
  // the framework end, and every process waits. Returns the marker, which is the last thing this
  // copy took. Repeated, it returns the same.
  virtual Result<std::string> BeginSwitchOver() = 0;

  // In the copy that was promoted: it counts from now on, and every process goes on with it.
  virtual Result<void> FinishSwitchOver(const std::string& marker) = 0;

  // In the copy in which it was begun: it goes on. Never after FinishSwitchOver elsewhere.
  virtual Result<void> CancelSwitchOver(const std::string& marker) = 0;

  // Makes a copy that may lack what was acknowledged the one that counts. Epochs, terms and the
  // number of the home rise by `margin`, which must be more than the lost copy can have counted on.
  virtual Result<void> Adopt(std::int64_t margin) = 0;

 protected:
  DatabaseHome() = default;
};

}  // namespace zeze
