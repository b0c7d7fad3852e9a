// LinkedMap: a map of any size over many small records that keeps an order and can be walked while
// it changes.
//
//   zeze::LinkedMaps maps(delay_remove);                // A module, as DelayRemove is.
//   auto friends = maps.Open<BFriend>("friends").value();
//   friends.Put(tx, "ann", {.level = 3});               // In a procedure; the newest comes first.
//   friends.MoveToTail(tx, "ann");
//   friends.Walk([](const std::string& id, const BFriend& friend_) { return true; });   // Outside.
//
// docs/collections.md has a whole example.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "Zeze/Builtin/Collections/LinkedMap.module.h"
#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/bean/any_bean.h"
#include "zeze/components/collections/linked_map/any_linked_map.h"
#include "zeze/components/collections/queue/held_bean.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// Of beans of one type; LinkedMap<AnyBean> takes all. What AnyLinkedMap says holds here too. A
// value of another type that is met throws WrongBeanError.
template <typename Bean>
class LinkedMap {
 public:
  explicit LinkedMap(AnyLinkedMap any) : any_(std::move(any)) {}

  const std::string& name() const { return any_.name(); }
  AnyLinkedMap& any() { return any_; }

  // --- inside a transaction ---

  std::optional<Bean> Get(Transaction& tx, const std::string& id) const {
    const std::optional<AnyBean> value = any_.Get(tx, id);
    if (!value) return std::nullopt;
    return HeldBean<Bean>(*value, name());
  }
  bool Contains(Transaction& tx, const std::string& id) const {
    return any_.Get(tx, id).has_value();
  }

  // True: it is new, and at that end. Else it replaces the value, which stays where it is.
  bool Put(Transaction& tx, const std::string& id, const Bean& value, MapEnd end = MapEnd::kHead) {
    return any_.Put(tx, id, HoldBean(value), end);
  }
  // What is there, or `initial`, which is put then.
  Bean GetOrAdd(Transaction& tx, const std::string& id, const Bean& initial = {},
                MapEnd end = MapEnd::kHead) {
    if (std::optional<Bean> value = Get(tx, id)) return std::move(*value);
    Put(tx, id, initial, end);
    return initial;
  }
  // Edits a value; false if there is none.
  bool Update(Transaction& tx, const std::string& id, FunctionRef<void(Bean&)> edit) {
    std::optional<Bean> value = Get(tx, id);
    if (!value) return false;
    edit(*value);
    Put(tx, id, *value);
    return true;
  }

  // False: there is no such id.
  bool Remove(Transaction& tx, const std::string& id) { return any_.Remove(tx, id); }
  bool MoveToHead(Transaction& tx, const std::string& id) {
    return any_.Move(tx, id, MapEnd::kHead);
  }
  bool MoveToTail(Transaction& tx, const std::string& id) {
    return any_.Move(tx, id, MapEnd::kTail);
  }

  std::int64_t Count(Transaction& tx) const { return any_.Count(tx); }
  bool IsEmpty(Transaction& tx) const { return Count(tx) == 0; }
  void Clear(Transaction& tx) { any_.Clear(tx); }

  // --- outside transactions ---

  Result<std::size_t> Walk(FunctionRef<bool(const std::string& id, const Bean& value)> visit,
                           MapEnd from = MapEnd::kHead) const {
    return any_.Walk([&](const std::string& id,
                         const AnyBean& value) { return visit(id, HeldBean<Bean>(value, name())); },
                     from);
  }

 private:
  AnyLinkedMap any_;
};

// Has the tables of all linked maps. Outlives the application, or the engine that its tables were
// added to. Thread-safe after Start.
class LinkedMaps final : public Zeze::Builtin::Collections::LinkedMap::ModuleLinkedMapBase {
 public:
  // As Zeze 1.6 has it in its stored jobs.
  static constexpr const char* kClearJob = "Zeze.Collections.LinkedMap.Clear";

  explicit LinkedMaps(DelayRemove& delay_remove);
  ~LinkedMaps() override;

  // Errors: the name is empty or has the reserved '@'.
  template <typename Bean>
  Result<LinkedMap<Bean>> Open(std::string name, LinkedMapOptions options = {}) {
    if (Result<void> good = CheckName(name); !good.ok()) return good.error();
    return LinkedMap<Bean>(AnyLinkedMap(*this, std::move(name), options));
  }

  static Result<void> CheckName(std::string_view name);
  DelayRemove& delay_remove() { return delay_remove_; }

 private:
  DelayRemove& delay_remove_;
};

}  // namespace zeze
