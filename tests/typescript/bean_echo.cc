// Beans of tests/gen/wide.xml, as C++ writes them: what the TypeScript client is compared with.
//
//   bean_echo samples    prints "full.Name hex" for beans with something in every variable
//   bean_echo            reads such lines; for each decodes the bean and prints what it encodes to,
//                        or "error"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "wide.h"
#include "wide/Game.h"
#include "wide/Ping.h"
#include "wide/Types.h"
#include "wide/Types/Other.h"
#include "zeze/base/result.h"
#include "zeze/bean/codec.h"

namespace {

using wide::BShared;

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

using Echo = std::function<std::string(const std::string& bytes)>;

template <typename Bean>
void Add(std::map<std::string, Echo, std::less<>>& echoes) {
  echoes[std::string(Bean::kFullName)] = [](const std::string& bytes) -> std::string {
    const zeze::Result<Bean> bean = zeze::DecodeBean<Bean>(bytes);
    return bean.ok() ? ToHex(zeze::EncodeBean(bean.value())) : "error";
  };
}

template <typename... Beans>
std::map<std::string, Echo, std::less<>> EchoesOf() {
  std::map<std::string, Echo, std::less<>> echoes;
  (Add<Beans>(echoes), ...);
  return echoes;
}

template <typename Bean>
void Print(const Bean& bean) {
  std::cout << Bean::kFullName << ' ' << ToHex(zeze::EncodeBean(bean)) << '\n';
}

wide::Types::BScalars Scalars() {
  return {.flag = true,
          .b = -5,
          .s = 300,
          .i = -70000,
          .l = std::int64_t{1} << 40,
          .f = 2.5F,
          .d = -0.1,
          .bytes = {.bytes = std::string("\0\xFF", 2)},
          .text = "h\u00ef \u4e2d\u6587 \U0001F600",
          .amount = {.text = "-12.50"},
          .v2 = {1, -2},
          .v2i = {-1, 1 << 30},
          .v3 = {1, 2, 0.1F},
          .v3i = {1, -2, 3},
          .v4 = {1, 2, 3, 4},
          .q = {0, 0, 0, 1},
          .place = {.map = 3, .zone = "north"},
          .last = 9};
}

wide::Types::BContainers Containers() {
  wide::Types::BContainers containers;
  for (int i = 0; i < 20; ++i) containers.ints.PushBack(i * i * (i % 2 == 0 ? 1 : -1));
  containers.names = {"a", "", "c"};
  containers.array.PushBack(Scalars());
  containers.array.PushBack({});
  containers.ids = {5, -6, std::numeric_limits<std::int64_t>::max(),
                    std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 55};
  containers.places = {{.map = 1, .zone = "x"}, {.map = 1, .zone = "y"}, {}};
  containers.items.Put(7, BShared{.note = "seven"});
  containers.items.Put(-8, BShared{});
  containers.by_place.Put({.map = 2, .zone = "y"}, "two");
  containers.ranks.Put(3, BShared{.note = "third"});
  containers.ranks.Put(-1, BShared{.note = "first"});
  containers.ranks.Put(std::int64_t{1} << 40, BShared{.note = "last"});
  containers.grid.UpdateOrAdd(1, [](auto& row) { row.cells.Put("k", BShared{.note = "c"}); });
  containers.grid.UpdateOrAdd(2, [](auto&) {});
  containers.numbers.UpdateOrAdd(1, [](auto& row) { row.cells.Put(2, 0.5F); });
  containers.vectors = {{1, 2, 3}, {}};
  containers.blobs.Put("b", zeze::Binary{.bytes = "bytes"});
  containers.flags = {true, false};
  return containers;
}

wide::Types::BNode Node() {
  const wide::Types::BNode leaf{.value = 1};
  wide::Types::BNode node{.value = 2};
  node.children.PushBack(leaf);
  node.named.Put("leaf", leaf);
  node.partner.Set(leaf);
  wide::Types::BFirst first;
  wide::Types::BSecond second;
  second.firsts.Put(1, first);
  first.seconds.PushBack(second);
  node.first = first;
  return node;
}

wide::Types::BDynamics Dynamics() {
  wide::Types::BFurther further{.more = 3};
  further.base.own_value = "own";
  further.base.base.base_value = 5;
  wide::Types::BDynamics dynamics;
  dynamics.any.Set(further);
  dynamics.list.PushBack({});
  dynamics.list.PushBack({});
  dynamics.list.Update(0, [](auto& held) { held.Set(wide::Types::BBase{.base_value = 1}); });
  dynamics.map.GetOrAdd(1, [] { return decltype(dynamics.map)::mapped_type(); });
  dynamics.map.Update(1, [](auto& held) { held.Set(BShared{.note = "s"}); });
  return dynamics;
}

wide::Types::BAwkward Awkward() {
  wide::Types::BAwkward awkward;
  awkward.class_ = 1;
  awkward.namespace_ = "n";
  awkward.Encode_ = 2;
  awkward.in = 3;
  awkward.BShared.note = "s";
  awkward.zeze_ = {"z"};
  awkward.base_ = 5;
  awkward.color = 2;
  awkward.cache = 7;  // Transient.
  awkward.debt = -5;
  // A newer schema has variables 20 and 21.
  const std::string known = zeze::EncodeBean(awkward);
  const std::string newer = known.substr(0, known.size() - 1) + FromHex("10011303616263140000");
  return zeze::DecodeBean<wide::Types::BAwkward>(newer).value();
}

void PrintSamples() {
  Print(Scalars());
  Print(wide::Types::BScalars{});
  Print(wide::Types::BDefaults{});
  Print(Containers());
  Print(wide::Types::BContainers{});
  Print(Node());
  wide::Types::BNode holder;
  holder.partner.Set(wide::Types::Other::BSub{.up = {.note = "n"}, .nodes = {Node()}});
  Print(holder);
  Print(Dynamics());
  Print(Awkward());
  Print(wide::Types::BWideKey{
      .flag = true, .l = -1, .amount = {.text = "1.5"}, .place = {.map = 1}, .at = {1, 2, 3}});
  Print(wide::Types::BVersioned{.revision = 1, .value = 2});
  Print(wide::Ping::BA{.b = {.n = 1}});
  Print(wide::Pong::BD{.c = {.n = 2}});
  Print(wide::Game::BLogin{.account = "ann"});
}

int EchoLines() {
  const auto echoes =
      EchoesOf<BShared, wide::Types::BScalars, wide::Types::BDefaults, wide::Types::BContainers,
               wide::Types::BNode, wide::Types::BDynamics, wide::Types::BAwkward,
               wide::Types::BWideKey, wide::Types::BVersioned, wide::Types::Other::BSub,
               wide::Ping::BA, wide::Pong::BD, wide::Game::BLogin, wide::Game::BLoginResult>();
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::size_t blank = line.find(' ');
    const auto echo = echoes.find(std::string_view(line).substr(0, blank));
    if (blank == std::string::npos || echo == echoes.end()) {
      std::cerr << "bean_echo: no bean of this name, or no bytes: " << line.substr(0, 100) << '\n';
      return 2;
    }
    std::cout << echo->second(FromHex(std::string_view(line).substr(blank + 1))) << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return EchoLines();
  if (std::string_view(argv[1]) == "samples") {
    PrintSamples();
    return 0;
  }
  std::cerr << "usage: bean_echo [samples]\n";
  return 2;
}
