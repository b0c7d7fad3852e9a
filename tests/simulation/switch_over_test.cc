// Every order of the steps of a switch-over (rules 73 to 75), with the judgement that connections
// make (zeze/storage/sql/database_copy.h): two servers, two copies of a database, any prefix
// replicated, promotion at any moment, planned or not, operators who begin, finish and cancel.
//
// What must hold: no copy that lacks an acknowledged flush takes a flush or is loaded from. Each
// rule that is left out is found.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/sql/database_copy.h"

namespace zeze {
namespace {

enum class LeftOut : std::uint8_t {
  kNothing,
  kFreeze,       // begin writes the marker, and the old copy takes flushes as before.
  kEndSessions,  // begin leaves sessions that are connected.
  kIdentity,     // Connections do not compare.
  kMarker,       // finish does not look for the marker.
  kEither,       // Operators finish and cancel the same switch-over.
};

constexpr std::size_t kServers = 2;
constexpr int kFlushes = 3;

// One copy: the flushes it has, by number, and its row.
struct Copy {
  std::vector<int> flushes;
  std::string home = "old";
  std::int64_t number = 1;
  std::int64_t frozen = 0;
  bool marker = false;

  auto operator<=>(const Copy&) const = default;
};

struct Server {
  std::string copy;  // That it is connected to; empty: none.
  std::string known;
  std::int64_t known_number = 0;  // 0: it has used none.
  bool ended = false;

  auto operator<=>(const Server&) const = default;
};

struct State {
  std::vector<Copy> versions = {Copy{}};  // Of the old copy, each after one more write.
  std::size_t replicated = 0;
  std::optional<Copy> promoted;
  std::array<Server, kServers> servers = {};
  std::set<int> acknowledged;
  bool finished = false;
  bool cancelled = false;
  bool begun = false;

  auto operator<=>(const State&) const = default;
};

class Explorer {
 public:
  explicit Explorer(LeftOut left_out) : left_out_(left_out) {}

  // The first violation, if there is one.
  std::optional<std::string> Explore() {
    std::set<State> seen = {State{}};
    std::deque<State> open = {State{}};
    while (!open.empty() && !violation_) {
      const State state = open.front();
      open.pop_front();
      Next(state, [&](State next) {
        if (seen.insert(next).second) open.push_back(std::move(next));
      });
    }
    states_ = seen.size();
    return violation_;
  }

  std::size_t states() const { return states_; }

 private:
  using Emit = std::function<void(State)>;

  static Copy& CopyOf(State& state, const std::string& name) {
    return name == "old" ? state.versions.back() : *state.promoted;
  }

  // A write into a copy; the old one's are replicated one after another.
  static Copy& Write(State& state, const std::string& name) {
    if (name == "old") state.versions.push_back(state.versions.back());
    return CopyOf(state, name);
  }

  void Next(const State& state, const Emit& emit) {
    if (!state.promoted && state.replicated + 1 < state.versions.size()) {
      State next = state;
      ++next.replicated;
      emit(std::move(next));
    }
    if (!state.promoted) {
      State next = state;
      next.promoted = state.versions[state.replicated];
      emit(std::move(next));
    }
    Begin(state, emit);
    Finish(state, emit);
    Cancel(state, emit);
    for (std::size_t s = 0; s < kServers; ++s) {
      Connect(state, s, "old", emit);
      if (state.promoted) Connect(state, s, "new", emit);
      Flush(state, s, emit);
    }
  }

  void Begin(const State& state, const Emit& emit) {
    if (state.begun) return;
    State next = state;
    Copy& old = Write(next, "old");
    old.marker = true;
    if (left_out_ != LeftOut::kFreeze) old.frozen = old.number + 1;
    next.begun = true;
    // The sessions end only after the marker is written; until then their flushes find the freeze.
    for (Server& server : next.servers) {
      if (left_out_ != LeftOut::kEndSessions && server.copy == "old") server.copy.clear();
    }
    emit(std::move(next));
  }

