// RunSeed: one simulated life of a cluster, from its seed alone: servers, Globals, a database,
// clients, and everything that can go wrong. Says whether I1, I2 and I3 held.
//
//   const RunReport report = RunSeed(4711, {});
//   EXPECT_TRUE(report.ok()) << report.failure;

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zeze::simulation {

// Leaves one rule out, to see that the simulation finds what it is for.
enum class LeftOut : std::uint8_t {
  kNothing,
  kFence,
  kFenceSequence,
  kLeaseCheck,
  kWaitBeforeFreeing,
  kFlushBeforeReduce,
  kConnectionOrder,
  kLoadStamp,
  kStartTerm,
  kAnnounceUnsaved,
  kFencedLeases,
  kServerLease,
  kOldPeerDeadlock,
  kClusterRow,
  kTableIds,
  kAlone,
  kCloseBeforeFailing,
  kLoginProof,
  kRenewalSeen,
  kRenewalInDoubt,
  kProofOfDeath,
  kEvictConnected,
  kLateLogin,
  kYieldFlush,
  kYieldShare,
  kYieldNumber,
  kYieldTerm,
  kReconnectWhileYielding,
};
const std::vector<std::pair<LeftOut, std::string>>& LeftOutNames();

struct RunOptions {
  LeftOut left_out = LeftOut::kNothing;
  bool keep_story = false;
};

struct RunReport {
  bool ok() const { return failure.empty(); }
  std::string failure;
  std::vector<std::string> story;  // What happened, in order, if it was kept.
  std::size_t committed_count = 0;
  std::size_t lost_count = 0;
  std::size_t failed_count = 0;
  std::size_t fault_count = 0;
  std::uint64_t event_count = 0;
};

RunReport RunSeed(std::uint64_t seed, const RunOptions& options);

}  // namespace zeze::simulation
