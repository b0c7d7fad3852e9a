#include "tests/simulation/world.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace zeze::simulation {

namespace {

// Within what a lease allows for (LeaseOptions::clock_rate_error).
constexpr double kClockRateError = 0.009;

}  // namespace

bool World::Chance(double probability) {
  return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

std::size_t World::Below(std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
}

Time World::Between(Time least, Time most) {
  return Time(std::uniform_int_distribution<std::int64_t>(least.count(), most.count())(random_));
}

Time World::NetworkDelay() {
  if (Chance(0.02)) return Between(milliseconds(20), milliseconds(800));
  return Between(microseconds(50), milliseconds(3));
}

// --- processes -----------------------------------------------------------------------------------

ProcessId World::StartProcess(std::string name) {
  const ProcessId id = ++last_process_;
  Process& process = processes_[id];
  process.name = fmt::format("{}#{}", name, id);
  process.clock_rate =
      std::uniform_real_distribution<>(1 - kClockRateError, 1 + kClockRateError)(random_);
  process.clock_offset = Between(seconds(1), seconds(100'000));
  return id;
}

void World::Kill(ProcessId process) {
  Say(fmt::format("{} is gone", name(process)));
  processes_.erase(process);
  for (auto& [id, link] : links_) {
    if (link.a == process || link.b == process) Close(id, process);
  }
}

void World::Pause(ProcessId process, Time duration) {
  Process& paused = processes_.at(process);
  paused.paused_until = std::max(paused.paused_until, now_ + duration);
  Say(fmt::format("{} is paused for {} ms", name(process), duration / milliseconds(1)));
  After(kNobody, paused.paused_until - now_, [this, process] { Resume(process); });
}

void World::Resume(ProcessId process) {
  const auto at = processes_.find(process);
  if (at == processes_.end() || now_ < at->second.paused_until) return;
  Say(fmt::format("{} goes on", at->second.name));
  for (auto& what : std::exchange(at->second.deferred, {})) {
    After(process, Time{0}, std::move(what));
  }
}

bool World::Paused(ProcessId process) const {
  const auto at = processes_.find(process);
  return at != processes_.end() && now_ < at->second.paused_until;
}

const std::string& World::name(ProcessId process) const {
  static const std::string nobody = "nobody";
  const auto at = processes_.find(process);
  return at == processes_.end() ? nobody : at->second.name;
}

Time World::LocalTime(ProcessId process) const {
  const Process& own = processes_.at(process);
  return own.clock_offset +
         Time(static_cast<std::int64_t>(static_cast<double>(now_.count()) * own.clock_rate));
}

void World::After(ProcessId process, Time delay, std::function<void()> what) {
  events_.push({now_ + delay, ++last_order_, process,
                std::make_shared<std::function<void()>>(std::move(what))});
}

void World::Run(Time duration) {
  const Time end = now_ + duration;
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.at);
    if (event.process != kNobody) {
      const auto at = processes_.find(event.process);
      if (at == processes_.end()) continue;
      if (now_ < at->second.paused_until) {
        at->second.deferred.push_back(*event.what);
        continue;
      }
    }
    ++event_count_;
    (*event.what)();
  }
  now_ = end;
}

// --- the network ---------------------------------------------------------------------------------

void World::Partition(ProcessId a, ProcessId b, bool cut) {
  const auto pair = std::minmax(a, b);
  if (!cut) {
    if (!lasting_cuts_.contains(pair)) cuts_.erase(pair);
    return;
  }
  cuts_.insert(pair);
  Say(fmt::format("{} and {} cannot reach each other", name(a), name(b)));
  for (auto& [id, link] : links_) {
    if (std::minmax(link.a, link.b) == pair) Close(id, kNobody);
  }
}

void World::PartitionForGood(ProcessId a, ProcessId b) {
  lasting_cuts_.insert(std::minmax(a, b));
  Partition(a, b, true);
}

bool World::Reachable(ProcessId a, ProcessId b) const {
  return !cuts_.contains(std::minmax(a, b));
}

LinkId World::Connect(ProcessId a, ProcessId b, Ends ends) {
  const LinkId id = ++last_link_;
  links_[id] = {.a = a, .b = b, .ends = std::move(ends)};
  return id;
}

void World::Send(LinkId id, ProcessId from, std::function<void()> deliver) {
  const auto at = links_.find(id);
  if (at == links_.end() || at->second.broken) return;
  Link& link = at->second;
  const bool to_b = from == link.a;
  Time& last = to_b ? link.last_to_b : link.last_to_a;
  last = std::max(last, now_ + NetworkDelay());
  After(to_b ? link.b : link.a, last - now_, [this, id, to_b, deliver = std::move(deliver)] {
    const auto found = links_.find(id);
    if (found == links_.end()) return;
    if (to_b ? found->second.closed_b : found->second.closed_a) return;
    deliver();
  });
}

void World::CloseEnd(LinkId id, bool a) {
  const auto at = links_.find(id);
  if (at == links_.end()) return;
  Link& link = at->second;
  if (std::exchange(a ? link.closed_a : link.closed_b, true)) return;
  const auto told = a ? link.ends.on_closed_a : link.ends.on_closed_b;
  if (link.closed_a && link.closed_b) links_.erase(at);
  told(id);
}

// What is on its way may still arrive, until the other end has noticed.
void World::Close(LinkId id, ProcessId by) {
  const auto at = links_.find(id);
  if (at == links_.end()) return;
  Link& link = at->second;
  if (by == link.a) link.closed_a = true;
  if (by == link.b) link.closed_b = true;
  if (std::exchange(link.broken, true)) return;
  // An end that closes says so after everything else; a break is noticed by each end for itself.
  const auto notice = [&](Time last) {
    const Time delay = Between(microseconds(10), milliseconds(500));
    return by == kNobody ? delay : std::max(delay, last - now_ + microseconds(10));
  };
  if (by != link.a) After(link.a, notice(link.last_to_a), [this, id] { CloseEnd(id, true); });
  if (by != link.b) After(link.b, notice(link.last_to_b), [this, id] { CloseEnd(id, false); });
}

void World::Stall(LinkId id, bool to_a, bool to_b, Time delay) {
  const auto at = links_.find(id);
  if (at == links_.end() || at->second.broken) return;
  Say(fmt::format("the connection of {} and {} hangs", name(at->second.a), name(at->second.b)));
  if (to_a) at->second.last_to_a = now_ + delay;
  if (to_b) at->second.last_to_b = now_ + delay;
}

std::vector<LinkId> World::OpenLinks() const {
  std::vector<LinkId> open;
  for (const auto& [id, link] : links_) {
    if (!link.broken) open.push_back(id);
  }
  return open;
}

void World::Say(std::string text) {
  if (!keep_story_) return;
  story_.push_back(fmt::format("{:10.3f} ms  {}", static_cast<double>(now_.count()) / 1e6, text));
}

}  // namespace zeze::simulation
