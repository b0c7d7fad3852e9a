#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/run.h"

namespace zeze::simulation {

const std::vector<std::pair<LeftOut, std::string>>& LeftOutNames() {
  static const std::vector<std::pair<LeftOut, std::string>> names = {
      {LeftOut::kFence, "fence"},
      {LeftOut::kFenceSequence, "fence-sequence"},
      {LeftOut::kLeaseCheck, "lease-check"},
      {LeftOut::kWaitBeforeFreeing, "wait-before-freeing"},
      {LeftOut::kFlushBeforeReduce, "flush-before-reduce"},
      {LeftOut::kConnectionOrder, "connection-order"},
      {LeftOut::kLoadStamp, "load-stamp"},
      {LeftOut::kStartTerm, "start-term"},
      {LeftOut::kAnnounceUnsaved, "announce-unsaved"},
      {LeftOut::kFencedLeases, "fenced-leases"},
      {LeftOut::kServerLease, "server-lease"},
      {LeftOut::kOldPeerDeadlock, "old-peer-deadlock"},
      {LeftOut::kClusterRow, "cluster-row"},
      {LeftOut::kTableIds, "table-ids"},
      {LeftOut::kAlone, "alone"},
      {LeftOut::kCloseBeforeFailing, "close-before-failing"},
      {LeftOut::kLoginProof, "login-proof"},
      {LeftOut::kRenewalSeen, "renewal-seen"},
      {LeftOut::kRenewalInDoubt, "renewal-in-doubt"},
      {LeftOut::kProofOfDeath, "proof-of-death"},
      {LeftOut::kEvictConnected, "evict-connected"},
      {LeftOut::kLateLogin, "late-login"},
      {LeftOut::kYieldFlush, "yield-flush"},
      {LeftOut::kYieldShare, "yield-share"},
      {LeftOut::kYieldNumber, "yield-number"},
      {LeftOut::kYieldTerm, "yield-term"},
      {LeftOut::kReconnectWhileYielding, "reconnect-while-yielding"},
  };
  return names;
}

}  // namespace zeze::simulation
