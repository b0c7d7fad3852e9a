// Coherence: the port through which records get and lose their rights.
//
// The transaction layer does not know the network. It asks this interface for a right before it
// reads or writes a record, and is asked through Engine::Reduce to give one back. A process that
// has the database to itself uses no Coherence at all: every record then carries the Modify right.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"

namespace zeze {

// Ordered: a higher right includes the lower ones. Stored in record words; do not renumber.
enum class Right : std::uint8_t { kInvalid = 0, kShare = 1, kModify = 2 };

// Rights that a procedure got and has not used yet. For a moment they are not given to others, so
// that it can commit at least once (rules 21 and 22).
struct FreshRights {
  std::vector<std::string> keys;
};

// Implementations are thread-safe. No call is made while a record lock is held.
class Coherence {
 public:
  virtual ~Coherence() = default;

  // Blocks until the right is granted or cannot be had. `key` is the global key: table id as four
  // bytes little-endian, then the encoded key. An error fails the procedure; it is never taken as
  // a grant.
  // A grant is installed by `install`, called at most once, on any thread, before any later message
  // about the key is looked at (rule 16). If somebody else is asking for the key, this waits for
  // them and returns without an installation: the caller looks at the record again.
  virtual Result<void> Acquire(std::string_view key, Right wanted, FreshRights& fresh,
                               FunctionRef<void(Right granted)> install) = 0;

  struct Wish {
    std::string key;
    Right wanted = Right::kInvalid;
  };
  // Asks for many at once, so that all of them cost one round trip. Only a hint: what cannot be
  // had, or is being asked for by somebody else, is left out, and what comes is not kept from
  // others. `install` is called as that of Acquire, but perhaps on several threads at a time; not
  // after this has returned.
  virtual void AcquireAll(std::span<const Wish> /*wishes*/, FreshRights& /*fresh*/,
                          FunctionRef<void(std::size_t index, Right granted)> /*install*/) {}

  // The procedure has ended.
  virtual void Used(FreshRights& fresh) = 0;

  // The record left the cache; the right is given back. Returns once no later Acquire of the key
  // can overtake the release.
  virtual void Release(std::string_view key) = 0;

  // Asked between validation and installation of every commit, and before a read-only result is
  // believed. False: nothing is installed, the procedure fails.
  virtual bool LeaseValid() = 0;
};

}  // namespace zeze
