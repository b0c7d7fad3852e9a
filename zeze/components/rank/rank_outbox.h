// RankOutbox: brings updates of roles to their boards, whatever happens in between.
//
// An update is written into a record of its own, one for each role and board, in the transaction
// that causes it. The record is removed when the board has the update, so what is lost on the way,
// by a crash, a stop or a broken connection, is still there and is done later. It holds the newest
// update only: updates of a role on a board follow each other in the order of their commits.
//
// Two ways lead to the board:
//
//   here      one transaction changes the group and removes the record. Always right, at any
//             server; but the group's record travels to this one.
//   delivery  a message brings many updates of a group to the server that owns it. They are saved
//             here before they are sent, and saved there before they are acknowledged; then the
//             records are removed, if they have not changed meanwhile.
//
// A delivery that got no answer may run at any time later and must not undo what came after it. So
// each group has a generation, which deliveries must name. Whoever goes the way "here" after such a
// delivery gives the group a new generation: then nothing of before is accepted any more. Within a
// generation each process numbers its deliveries, and none is accepted twice. Only the
// process that a record names delivers it, one message at a time for each group. Any process may
// take the other way for any record: records that nobody has cared for during two looks at the
// table are done by the owner of their group.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Game/Rank.h"
#include "zeze/app/application.h"
#include "zeze/base/result.h"
#include "zeze/components/rank/rank_board.h"
#include "zeze/components/rank/rank_router.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

struct RankOutboxOptions {
  std::uint32_t concurrent_level = 128;
  RankRouter* router = nullptr;
  // How often the table is looked through for updates that nobody cares for.
  std::chrono::nanoseconds repair_period = std::chrono::seconds(10);
  // How long Stop tries to bring everything to the boards. The rest is for other servers, or for
  // the next start.
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);
  // Updates that this process remembers; others are found when the table is looked through.
  std::size_t notes_max = 1 << 18;
};

// Thread-safe after Start.
class RankOutbox {
 public:
  using Key = Zeze::Builtin::Game::Rank::BPendingKey;
  using Row = Zeze::Builtin::Game::Rank::BPending;

  struct Update {
    std::int64_t role = 0;
    std::string value = {};  // Type id and bytes.
  };
  // Changes a group in the transaction. `fence`: gives it a new generation. A module's own code
  // means that the updates cannot be done by this program at all.
  using Apply = std::function<std::int64_t(Transaction& tx, const RankKey& group,
                                           std::span<const Update> updates, bool fence)>;

  // What a delivery brings, and what is answered.
  struct Delivery {
    RankKey group = {};
    std::int64_t generation = 0;
    std::int64_t sender = 0;  // The process.
    std::int64_t number = 0;  // Grows with each delivery of the process.
    std::uint32_t level = 0;
    std::vector<Update> updates = {};
  };
  static std::string EncodeDelivery(const Delivery& delivery);
  static bool DecodeDelivery(std::string_view bytes, Delivery& delivery);
  // Not accepted: nothing was done, and this is the group's generation.
  struct Receipt {
    bool accepted = false;
    std::int64_t generation = 0;
  };
  static std::string EncodeReceipt(const Receipt& receipt);
  static bool DecodeReceipt(std::string_view bytes, Receipt& receipt);

  // The table outlives this.
  RankOutbox(Table<Key, Row>& rows, const RankOutboxOptions& options, Apply apply);
  ~RankOutbox();
  RankOutbox(const RankOutbox&) = delete;
  RankOutbox& operator=(const RankOutbox&) = delete;

  void Start(Application& application);
  // Brings to the boards what can be brought; see drain_timeout. Procedures still run.
  void Stop();

  void Put(Transaction& tx, const RankBoard& board, std::int64_t role, std::uint32_t hash,
           std::string value);
  // The update that waits is void. The caller must give the group a new generation if this returns
  // true: the update may be on its way.
  bool Withdraw(Transaction& tx, const RankBoard& board, std::int64_t role);

  // Positive, and never the same again, in no process.
  std::int64_t NextStamp();

  struct Statistics {
    std::size_t waiting = 0;        // Updates that this process remembers.
    std::uint64_t done_here = 0;    // Updates.
    std::uint64_t delivered = 0;    // Updates.
    std::uint64_t adopted = 0;      // Updates that another process had left.
    std::uint64_t out_of_date = 0;  // Deliveries with an old generation.
    std::uint64_t failed = 0;       // Tries that were repeated.
  };
  Statistics GetStatistics() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// The first server of a cluster decides into how many groups boards are cut; one that is set to
// another level must not start: it would look for roles in wrong groups, and be asked to. A server
// with `level_before` equal to the level so far changes it.
// Errors: kIncompatible; kUnavailable, the record cannot be had.
Result<void> AgreeOnRankLevel(Application& application,
                              Table<std::int32_t, Zeze::Builtin::Game::Rank::BLevel>& levels,
                              std::uint32_t level, std::uint32_t level_before);

}  // namespace zeze
