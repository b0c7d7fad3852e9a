// Story: a history written down by hand, for the tests of the checker.
//
//   Check(Tell({
//       {.id = 1, .name = "deposit", .does = {Sees(7, {}), Appends(7, 10)}},
//       {.id = 2, .name = "audit", .does = {Sees(7, {10})}},
//   }), {});
//
// Transactions overlap each other unless `begin` and `end` say otherwise.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/history/history.h"

namespace zeze::history {

// A read that shows the whole list.
struct Sees {
  Sees(Key read_key, std::vector<Element> read_list) : key(read_key), list(std::move(read_list)) {}
  Key key;
  std::vector<Element> list;
};

// A read that shows only the state of this list.
struct SeesState {
  SeesState(Key read_key, const std::vector<Element>& list)
      : key(read_key), state(ListState::Of(list)) {}
  Key key;
  ListState state;
};

struct Appends {
  Appends(Key append_key, Element appended) : key(append_key), element(appended) {}
  Key key;
  Element element;
};

// Back to the savepoint before the operation with this index.
struct RollsBackTo {
  explicit RollsBackTo(std::size_t count) : operation_count(count) {}
  std::size_t operation_count;
};

using Deed = std::variant<Sees, SeesState, Appends, RollsBackTo>;

struct Told {
  TransactionId id = 0;
  std::string name = "procedure";
  std::vector<Deed> does = {};
  Outcome outcome = Outcome::kCommitted;
  std::uint64_t begin = 0;
  std::uint64_t end = 1000;
  std::size_t thread = 0;
};

inline History Tell(const std::vector<Told>& story) {
  struct Teller {
    History& history;
    void operator()(const Sees& deed) const { history.Read(deed.key, deed.list); }
    void operator()(const SeesState& deed) const { history.Read(deed.key, deed.state); }
    void operator()(const Appends& deed) const { history.Append(deed.key, deed.element); }
    void operator()(const RollsBackTo& deed) const { history.RollbackTo(deed.operation_count); }
  };
  History history;
  for (const Told& told : story) {
    history.Begin(told.id, told.thread, told.name, told.begin);
    for (const Deed& deed : told.does) std::visit(Teller{history}, deed);
    history.End(told.outcome, told.end);
  }
  return history;
}

}  // namespace zeze::history
