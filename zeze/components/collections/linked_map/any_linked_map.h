// AnyLinkedMap: a map of any size over many small records that keeps an order, of beans of any
// type. Applications use LinkedMap (linked_map.h), which knows the type.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "Zeze/Builtin/Collections/LinkedMap.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

class LinkedMaps;

struct LinkedMapOptions {
  // Values in one record.
  std::size_t node_size = 30;
  // A record that is longer takes no more values (one value is always taken, however long). A value
  // that is replaced by a longer one stays in its record all the same.
  std::size_t node_bytes_max = 64 * 1024;
};

enum class MapEnd : std::uint8_t { kHead, kTail };

// A name and how to reach its records: cheap to copy, without state of its own. All maps of one
// name are the same map, on all servers.
//
// Stored as Zeze 1.6 stores it: a root, nodes that know their neighbours, and an index from ids to
// nodes. Node ids are counted up and never come back. A value stays in its node until it is removed
// or moved; new nodes come only at the ends. So whoever follows the nodes meets every value that
// stays where it is.
//
// Errors inside transactions are thrown: std::runtime_error if the stored map is damaged.
class AnyLinkedMap {
 public:
  // The name is not checked; LinkedMaps::Open does.
  AnyLinkedMap(LinkedMaps& maps, std::string name, LinkedMapOptions options = {});

  const std::string& name() const { return name_; }

  // --- inside a transaction ---

  std::optional<AnyBean> Get(Transaction& tx, const std::string& id) const;
  // True: it is new, and at that end. Else it replaces the value, which stays where it is.
  bool Put(Transaction& tx, const std::string& id, AnyBean value, MapEnd end = MapEnd::kHead);
  bool Remove(Transaction& tx, const std::string& id);
  // False: there is no such id.
  bool Move(Transaction& tx, const std::string& id, MapEnd end);
  std::int64_t Count(Transaction& tx) const;

  // Takes everything away, in no time, whatever the size. A job removes the records afterwards, and
  // never what is put in meanwhile.
  void Clear(Transaction& tx);

  // --- outside transactions ---

  // Record by record from that end on, while others change the map: gives every value exactly once
  // that stays where it is from the beginning of the walk to its end. One that is moved, or removed
  // and put again, may be given again or not at all: a visitor that moves all that it is given to
  // where the walk goes never comes to an end. It returns false to stop; it may run procedures.
  // Returns how many values were given. Errors: the visitor stood still at a removed node until
  // that was collected (DelayRemove); the storage.
  Result<std::size_t> Walk(FunctionRef<bool(const std::string& id, const AnyBean& value)> visit,
                           MapEnd from = MapEnd::kHead) const;

  // A step of the job that Clear starts: true if there is more to do.
  static bool RemoveCleared(LinkedMaps& maps, Transaction& tx, std::string& state);

 private:
  using Root = Zeze::Builtin::Collections::LinkedMap::BLinkedMap;
  using Node = Zeze::Builtin::Collections::LinkedMap::BLinkedMapNode;
  using NodeKey = Zeze::Builtin::Collections::LinkedMap::BLinkedMapNodeKey;
  using NodeValue = Zeze::Builtin::Collections::LinkedMap::BLinkedMapNodeValue;
  using ValueKey = Zeze::Builtin::Collections::LinkedMap::BLinkedMapKey;

  struct Place {
    std::int64_t node_id = 0;  // 0: nowhere.
    std::size_t position = 0;
    const AnyBean* value = nullptr;
  };
  struct Start {
    std::int64_t cleared = 0;
    std::int64_t node_id = 0;
  };

  NodeKey KeyOf(std::int64_t node_id) const { return {.Name = name_, .NodeId = node_id}; }
  Place Find(Transaction& tx, const std::string& id) const;
  Edited<Node> EditNode(Transaction& tx, std::int64_t node_id) const;
  bool HasRoom(const Node& node, const NodeValue& entry) const;
  std::int64_t AddValue(Transaction& tx, Root& root, const std::string& id, AnyBean value,
                        MapEnd end) const;
  void TakeValue(Transaction& tx, Root& root, const Place& place) const;
  Result<Start> StartOf(MapEnd from) const;
  Result<std::int64_t> Cleared() const;
  Result<std::int64_t> Detour(std::int64_t before, std::int64_t missing, MapEnd from) const;
  [[noreturn]] void ThrowDamaged(std::int64_t node_id, const char* what) const;

  LinkedMaps* maps_;
  std::string name_;
  LinkedMapOptions options_;
};

}  // namespace zeze
