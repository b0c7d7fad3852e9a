#include "zeze/registry/id_allocator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

namespace {

// How many blocks of the size that was asked for are covered by one write.
constexpr std::uint64_t kBlocksPerSave = 10;

}  // namespace

void IdAllocator::Restore(const std::string& name, const Id128& limit) {
  Name& state = names_[name];
  // Whether the limit itself was handed out depends on who wrote it: skip it.
  state.next = limit < options_.first ? options_.first : limit + 1;
  state.limit = limit;
}

void IdAllocator::Allocate(std::uint64_t request, const std::string& name, std::int64_t count) {
  if (name.size() > options_.name_bytes_max) {
    return output_.RefuseIds(request, "the name of the ids is too long");
  }
  auto at = names_.find(name);
  if (at == names_.end()) {
    if (names_.size() >= options_.names_max) {
      return output_.RefuseIds(request, "there are too many names of ids");
    }
    at = names_.emplace(name, Name{.next = options_.first, .limit = {}, .waiting = {}}).first;
  }
  Name& state = at->second;
  if (state.waiting.size() >= options_.waiting_max) {
    return output_.RefuseIds(request, "too many requests wait for ids of this name");
  }
  const std::int64_t wanted = count < 0 ? 1 : std::min<std::int64_t>(count, options_.count_max);
  state.waiting.push_back({.request = request, .count = static_cast<std::uint32_t>(wanted)});
  Serve(name, state);
}

void IdAllocator::Serve(const std::string& name, Name& state) {
  while (!state.saving && !state.waiting.empty()) {
    const Waiting first = state.waiting.front();
    const Id128 end = state.next + first.count;
    if (first.count == 0 || end <= state.limit) {
      state.waiting.pop_front();
      output_.GrantIds(first.request, {.start = state.next, .count = first.count});
      state.next = end;
      continue;
    }
    const Id128 limit = state.next + first.count * kBlocksPerSave;
    // The second part: it went round.
    if (options_.last < limit || limit < state.next) {
      state.waiting.pop_front();
      output_.RefuseIds(first.request, "there are no more ids of this name");
      continue;
    }
    state.saving = true;
    output_.SaveIdLimit(options_.kind, name, limit);
  }
}

void IdAllocator::OnSaved(const std::string& name, const Id128& limit, bool saved) {
  const auto at = names_.find(name);
  if (at == names_.end()) return;
  Name& state = at->second;
  state.saving = false;
  if (saved) {
    state.limit = limit;
    return Serve(name, state);
  }
  for (const Waiting& one : std::exchange(state.waiting, {})) {
    output_.RefuseIds(one.request, "the ids could not be saved");
  }
}

}  // namespace zeze::registry
