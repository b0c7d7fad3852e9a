// Analysis: the order of appends to each key, recovered from a history, and everything that is
// wrong with single reads. The ground of Check (checker.cc) and CheckCut (cut.cc).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"

namespace zeze::history::internal {

// Id of what is not a transaction but the state found after a crash. Recorders begin with 1.
inline constexpr TransactionId kStateId = 0;

// Stores the first anomalies of each kind, and all of the state, and counts the rest, whose text is
// never made.
class AnomalyList {
 public:
  explicit AnomalyList(std::size_t max) : max_(max) {}

  void Add(AnomalyKind kind, std::vector<TransactionId> transactions,
           const std::function<std::string()>& text);

  std::vector<Anomaly> anomalies;
  std::size_t count = 0;

 private:
  std::size_t max_;
  std::array<std::size_t, 32> count_of_kind_ = {};
};

// Transactions, operations, keys, appends and reads are named by their index in the history or in
// the vectors below.
class Analysis {
 public:
  enum class Role : std::uint8_t {
    kOutside,  // Takes no part.
    kReader,   // Only its reads count: it was rolled back.
    kWriter,   // Committed, or unknown and seen to be committed.
  };

  struct Append {
    std::uint32_t transaction = 0;
    std::uint32_t operation = 0;
    std::uint32_t key = 0;
    std::uint32_t position = kNone;  // In the list of the key.
    std::uint32_t read = kNone;      // Of the same key by the same transaction.
    bool undone = false;             // By a rollback to a savepoint.
    bool last = false;               // Of its transaction for this key.
    bool misplaced = false;          // Another append stands where this one belongs.
  };

  // What a transaction saw of a key before its own appends; one per transaction and key.
  struct Read {
    std::uint32_t transaction = 0;
    std::uint32_t operation = 0;
    std::uint32_t key = 0;
    std::uint32_t length = 0;
    std::uint32_t last_append = kNone;  // If known.
    bool has_hash = false;
    bool placed = false;
    bool broken = false;  // Contradicts the order; an anomaly says so.
    std::uint64_t hash = 0;
  };

  Analysis(const History& history, const Options& options);

  const History& history() const { return history_; }
  const Options& options() const { return options_; }
  std::span<const Role> roles() const { return roles_; }
  std::span<const Append> appends() const { return appends_; }
  std::span<const Read> reads() const { return reads_; }
  std::size_t key_count() const { return keys_.size(); }
  Key key(std::uint32_t key) const { return keys_[key]; }
  std::uint32_t FindKey(Key key) const { return key_index_.Find(key, 0); }

  // Appends to the key, grouped by transaction.
  std::span<const std::uint32_t> AppendsOf(std::uint32_t key) const;
  // Reads of the key, shortest first.
  std::span<const std::uint32_t> ReadsOf(std::uint32_t key) const;
  // The recovered order: an append for each position, kNone where it is not known.
  std::span<const std::uint32_t> OrderOf(std::uint32_t key) const;
  bool HasGaps(std::uint32_t key) const { return has_gaps_[key] != 0; }

  bool IsWriter(std::uint32_t append) const {
    return !appends_[append].undone && roles_[appends_[append].transaction] == Role::kWriter;
  }

  std::uint32_t AppendOfOperation(std::uint32_t operation) const {
    return append_of_operation_[operation];
  }

  // For texts: "T12 `transfer`", "key 7".
  std::string Name(std::uint32_t transaction) const;
  std::string KeyName(Key key) const;
  TransactionId Id(std::uint32_t transaction) const {
    return history_.transactions()[transaction].id;
  }
  Element ElementOf(std::uint32_t append) const {
    return history_.operations()[appends_[append].operation].element;
  }

  AnomalyList anomalies;

 private:
  struct Group;

  void RegisterAppends();
  void RegisterAppend(std::uint32_t transaction, std::uint32_t operation);
  void ChooseRoles();
  void ReadTransactions();

  void SortByKey(std::uint32_t transaction);
  void ReadTransaction(std::uint32_t transaction);
  void ReadGroup(std::uint32_t transaction, std::span<const std::uint32_t> operations);
  bool CheckOwnAppends(const Group& group, std::uint32_t operation);
  void ReadFirst(Group& group, std::uint32_t operation);
  void ReadAgain(const Group& group, std::uint32_t operation);
  void CheckElement(Read& read, Element element, bool is_last);
  void ReportUnknownElement(const Read& read, Element element);

  void GroupByKey();
  void OrderKey(std::uint32_t key);
  template <typename Chosen>
  void PlaceReads(std::span<const std::uint32_t> reads, const Chosen& chosen);
  void PlaceRead(std::uint32_t read);
  void Place(std::uint32_t read, std::uint32_t position, std::uint32_t append);
  void PlaceBlock(std::span<const std::uint32_t> block);
  void FinishOrder(std::uint32_t key);
  void CheckHashes(std::uint32_t key);
  void AddIncompatibleOrder(const Read& read, std::vector<TransactionId> transactions,
                            const std::function<std::string()>& text);
  bool IsState(std::uint32_t transaction) const { return Id(transaction) == kStateId; }

  const History& history_;
  const Options& options_;
  std::vector<Role> roles_;
  std::vector<std::uint32_t> to_read_;  // Transactions that take part and were not looked at yet.
  std::vector<Key> keys_;
  IndexMap key_index_;
  IndexMap append_index_;  // By key and element.
  std::vector<Append> appends_;
  std::vector<std::uint32_t> append_of_operation_;
  std::vector<Read> reads_;

  // Slices of one vector for each key: [begin[key], begin[key + 1]).
  std::vector<std::uint32_t> append_begin_;
  std::vector<std::uint32_t> appends_by_key_;
  std::vector<std::uint32_t> read_begin_;
  std::vector<std::uint32_t> reads_by_key_;
  // Parallel to appends_by_key_: the order, and the read that told it.
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> witness_;
  std::vector<std::uint32_t> order_length_;
  std::vector<std::uint8_t> has_gaps_;
  std::uint32_t incompatible_key_ = kNone;  // Key of the last anomaly of that kind.

  std::vector<std::uint32_t> sorted_;  // Scratch: operations of one transaction by key.
};

}  // namespace zeze::history::internal
