// Containers for gdb to show, see CMakeLists.txt.

#include <cstdint>
#include <string>

#include "zeze/bean/dynamic.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/set.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/serialize/binary.h"

namespace {

struct Sword {
  int edge = 0;
};
struct Shield {
  int weight = 0;
};
struct Choices {
  using List = zeze::TypeList<zeze::Choice<Sword, 1>, zeze::Choice<Shield, 2>>;
};
struct Large {  // In a box of its own.
  std::int64_t first = 0;
  std::int64_t others[9] = {};
};

struct Role {
  zeze::List<std::int32_t> many;
  zeze::List<std::string> names;
  zeze::List<Large> large;
  zeze::Map<std::int32_t, std::int64_t> bag;
  zeze::SortedMap<std::int64_t, std::string> ranking;
  zeze::Set<std::int64_t> friends;
  zeze::Dynamic<Choices> weapon;
  zeze::Dynamic<Choices> nothing;
  zeze::Map<std::int32_t, std::int64_t> empty;
  zeze::Binary token;
};

void Stop(const Role& role) {
  static_cast<void>(role);
}

}  // namespace

int main() {
  Role role;
  for (std::int32_t i = 0; i < 3000; ++i) role.many.PushBack(i);
  role.names = {"ann", "bob"};
  role.large.PushBack(Large{.first = 77});
  for (std::int32_t i = 0; i < 100; ++i) role.bag.Put(i, std::int64_t{i} * 10);
  role.ranking.Put(1200, "ann");
  role.ranking.Put(900, "bob");
  role.friends.Add(12);
  role.weapon.Set(Shield{.weight = 5});
  role.token.bytes = "secret";
  Stop(role);
}
