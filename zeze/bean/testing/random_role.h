// RandomRole: random beans and random edits of them, for property tests.

#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "zeze/bean/testing/test_beans.h"

namespace zeze::testing {

class RandomRole {
 public:
  explicit RandomRole(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }

  // A role after `edits` random edits of an empty one.
  BRole Make(int edits, int depth = 1) {
    BRole role;
    for (int i = 0; i < edits; ++i) Edit(role, depth);
    return role;
  }

  // Changes one thing somewhere in the role. `depth`: how deep roles inside it are made and edited.
  void Edit(BRole& role, int depth = 1) {
    switch (Below(26)) {
      case 0:
        return void(role.alive = Below(2) == 0);
      case 1:
        return void(role.rank = static_cast<std::int8_t>(random_()));
      case 2:
        return void(role.world = static_cast<std::int16_t>(random_()));
      case 3:
        return void(role.level = static_cast<std::int32_t>(Number()));
      case 4:
        return void(role.money = static_cast<std::int64_t>(random_()));
      case 5:
        return void(role.speed = static_cast<float>(Number()) / 4);
      case 6:
        return void(role.luck = static_cast<double>(Number()) / 8);
      case 7:
        return void(role.name = Text());
      case 8:
        return void(role.token.bytes = Text());
      case 9:
        return void(role.balance.text = std::to_string(Number()));
      case 10:
        return void(role.at = {static_cast<float>(Number()), 1});
      case 11:
        return void(role.cell.z = static_cast<std::int32_t>(Number()));
      case 12:
        return void(role.hand = Item());
      case 13:
        return void(role.home = Key());
      case 14:
        return EditList(role.scores, [this] { return static_cast<std::int32_t>(Number()); });
      case 15:
        return EditList(role.items, [this] { return Item(); });
      case 16:
        return void(Below(2) == 0 ? role.friends.Add(Number()) : role.friends.Erase(Number()));
      case 17:
        return void(Below(2) == 0 ? role.places.Add(Key()) : role.places.Erase(Key()));
      case 18:
        return EditMap(role.bag, [this] { return Item(); });
      case 19:
        return void(Below(3) > 0 ? role.titles.Put(Key(), Text()) : role.titles.Erase(Key()));
      case 20:
        return void(Below(3) > 0 ? role.ranking.Put(Text(), Number()) : role.ranking.Erase(Text()));
      case 21:
        return EditMap(role.history, [this] { return Item(); });
      case 22:
        return role.grid.UpdateOrAdd(Row(), [this](auto& row) { row.cells.Put(Row(), Text()); });
      case 23:
        return EditExtra(role.extra, depth);
      case 24:
        return EditSlots(role, depth);
      default:
        return EditChildren(role, depth);
    }
  }

  BItem Item() {
    return {static_cast<std::int32_t>(Below(30)), static_cast<std::int64_t>(random_() >> Below(64)),
            Below(2) == 0 ? Text() : ""};
  }

 private:
  // Few different ones, so that keys meet again; both signs.
  std::int64_t Number() { return static_cast<std::int64_t>(Below(200)) - 100; }
  std::int32_t Row() { return static_cast<std::int32_t>(Below(8)); }
  std::string Text() { return std::string(Below(40), 'a') + std::to_string(Below(50)); }
  BKey Key() { return {Row(), Below(2) == 0 ? "" : "key"}; }

  template <typename T, typename MakeValue>
  void EditList(List<T>& list, MakeValue make) {
    const std::size_t at = list.empty() ? 0 : Below(list.size());
    switch (list.empty() ? 0 : Below(6)) {
      case 0:
      case 1:
        return list.PushBack(make());
      case 2:
        return list.Insert(at, make());
      case 3:
        return list.Set(at, make());
      case 4:
        return list.Erase(at);
      default:
        if (Below(20) == 0) list.Clear();
    }
  }

  template <typename M, typename MakeValue>
  void EditMap(M& map, MakeValue make) {
    const auto key = static_cast<std::int32_t>(Below(60));
    switch (Below(3)) {
      case 0:
        return void(map.Put(key, make()));
      case 1:
        return void(map.Erase(key));
      default:
        map.UpdateOrAdd(key, [](BItem& item) { item.count += 1; });
    }
  }

  void EditExtra(Dynamic<BRole_extra_Choices>& extra, int depth) {
    switch (Below(5)) {
      case 0:
        return extra.Clear();
      case 1:
        return extra.Set(BEmpty{});
      case 2:
        return extra.Set(Item());
      case 3:
        if (depth > 0) extra.Set(Make(3, depth - 1));
        return;
      default:
        if (!extra.Update<BItem>([](BItem& item) { item.count += 1; }) && depth > 0) {
          extra.Update<BRole>([&](BRole& role) { Edit(role, depth - 1); });
        }
    }
  }

  void EditSlots(BRole& role, int depth) {
    Dynamic<BRole_extra_Choices> slot;
    EditExtra(slot, depth);
    if (role.slots.size() < 5) return role.slots.PushBack(slot);
    role.slots.Update(Below(5), [&](auto& element) { EditExtra(element, depth); });
  }

  void EditChildren(BRole& role, int depth) {
    const std::int32_t key = Row();
    if (depth == 0 || Below(4) == 0) return void(role.children.Erase(key));
    role.children.UpdateOrAdd(key, [&](BRole& child) { Edit(child, depth - 1); });
  }

  std::mt19937_64 random_;
};

}  // namespace zeze::testing
