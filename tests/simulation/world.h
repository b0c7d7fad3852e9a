// World: virtual time, processes that may be paused or killed, and connections between them. One
// seed gives one run: there is no other source of chance, and nothing runs at the same time.
//
//   World world(seed);
//   world.After(process, Milliseconds(5), [] { ... });    // Not before a paused process goes on,
//   world.Run(Seconds(10));                               // never in a dead one.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zeze::simulation {

using Time = std::chrono::nanoseconds;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A life of a process: a restarted one gets a new number.
using ProcessId = std::uint32_t;
inline constexpr ProcessId kNobody = 0;

// A connection seen from one of its ends.
using LinkId = std::uint64_t;

// Thrown when a run has shown something that must not be.
struct Violation {
  std::string text;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  Time now() const { return now_; }
  // Unique and ascending: orders everything that happens.
  std::uint64_t NextStamp() { return ++last_stamp_; }

  // --- chance ---
  bool Chance(double probability);
  std::size_t Below(std::size_t count);
  Time Between(Time least, Time most);
  // Mostly short, sometimes long.
  Time NetworkDelay();

  // --- processes ---
  ProcessId StartProcess(std::string name);
  void Kill(ProcessId process);
  // It does nothing until then; what happens to it meanwhile waits.
  void Pause(ProcessId process, Time duration);
  bool Alive(ProcessId process) const { return processes_.contains(process); }
  bool Paused(ProcessId process) const;
  const std::string& name(ProcessId process) const;
  // Its own clock: runs a little faster or slower than the true time, from another beginning.
  Time LocalTime(ProcessId process) const;

  // kNobody: the world itself.
  void After(ProcessId process, Time delay, std::function<void()> what);
  void Run(Time duration);

  // --- the network ---
  // Cuts or mends all traffic between two processes, or one and the database (kNobody).
  void Partition(ProcessId a, ProcessId b, bool cut);
  // Nothing heals this one.
  void PartitionForGood(ProcessId a, ProcessId b);
  bool Reachable(ProcessId a, ProcessId b) const;
  void HealNetwork() { cuts_ = lasting_cuts_; }

  struct Ends {
    std::function<void(LinkId)> on_closed_a;
    std::function<void(LinkId)> on_closed_b;
  };
  // Messages of one direction arrive in order; a break loses those on the way.
  LinkId Connect(ProcessId a, ProcessId b, Ends ends);
  void Send(LinkId link, ProcessId from, std::function<void()> deliver);
  // Closed by one end (it is told nothing more), or broken by the network (kNobody).
  void Close(LinkId link, ProcessId by);
  // What is said on it from now on arrives so much later, in one direction or in both; neither end
  // notices.
  void Stall(LinkId link, bool to_a, bool to_b, Time delay);
  std::vector<LinkId> OpenLinks() const;

  // --- the story ---
  void Say(std::string text);
  void KeepStory(bool keep) { keep_story_ = keep; }
  const std::vector<std::string>& story() const { return story_; }
  std::uint64_t event_count() const { return event_count_; }

 private:
  struct Process {
    std::string name;
    double clock_rate = 1;
    Time clock_offset{0};
    Time paused_until{0};
    std::vector<std::function<void()>> deferred;
  };
  struct Event {
    Time at;
    std::uint64_t order;
    ProcessId process;
    std::shared_ptr<std::function<void()>> what;
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  struct Link {
    ProcessId a;
    ProcessId b;
    Ends ends;
    bool closed_a = false;
    bool closed_b = false;
    bool broken = false;
    Time last_to_a{0};
    Time last_to_b{0};
  };

  void Resume(ProcessId process);
  void CloseEnd(LinkId link, bool a);

  Time now_{0};
  std::mt19937_64 random_;
  std::priority_queue<Event> events_;
  std::map<ProcessId, Process> processes_;
  std::map<LinkId, Link> links_;
  std::set<std::pair<ProcessId, ProcessId>> cuts_;
  std::set<std::pair<ProcessId, ProcessId>> lasting_cuts_;
  ProcessId last_process_ = kNobody;
  LinkId last_link_ = 0;
  std::uint64_t last_order_ = 0;
  std::uint64_t last_stamp_ = 0;
  std::uint64_t event_count_ = 0;
  bool keep_story_ = false;
  std::vector<std::string> story_;
};

}  // namespace zeze::simulation
