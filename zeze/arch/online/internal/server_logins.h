// WalkLoginsOf: who is logged in on one server, from a table whose key begins with the server id.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/transaction/table.h"

namespace zeze::arch::internal {

// Keys of one server are next to each other: equal first variables are equal first bytes. The one
// without any other variable comes first, and a walk begins behind the key it is given.
template <typename K, typename V, typename Visit>
Result<void> WalkLoginsOf(Table<K, V>& table, std::int32_t server_id, Visit&& visit) {
  constexpr std::size_t kPage = 256;
  K first{};
  first.ServerId = server_id;
  Result<std::optional<V>> found = table.ReadCopy(first);
  if (!found.ok()) return found.error();
  if (found.value()) visit(first, *found.value());

  std::optional<K> after = first;
  bool inside = true;
  while (inside && after) {
    Result<std::optional<K>> next = table.WalkPage(after, kPage, [&](const K& key, const V& value) {
      inside = key.ServerId == server_id;
      if (inside) visit(key, value);
      return inside;
    });
    if (!next.ok()) return next.error();
    after = std::move(next).value();
  }
  return {};
}

}  // namespace zeze::arch::internal
