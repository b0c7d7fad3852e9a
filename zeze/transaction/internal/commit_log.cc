#include "zeze/transaction/internal/commit_log.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zeze::internal {

void DropTickets(DurabilityTicket* list) {
  while (list != nullptr) {
    DurabilityTicket* ticket = std::exchange(list, list->next);
    if (ticket->owned) delete ticket;
  }
}

void CommitLog::Compact() {
  // A forest over the positions in `records`; each tree is what some transactions tied together.
  std::vector<Record*> records;
  std::vector<std::size_t> parents;
  std::unordered_map<Record*, std::size_t> places;
  const auto find = [&parents](std::size_t at) {
    while (parents[at] != at) at = parents[at] = parents[parents[at]];
    return at;
  };
  CommitLog compact;
  ForEach([&](const Entry& entry) {
    std::size_t root = 0;
    for (std::size_t n = 0; n < entry.size(); ++n) {
      const auto [at, added] = places.try_emplace(entry.record(n), records.size());
      if (added) {
        records.push_back(entry.record(n));
        parents.push_back(at->second);
      }
      const std::size_t tree = find(at->second);
      if (n == 0) root = tree;
      parents[tree] = root;
    }
    if (entry.ticket() == nullptr) return;
    const bool tied = entry.size() != 0;  // To one of its records.
    compact.Begin(tied ? 1 : 0, entry.ticket());
    if (tied) compact.Add(entry.record(0));
  });
  std::vector<std::vector<Record*>> trees(records.size());
  for (std::size_t at = 0; at < records.size(); ++at) trees[find(at)].push_back(records[at]);
  for (const auto& tree : trees) {
    if (tree.empty()) continue;
    compact.Begin(tree.size(), nullptr);
    for (Record* record : tree) compact.Add(record);
  }
  words_ = std::move(compact.words_);
  compact_at_ = std::max(kCompactMin, words_.size() * 2);
}

}  // namespace zeze::internal
