// HashedMap: a map of any size that many transactions can change at a time: linked maps, one for
// each part of the ids. It keeps no order.
//
//   auto guilds = zeze::HashedMap<BGuild>::Open(maps, "guilds").value();
//   guilds.Put(tx, "lions", {.level = 3});

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/function_ref.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

struct HashedMapOptions {
  // Fixed for the life of the data. Zeze 1.6 has 128, and 256 where a node size is given.
  std::uint32_t parts = 128;
  LinkedMapOptions nodes = {};
};

// Part i is the linked map "name@i", as Zeze 1.6 has it. What LinkedMap guarantees holds for each
// part.
template <typename Bean>
class HashedMap {
 public:
  // Errors: the name is empty or has the reserved '@'; no parts.
  static Result<HashedMap> Open(LinkedMaps& maps, const std::string& name,
                                HashedMapOptions options = {}) {
    if (Result<void> good = LinkedMaps::CheckName(name); !good.ok()) return good.error();
    if (options.parts == 0) {
      return Error(ErrorCode::kInvalidArgument, "hash map '" + name + "' has no parts");
    }
    HashedMap map;
    for (std::uint32_t i = 0; i < options.parts; ++i) {
      map.parts_.emplace_back(AnyLinkedMap(maps, name + "@" + std::to_string(i), options.nodes));
    }
    return map;
  }

  // --- inside a transaction ---

  std::optional<Bean> Get(Transaction& tx, const std::string& id) const {
    return PartOf(id).Get(tx, id);
  }
  bool Contains(Transaction& tx, const std::string& id) const {
    return PartOf(id).Contains(tx, id);
  }
  bool Put(Transaction& tx, const std::string& id, const Bean& value) {
    return PartOf(id).Put(tx, id, value);
  }
  Bean GetOrAdd(Transaction& tx, const std::string& id, const Bean& initial = {}) {
    return PartOf(id).GetOrAdd(tx, id, initial);
  }
  bool Update(Transaction& tx, const std::string& id, FunctionRef<void(Bean&)> edit) {
    return PartOf(id).Update(tx, id, edit);
  }
  bool Remove(Transaction& tx, const std::string& id) { return PartOf(id).Remove(tx, id); }

  // Exact, and so in conflict with every put and remove.
  std::int64_t Count(Transaction& tx) const {
    std::int64_t sum = 0;
    for (const LinkedMap<Bean>& part : parts_) sum += part.Count(tx);
    return sum;
  }
  void Clear(Transaction& tx) {
    for (LinkedMap<Bean>& part : parts_) part.Clear(tx);
  }

  // --- outside transactions ---

  Result<std::size_t> Walk(
      FunctionRef<bool(const std::string& id, const Bean& value)> visit) const {
    std::size_t sum = 0;
    bool more = true;
    for (const LinkedMap<Bean>& part : parts_) {
      const Result<std::size_t> walked = part.Walk([&](const std::string& id, const Bean& value) {
        more = visit(id, value);
        return more;
      });
      if (!walked.ok()) return walked;
      sum += walked.value();
      if (!more) break;
    }
    return sum;
  }

 private:
  HashedMap() = default;

  const LinkedMap<Bean>& PartOf(const std::string& id) const {
    return parts_[RoutingHashOfText(id) % parts_.size()];
  }
  LinkedMap<Bean>& PartOf(const std::string& id) {
    return parts_[RoutingHashOfText(id) % parts_.size()];
  }

  std::vector<LinkedMap<Bean>> parts_;
};

}  // namespace zeze
