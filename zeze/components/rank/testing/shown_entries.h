// The roles and scores that a view of a board shows, for tests.

#pragma once

#include <cstdint>
#include <vector>

#include "zeze/components/rank/rank.h"

namespace zeze::testing {

template <typename View>
std::vector<std::int64_t> RolesOf(const View& view) {
  std::vector<std::int64_t> roles;
  for (const auto& entry : view->Shown()) roles.push_back(entry.role);
  return roles;
}

// For boards whose values are numbers.
template <typename View>
std::vector<std::int64_t> ScoresOf(const View& view) {
  std::vector<std::int64_t> scores;
  for (const auto& entry : view->Shown()) {
    scores.push_back(entry.value.template As<BValueLong>()->Value);
  }
  return scores;
}

}  // namespace zeze::testing
