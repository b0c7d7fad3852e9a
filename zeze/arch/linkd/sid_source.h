// SidSource: numbers for clients' connections, each used once in the life of a gateway, whatever
// happens to its process.
//
//   Result<std::unique_ptr<SidSource>> sids = OpenSidFile("linkd.sids");
//   SidCounter counter(*sids.value(), 1'000'000);
//   std::optional<std::int64_t> sid = counter.Next();

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/registry/service/registry_agent.h"

namespace zeze::arch {

struct SidBlock {
  std::int64_t next = 0;
  std::int64_t end = 0;
};

// Thread-safe.
class SidSource {
 public:
  virtual ~SidSource() = default;

  // A block that nobody has got before, and nobody gets again. May wait.
  virtual Result<SidBlock> Allocate(std::uint32_t count) = 0;
};

// A file that holds the next number; it is on the disk before a block is given out. Fails with
// kInUse if another process has the file open, with kCorrupt if something else is in it.
Result<std::unique_ptr<SidSource>> OpenSidFile(const std::string& path);

// Ids of a name of the service manager. The agent outlives the source.
std::unique_ptr<SidSource> SidsOfRegistry(registry::RegistryAgent& agent, std::string name);

// Begins at 1 whenever the process starts: for tests.
std::unique_ptr<SidSource> SidsInMemory();

// Hands out the numbers of blocks, and has the next one fetched before the last is used up.
// Thread-safe.
class SidCounter {
 public:
  SidCounter(SidSource& source, std::uint32_t block) : source_(source), block_(block) {}

  // None: used up faster than Refill came.
  std::optional<std::int64_t> Next();

  // Whether somebody should call Refill; true once for each time.
  bool WantsRefill();

  // Waits for the source.
  Result<void> Refill();

 private:
  SidSource& source_;
  const std::uint32_t block_;

  Mutex mutex_;
  SidBlock now_ ZEZE_GUARDED_BY(mutex_);
  SidBlock later_ ZEZE_GUARDED_BY(mutex_);
  bool refilling_ ZEZE_GUARDED_BY(mutex_) = false;
};

}  // namespace zeze::arch
