// SimulatedStore: a store of lists that is serializable by construction, for the tests of the
// checker, with clients whose transactions overlap in time; and ways to break it once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tests/history/history.h"
#include "tests/history/recorder.h"

namespace zeze::history {

enum class Fault : std::uint8_t {
  kNone,
  kLostUpdate,        // Two go on from the same list, the second overwrites the first.
  kWriteSkew,         // Two read two lists, each appends to one of them.
  kReadSkew,          // A reader sees one of two appends of a transaction.
  kStaleRead,         // A reader sees a list as it was before the last completed transaction.
  kHalfTransaction,   // One of two appends of a committed transaction is not there.
  kDirtyRead,         // The append of a rolled back transaction is seen once.
  kIntermediateRead,  // A reader sees the first of two appends to one list.
};

class SimulatedStore {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t client_count = 8;
    std::size_t key_count = 20;
    std::size_t transaction_count = 200;
    // Record reads as ListState instead of as lists.
    bool compact = true;
    // Also append to lists that the transaction has not read.
    bool blind = true;
    // Broken once, half way through.
    Fault fault = Fault::kNone;
  };

  // What a crash at some moment would leave behind if everything were flushed at once.
  struct Snapshot {
    std::vector<std::vector<Element>> lists;
    std::vector<TransactionId> committed;  // Known to be, at that moment.
  };

  explicit SimulatedStore(const Options& options)
      : options_(options),
        random_(options.seed),
        recorder_({.thread_count = options.client_count, .now = [this] { return ++now_; }}),
        clients_(options.client_count),
        lists_(options.key_count) {}

  // Runs everything, then one transaction that reads all keys.
  History Run();

  // Of a random moment of the run.
  const Snapshot& snapshot() const { return snapshot_; }

 private:
  using List = std::vector<Element>;

  // A transaction has a begin, one instant at which all of it happens, and an end.
  struct Client {
    std::optional<Attempt> attempt;
    bool executed = false;
  };

  std::size_t Random(std::size_t bound) { return random_() % bound; }
  std::size_t RandomKey() { return Random(4) == 0 ? Random(2) : Random(lists_.size()); }

  void Step(Client& client, std::size_t thread) {
    if (!client.attempt) {
      static constexpr const char* kNames[] = {"transfer", "audit", "grow", "nested", "give up"};
      client.attempt.emplace(recorder_.Begin(thread, kNames[Random(5)]));
      client.executed = false;
      ++begun_;
    } else if (!client.executed) {
      if (Random(10) == 0) {  // A conflict: what it saw was consistent, but nothing of it stays.
        const auto before = lists_;
        Execute(*client.attempt);
        lists_ = before;
        client.attempt->Restart();
        return;
      }
      const auto before = lists_;
      Execute(*client.attempt);
      client.executed = true;
      if (Random(8) == 0) {
        lists_ = before;
        client.attempt->Fail();
        client.attempt.reset();
      }
    } else {
      if (Random(20) != 0) {  // Otherwise unknown.
        committed_.push_back(client.attempt->id());
        client.attempt->Commit();
      }
      client.attempt.reset();
    }
  }

  void Execute(Attempt& attempt) {
    const std::size_t first = RandomKey();
    const std::size_t second = RandomKey();
    switch (Random(5)) {
      case 0:
        Update(attempt, first);
        Update(attempt, second);
        break;
      case 1:
        for (int i = 0; i < 4; ++i) Read(attempt, RandomKey());
        break;
      case 2:
        if (!options_.blind) Read(attempt, first);
        Append(attempt, first);
        Append(attempt, first);
        if (second != first && !options_.blind) Read(attempt, second);
        Append(attempt, second);
        break;
      case 3: {
        Update(attempt, first);
        const auto before = lists_;
        const auto savepoint = attempt.CreateSavepoint();
        Update(attempt, second);
        Read(attempt, second);
        lists_ = before;
        attempt.RollbackTo(savepoint);
        Update(attempt, first);
        break;
      }
      default:
        Update(attempt, first);
        Read(attempt, second);
        Read(attempt, first);
        break;
    }
  }

  void Update(Attempt& attempt, std::size_t key) {
    Read(attempt, key);
    Append(attempt, key);
  }

  void Read(Attempt& attempt, std::size_t key) { Read(attempt, key, lists_[key]); }

  void Read(Attempt& attempt, std::size_t key, const List& list) {
    if (options_.compact) {
      attempt.Read(key, ListState::Of(list));
    } else {
      attempt.Read(key, list);
    }
  }

  void Append(Attempt& attempt, std::size_t key) {
    const Element element = attempt.NewElement();
    lists_[key].push_back(element);
    attempt.Append(key, element);
  }

  void EndAll() {
    for (Client& client : clients_) {
      if (client.attempt && !client.executed) client.attempt->Abort();
      if (client.attempt && client.executed) client.attempt->Commit();
      client.attempt.reset();
    }
  }

  void Break() {
    Attempt one = recorder_.Begin(0, "one");
    Attempt two = recorder_.Begin(1, "two");
    const std::size_t key = Random(lists_.size());
    const std::size_t other = (key + 1 + Random(lists_.size() - 1)) % lists_.size();
    const List old = lists_[key];
    switch (options_.fault) {
      case Fault::kNone:
        break;
      case Fault::kLostUpdate:
        Update(one, key);
        lists_[key] = old;
        Update(two, key);
        break;
      case Fault::kWriteSkew:
        Read(one, other);
        Update(one, key);
        Read(two, key, old);
        Update(two, other);
        break;
      case Fault::kReadSkew:
        Update(one, key);
        Update(one, other);
        Read(two, key, old);
        Read(two, other);
        break;
      case Fault::kStaleRead:
        Update(one, key);
        one.Commit();
        two.Restart();
        Read(two, key, old);
        break;
      case Fault::kHalfTransaction:
        Update(one, key);
        lists_[key] = old;
        Update(one, other);
        break;
      case Fault::kDirtyRead:
        Update(one, key);
        Read(two, key);
        lists_[key] = old;
        one.Abort();
        break;
      case Fault::kIntermediateRead:
        Update(one, key);
        Read(two, key);
        Append(one, key);
        break;
    }
    if (options_.fault != Fault::kStaleRead && options_.fault != Fault::kDirtyRead) one.Commit();
    two.Commit();
  }

  const Options options_;
  std::mt19937_64 random_;
  std::uint64_t now_ = 0;
  Recorder recorder_;
  std::vector<Client> clients_;
  std::vector<List> lists_;
  std::vector<TransactionId> committed_;
  Snapshot snapshot_;
  std::size_t begun_ = 0;
};

inline History SimulatedStore::Run() {
  bool broken = options_.fault == Fault::kNone;
  const std::size_t snapshot_at = Random(options_.transaction_count);
  while (begun_ < options_.transaction_count) {
    const std::size_t thread = Random(clients_.size());
    Step(clients_[thread], thread);
    if (begun_ == snapshot_at) snapshot_ = {lists_, committed_};
    if (!broken && begun_ * 2 >= options_.transaction_count) {
      EndAll();
      Break();
      broken = true;
    }
  }
  EndAll();
  Attempt audit = recorder_.Begin(0, "audit of everything");
  for (std::size_t key = 0; key < lists_.size(); ++key) Read(audit, key);
  audit.Commit();
  return recorder_.Finish();
}

}  // namespace zeze::history
