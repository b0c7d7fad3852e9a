#include "zeze/bean/internal/list_script.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace zeze::internal {

namespace {

// Elements of the two lists that stay as they are, ascending in both.
using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

// Comparisons that a search may cost; beyond it a longer script is the better bargain.
constexpr std::size_t kSearchCostMax = 200'000;

// Myers' greedy search for the fewest insertions and removals: for each number of them, how far
// each diagonal (old index minus new index) reaches.
class FewestEdits {
 public:
  FewestEdits(std::size_t old_size, std::size_t new_size, const ListScript::Equal& equal)
      : old_size_(static_cast<std::ptrdiff_t>(old_size)),
        new_size_(static_cast<std::ptrdiff_t>(new_size)),
        equal_(equal) {}

  // None when more than `edits_max` edits would be needed.
  std::optional<Matches> Search(std::ptrdiff_t edits_max) {
    const std::ptrdiff_t width = 2 * edits_max + 3;
    std::vector<std::ptrdiff_t> reach(static_cast<std::size_t>(width), 0);
    const auto at = [&](std::ptrdiff_t diagonal) -> std::ptrdiff_t& {
      return reach[static_cast<std::size_t>(diagonal + edits_max + 1)];
    };
    for (std::ptrdiff_t edits = 0; edits <= edits_max; ++edits) {
      trace_.push_back(reach);
      for (std::ptrdiff_t diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const bool inserts = ComesByInsertion(diagonal, edits, at(diagonal - 1), at(diagonal + 1));
        std::ptrdiff_t x = inserts ? at(diagonal + 1) : at(diagonal - 1) + 1;
        if (edits == 0) x = 0;
        x = Follow(x, x - diagonal);
        at(diagonal) = x;
        if (x >= old_size_ && x - diagonal >= new_size_) return Trace(edits, edits_max);
      }
    }
    return std::nullopt;
  }

 private:
  static bool ComesByInsertion(std::ptrdiff_t diagonal, std::ptrdiff_t edits, std::ptrdiff_t below,
                               std::ptrdiff_t above) {
    return diagonal == -edits || (diagonal != edits && below < above);
  }

  std::ptrdiff_t Follow(std::ptrdiff_t x, std::ptrdiff_t y) const {
    while (x < old_size_ && y < new_size_ && y >= 0 &&
           equal_(static_cast<std::size_t>(x), static_cast<std::size_t>(y))) {
      ++x;
      ++y;
    }
    return x;
  }

  Matches Trace(std::ptrdiff_t edits, std::ptrdiff_t edits_max) const {
    Matches matches;
    std::ptrdiff_t x = old_size_;
    std::ptrdiff_t y = new_size_;
    for (; edits >= 0; --edits) {
      const std::vector<std::ptrdiff_t>& reach = trace_[static_cast<std::size_t>(edits)];
      const auto at = [&](std::ptrdiff_t diagonal) {
        return reach[static_cast<std::size_t>(diagonal + edits_max + 1)];
      };
      const std::ptrdiff_t diagonal = x - y;
      const bool inserts = ComesByInsertion(diagonal, edits, at(diagonal - 1), at(diagonal + 1));
      const std::ptrdiff_t previous = inserts ? diagonal + 1 : diagonal - 1;
      const std::ptrdiff_t from = edits == 0 ? 0 : (inserts ? at(previous) : at(previous) + 1);
      while (x > from) {
        --x;
        --y;
        matches.emplace_back(static_cast<std::size_t>(x), static_cast<std::size_t>(y));
      }
      if (edits > 0) {
        x = at(previous);
        y = x - previous;
      }
    }
    std::reverse(matches.begin(), matches.end());
    return matches;
  }

  std::ptrdiff_t old_size_;
  std::ptrdiff_t new_size_;
  const ListScript::Equal& equal_;
  std::vector<std::vector<std::ptrdiff_t>> trace_;  // Reaches before each number of edits.
};

// Between two matches: modify while both lists have elements, then insert or remove the rest.
std::vector<ListStep> StepsAround(Matches matches, std::size_t old_size, std::size_t new_size) {
  matches.emplace_back(old_size, new_size);
  std::vector<ListStep> steps;
  std::size_t i = 0;
  std::size_t j = 0;
  for (const auto& [old_match, new_match] : matches) {
    for (; i < old_match && j < new_match; ++i, ++j) {
      steps.push_back({ListStep::Kind::kModify, j, i, j});
    }
    for (; i < old_match; ++i) steps.push_back({ListStep::Kind::kRemove, j, i, j});
    for (; j < new_match; ++j) steps.push_back({ListStep::Kind::kInsert, j, i, j});
    i = old_match + 1;
    j = new_match + 1;
  }
  return steps;
}

Matches MatchesPlaceByPlace(std::size_t old_size, std::size_t new_size,
                            const ListScript::Equal& equal) {
  Matches matches;
  for (std::size_t i = 0; i < std::min(old_size, new_size); ++i) {
    if (equal(i, i)) matches.emplace_back(i, i);
  }
  return matches;
}

}  // namespace

ListScript::ListScript(std::size_t old_size, std::size_t new_size, const Equal& equal)
    : steps_(StepsAround(MatchesPlaceByPlace(old_size, new_size, equal), old_size, new_size)) {
  if (steps_.size() <= 1 || old_size == 0 || new_size == 0) return;
  // Fewer steps need at most twice as many edits: a modification is a removal and an insertion.
  const std::size_t affordable = kSearchCostMax / (old_size + new_size);
  const std::size_t useful = 2 * (steps_.size() - 1);
  const std::size_t edits_max = std::min({affordable, useful, std::size_t{200}});
  std::optional<Matches> matches =
      FewestEdits(old_size, new_size, equal).Search(static_cast<std::ptrdiff_t>(edits_max));
  if (!matches.has_value()) return;
  std::vector<ListStep> steps = StepsAround(std::move(*matches), old_size, new_size);
  if (steps.size() < steps_.size()) steps_ = std::move(steps);
}

}  // namespace zeze::internal
