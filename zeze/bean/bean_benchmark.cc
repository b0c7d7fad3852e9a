// What the containers cost: editing one element of 10,000 just after a copy (a transaction's case),
// against copying a standard container; building, finding and walking; encoding a bean.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <benchmark/benchmark.h>

#include "zeze/bean/codec.h"
#include "zeze/bean/list.h"
#include "zeze/bean/map.h"
#include "zeze/bean/sorted_map.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

using testing::BItem;
using testing::BRole;

constexpr std::int32_t kElements = 10000;

BItem Item(std::int32_t i) {
  return {i, i * 7, "item " + std::to_string(i)};
}

// Visits the elements in an order that caches do not guess.
std::int32_t NextIndex(std::uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return static_cast<std::int32_t>((state >> 8) % kElements);
}

List<BItem> MakeList() {
  List<BItem> list;
  for (std::int32_t i = 0; i < kElements; ++i) list.PushBack(Item(i));
  return list;
}

template <typename M>
M MakeMap() {
  M map;
  for (std::int32_t i = 0; i < kElements; ++i) map.Put(i * 3, Item(i));
  return map;
}

void ListEditSharedElement(benchmark::State& state) {
  List<BItem> current = MakeList();
  std::uint32_t random = 1;
  for (auto _ : state) {
    List<BItem> working = current;
    working.Update(static_cast<std::size_t>(NextIndex(random)), [](BItem& item) { ++item.count; });
    current = std::move(working);
  }
}
BENCHMARK(ListEditSharedElement);

void ListEditOwnElement(benchmark::State& state) {
  List<BItem> list = MakeList();
  std::uint32_t random = 1;
  for (auto _ : state) {
    list.Update(static_cast<std::size_t>(NextIndex(random)), [](BItem& item) { ++item.count; });
  }
}
BENCHMARK(ListEditOwnElement);

void ListInsertAndEraseInTheMiddleOfACopy(benchmark::State& state) {
  List<BItem> current = MakeList();
  std::uint32_t random = 1;
  for (auto _ : state) {
    List<BItem> working = current;
    working.Insert(static_cast<std::size_t>(NextIndex(random)), Item(1));
    working.Erase(static_cast<std::size_t>(NextIndex(random)));
    current = std::move(working);
  }
}
BENCHMARK(ListInsertAndEraseInTheMiddleOfACopy);

void VectorEditOfACopy(benchmark::State& state) {
  std::vector<BItem> current;
  for (std::int32_t i = 0; i < kElements; ++i) current.push_back(Item(i));
  std::uint32_t random = 1;
  for (auto _ : state) {
    std::vector<BItem> working = current;
    ++working[static_cast<std::size_t>(NextIndex(random))].count;
    current = std::move(working);
  }
}
BENCHMARK(VectorEditOfACopy);

template <typename M>
void MapEditSharedElement(benchmark::State& state) {
  M current = MakeMap<M>();
  std::uint32_t random = 1;
  for (auto _ : state) {
    M working = current;
    working.Update(NextIndex(random) * 3, [](BItem& item) { ++item.count; });
    current = std::move(working);
  }
}
BENCHMARK(MapEditSharedElement<Map<std::int32_t, BItem>>)->Name("MapEditSharedElement");
BENCHMARK(MapEditSharedElement<SortedMap<std::int32_t, BItem>>)->Name("SortedMapEditSharedElement");

template <typename M>
void StandardMapEditOfACopy(benchmark::State& state) {
  M current;
  for (std::int32_t i = 0; i < kElements; ++i) current.emplace(i * 3, Item(i));
  std::uint32_t random = 1;
  for (auto _ : state) {
    M working = current;
    ++working[NextIndex(random) * 3].count;
    current = std::move(working);
  }
}
BENCHMARK(StandardMapEditOfACopy<std::unordered_map<std::int32_t, BItem>>)
    ->Name("UnorderedMapEditOfACopy");
BENCHMARK(StandardMapEditOfACopy<std::map<std::int32_t, BItem>>)->Name("StdMapEditOfACopy");

template <typename M>
void MapFind(benchmark::State& state) {
  const M map = MakeMap<M>();
  std::uint32_t random = 1;
  for (auto _ : state) benchmark::DoNotOptimize(map.Find(NextIndex(random) * 3));
}
BENCHMARK(MapFind<Map<std::int32_t, BItem>>)->Name("MapFind");
BENCHMARK(MapFind<SortedMap<std::int32_t, BItem>>)->Name("SortedMapFind");

void UnorderedMapFind(benchmark::State& state) {
  std::unordered_map<std::int32_t, BItem> map;
  for (std::int32_t i = 0; i < kElements; ++i) map.emplace(i * 3, Item(i));
  std::uint32_t random = 1;
  for (auto _ : state) benchmark::DoNotOptimize(map.find(NextIndex(random) * 3));
}
BENCHMARK(UnorderedMapFind);

template <typename C>
void Walk(benchmark::State& state, const C& container) {
  for (auto _ : state) {
    std::int64_t sum = 0;
    for (const auto& element : container) {
      if constexpr (requires { element.value; }) {
        sum += element.value.count;
      } else {
        sum += element.count;
      }
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
void ListWalk(benchmark::State& state) {
  Walk(state, MakeList());
}
void MapWalk(benchmark::State& state) {
  Walk(state, MakeMap<Map<std::int32_t, BItem>>());
}
void SortedMapWalk(benchmark::State& state) {
  Walk(state, MakeMap<SortedMap<std::int32_t, BItem>>());
}
BENCHMARK(ListWalk);
BENCHMARK(MapWalk);
BENCHMARK(SortedMapWalk);

void ListBuild(benchmark::State& state) {
  for (auto _ : state) {
    List<std::int64_t> list;
    for (std::int32_t i = 0; i < kElements; ++i) list.PushBack(i);
    benchmark::DoNotOptimize(list);
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(ListBuild);

template <typename M>
void MapBuild(benchmark::State& state) {
  for (auto _ : state) {
    M map;
    for (std::int32_t i = 0; i < kElements; ++i) map.Put(i, i);
    benchmark::DoNotOptimize(map);
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(MapBuild<Map<std::int32_t, std::int64_t>>)->Name("MapBuild");
BENCHMARK(MapBuild<SortedMap<std::int32_t, std::int64_t>>)->Name("SortedMapBuild");

void CopyBeanWithEmptyContainers(benchmark::State& state) {
  BRole role;
  for (auto _ : state) {
    BRole copy = role;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(CopyBeanWithEmptyContainers);

void CopyBeanWithFullContainers(benchmark::State& state) {
  const BRole role = testing::RandomRole(1).Make(200);
  for (auto _ : state) {
    BRole copy = role;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(CopyBeanWithFullContainers);

void EncodeLargeBean(benchmark::State& state) {
  const BRole role = testing::RandomRole(1).Make(200);
  ByteWriter out;
  for (auto _ : state) {
    out.Clear();
    role.Encode(out);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(EncodeLargeBean);

void DecodeLargeBean(benchmark::State& state) {
  const std::string bytes = EncodeBean(testing::RandomRole(1).Make(200));
  for (auto _ : state) {
    ByteReader in(bytes);
    BRole role;
    role.Decode(in);
    benchmark::DoNotOptimize(role);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(DecodeLargeBean);

void EncodeSmallBean(benchmark::State& state) {
  const BItem item = Item(7);
  ByteWriter out;
  for (auto _ : state) {
    out.Clear();
    item.Encode(out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(EncodeSmallBean);

}  // namespace
}  // namespace zeze