  void Finish(const State& state, const Emit& emit) {
    if (!state.promoted || state.finished || !state.begun) return;
    if (state.cancelled && left_out_ != LeftOut::kEither) return;
    if (!state.promoted->marker && left_out_ != LeftOut::kMarker) return;
    State next = state;
    next.finished = true;
    next.promoted->home = "new";
    next.promoted->number = 2;
    next.promoted->frozen = 0;
    emit(std::move(next));
  }

  void Cancel(const State& state, const Emit& emit) {
    if (!state.begun || state.cancelled) return;
    if (state.finished && left_out_ != LeftOut::kEither) return;
    State next = state;
    next.cancelled = true;
    Copy& old = Write(next, "old");
    old.marker = false;
    old.frozen = 0;
    emit(std::move(next));
  }

  void Connect(const State& state, std::size_t s, const std::string& name, const Emit& emit) {
    if (state.servers[s].ended || !state.servers[s].copy.empty()) return;
    State next = state;
    Server& server = next.servers[s];
    const Copy& copy = CopyOf(next, name);
    std::optional<KnownCopy> known;
    if (server.known_number != 0) {
      known = KnownCopy{.identity = server.known, .number = server.known_number};
    }
    const bool first = !known;
    CopyVerdict verdict = JudgeCopy(known, name,
                                    {.home = copy.home,
                                     .number = copy.number,
                                     .frozen = copy.frozen,
                                     .marker = copy.marker ? "m" : ""});
    if (left_out_ == LeftOut::kIdentity) {
      verdict = copy.frozen == 0 ? CopyVerdict::kUse : CopyVerdict::kFrozen;
    }
    if (known) {
      server.known = known->identity;
      server.known_number = known->number;
    }
    if (verdict == CopyVerdict::kUse) server.copy = name;
    if (verdict == CopyVerdict::kForeign && !first) server.ended = true;
    CheckLoads(next);
    emit(std::move(next));
  }

  static bool Has(const Copy& copy, int flush) {
    return std::find(copy.flushes.begin(), copy.flushes.end(), flush) != copy.flushes.end();
  }

  // Whoever is connected may load.
  void CheckLoads(State& state) {
    for (const Server& server : state.servers) {
      if (server.copy.empty()) continue;
      for (const int one : state.acknowledged) {
        if (Has(CopyOf(state, server.copy), one)) continue;
        violation_ = "a server loads from the " + server.copy + " copy, which lacks flush " +
                     std::to_string(one);
      }
    }
  }

  void Flush(const State& state, std::size_t s, const Emit& emit) {
    const std::string& name = state.servers[s].copy;
    const int flush = static_cast<int>(state.acknowledged.size()) + 1;
    if (name.empty() || flush > kFlushes) return;
    State next = state;
    if (CopyOf(next, name).frozen != 0) return;
    Copy& copy = Write(next, name);
    for (const int one : state.acknowledged) {
      if (!Has(copy, one)) {
        violation_ = "the " + name + " copy takes flush " + std::to_string(flush) +
                     " and lacks flush " + std::to_string(one);
      }
    }
    copy.flushes.push_back(flush);
    next.acknowledged.insert(flush);
    CheckLoads(next);
    emit(std::move(next));
  }

  const LeftOut left_out_;
  std::optional<std::string> violation_;
  std::size_t states_ = 0;
};

TEST(SwitchOverTest, NoCopyThatLacksAFlushTakesTheNext) {
  Explorer explorer(LeftOut::kNothing);

  EXPECT_EQ(explorer.Explore(), std::nullopt);
  EXPECT_GT(explorer.states(), 1000U);
  RecordProperty("states", std::to_string(explorer.states()));
}

TEST(SwitchOverTest, EveryRuleThatIsLeftOutIsFound) {
  for (const LeftOut left_out : {LeftOut::kFreeze, LeftOut::kEndSessions, LeftOut::kIdentity,
                                 LeftOut::kMarker, LeftOut::kEither}) {
    Explorer explorer(left_out);
    const std::optional<std::string> found = explorer.Explore();
    EXPECT_TRUE(found.has_value()) << "left out: " << static_cast<int>(left_out);
    if (found) {
      std::cout << "left out " << static_cast<int>(left_out) << ": after " << explorer.states()
                << " states " << *found << '\n';
    }
  }
}

}  // namespace
}  // namespace zeze
