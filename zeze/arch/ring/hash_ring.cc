#include "zeze/arch/ring/hash_ring.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "zeze/base/name_hash.h"

namespace zeze {

namespace {

constexpr std::size_t kPointsPerServer = 160;

std::array<std::int32_t, kPointsPerServer> PositionsOf(std::string_view identity) {
  std::array<std::int32_t, kPointsPerServer> positions{};
  auto seed = static_cast<std::uint64_t>(HashName64(identity));
  for (std::int32_t& position : positions) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    position = static_cast<std::int32_t>(seed >> 32);
  }
  std::ranges::sort(positions);
  return positions;
}

std::uint64_t HashOnward(std::uint64_t hash, std::string_view text) {
  internal::ForEachUtf16Unit(
      text, [&hash](char16_t unit) { hash = (hash + unit) * internal::kNameHashFactor; });
  return hash;
}

}  // namespace

HashRing::HashRing(std::string_view service_name, std::vector<std::string> identities)
    : identities_(std::move(identities)) {
  points_.reserve(identities_.size() * kPointsPerServer);
  for (std::uint32_t server = 0; server < identities_.size(); ++server) {
    std::uint32_t index = 0;
    for (const std::int32_t position : PositionsOf(identities_[server])) {
      points_.push_back({.position = position, .index = index++, .server = server});
    }
  }
  // Who wins a position that several servers have.
  const auto rank = [&](const Point& point) {
    const std::uint64_t start =
        (static_cast<std::uint64_t>(static_cast<std::int64_t>(point.position)) << 32) + point.index;
    const std::string& identity = identities_[point.server];
    return static_cast<std::int64_t>(HashOnward(HashOnward(start, service_name), identity));
  };
  std::ranges::sort(points_, [&](const Point& left, const Point& right) {
    if (left.position != right.position) return left.position < right.position;
    return std::tuple(rank(left), identities_[left.server]) <
           std::tuple(rank(right), identities_[right.server]);
  });
  const auto repeated = std::ranges::unique(points_, {}, &Point::position);
  points_.erase(repeated.begin(), repeated.end());
}

const std::string* HashRing::Lookup(std::int64_t hash) const {
  if (points_.empty()) return nullptr;
  const auto position = static_cast<std::int32_t>(RoutingHash(hash));
  auto point = std::ranges::lower_bound(points_, position, {}, &Point::position);
  if (point == points_.end()) point = points_.begin();
  return &identities_[point->server];
}

const std::string* HashRing::LookupText(std::string_view text) const {
  return Lookup(HashName32(text));
}

const std::string* HashRing::LookupGroup(std::uint32_t group) const {
  return Lookup(static_cast<std::int32_t>(RoutingHash(group)));
}

}  // namespace zeze
