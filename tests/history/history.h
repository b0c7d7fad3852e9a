// History: what a test saw transactions do, as appends to lists and reads of lists.
//
// A checker cannot see inside a database, but if every write appends a unique element to a list,
// then each read tells the whole order of writes before it. A workload therefore keeps a list per
// key, and records which lists its procedures read and which elements they appended (recorder.h).
// checker.h then looks for anything that no serial execution could have shown.
//
// A record does not have to hold the list itself. ListState is its fingerprint in 24 bytes:
//
//   ListState state = Load(tx, key);             // The fields of a record.
//   attempt.Read(key, state);
//   const Element element = attempt.NewElement();
//   Store(tx, key, state.Extended(element));
//   attempt.Append(key, element);
//
// Records that are removed: an element stands for the removal too. A remove appends its element and
// leaves the ListState in a second table (a graveyard); an insert goes on from the ListState found
// there; who finds the record absent reads the graveyard. Both together are one key here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::history {

// Chosen by the workload; for records of several tables put the table into the high bits.
using Key = std::uint64_t;

// Unique among all appends to one key, those of rolled back attempts included.
using Element = std::uint64_t;

// Unique among all attempts of a history. Reports print it as T12.
using TransactionId = std::uint64_t;

// Fingerprint of a list: two lists with equal states are equal, as far as 64 bits of hash can tell.
struct ListState {
  std::uint64_t length = 0;
  Element last = 0;  // 0 when empty.
  std::uint64_t hash = 0;

  // The list with the element appended.
  ListState Extended(Element element) const;
  static ListState Of(std::span<const Element> elements);

  bool operator==(const ListState&) const = default;
};

enum class Outcome : std::uint8_t {
  kCommitted,
  kFailed,   // Rolled back because its own code said so. Its reads were validated.
  kAborted,  // Rolled back by the system (conflict); usually followed by another attempt.
  kUnknown,  // The process ended, or the answer was lost, before the outcome was known.
  kLost,     // Committed, then taken away by a crash that was allowed to (History::MarkLost).
};

std::string_view ToString(Outcome outcome);

enum class OperationKind : std::uint8_t { kReadState, kReadList, kAppend };

struct Operation {
  Key key = 0;

  // The appended element, or the last one of the list that was read (0 if it was empty).
  Element element = 0;

  // kReadState: the hash. kReadList: where its elements begin in the history's pool.
  // kAppend: 0, or 1 + the number of operations before the rollback to a savepoint that undid it.
  std::uint64_t detail = 0;

  std::uint32_t length = 0;  // Of the list that was read.
  OperationKind kind = OperationKind::kReadState;
};

// One attempt to run a procedure.
struct Transaction {
  TransactionId id = 0;
  std::uint64_t begin = 0;  // Stamps of one clock: a transaction whose end is smaller than the
  std::uint64_t end = 0;    // begin of another was over before the other started.
  std::uint64_t first_operation = 0;
  std::uint32_t operation_count = 0;
  std::uint32_t thread = 0;
  std::uint32_t name = 0;
  Outcome outcome = Outcome::kUnknown;
};

// All attempts of a run. Transactions of one thread stand in the order in which they ran.
// A value; building it is not thread-safe.
class History {
 public:
  std::span<const Transaction> transactions() const { return transactions_; }
  std::span<const Operation> operations() const { return operations_; }
  std::span<const Operation> operations(const Transaction& transaction) const;

  // The list that a kReadList operation saw.
  std::span<const Element> elements(const Operation& operation) const;

  // Name of the procedure.
  std::string_view name(const Transaction& transaction) const;

  // Null if there is none. Looks at every transaction.
  const Transaction* Find(TransactionId id) const;

  // Building: one transaction at a time, from Begin to End.
  void Begin(TransactionId id, std::size_t thread, std::string_view name, std::uint64_t stamp);
  void Read(Key key, const ListState& state);
  void Read(Key key, std::span<const Element> elements);
  void Append(Key key, Element element);
  // Undoes the appends that come after the first operation_count operations.
  void RollbackTo(std::size_t operation_count);
  void End(Outcome outcome, std::uint64_t stamp);

  void Reserve(std::size_t transaction_count, std::size_t operation_count);

  // Turns these transactions into kLost: the checker then expects no trace of them. Call it with
  // CutReport::lost after a crash, before what happened later is added.
  void MarkLost(std::span<const TransactionId> ids);

  // Adds what happened after everything that is here, for example after a restart. Its stamps move
  // behind those of this history and its threads are new sessions. Ids must not collide: see
  // Recorder::Options::id_base.
  void Concatenate(const History& later);

 private:
  std::uint32_t Intern(std::string_view name);

  std::vector<Transaction> transactions_;
  std::vector<Operation> operations_;
  std::vector<Element> elements_;
  std::vector<std::string> names_;
  bool open_ = false;  // The last transaction has begun and not ended.
};

}  // namespace zeze::history
