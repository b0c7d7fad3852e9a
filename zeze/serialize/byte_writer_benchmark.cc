// Speed of writing and reading: single numbers, and a record as a checkpoint meets it.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze {
namespace {

constexpr std::size_t kNumbers = 4096;

// Numbers of up to `bits` bits, every length as likely as any other.
std::vector<std::int64_t> Numbers(int bits) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> numbers(kNumbers);
  for (std::int64_t& number : numbers) {
    const auto shift = 64 - 1 - random() % static_cast<std::uint64_t>(bits);
    number = static_cast<std::int64_t>(random() >> shift);
    if (random() % 2 == 0) number = ~number;
  }
  return numbers;
}

void BM_WriteLong(benchmark::State& state) {
  const std::vector<std::int64_t> numbers = Numbers(static_cast<int>(state.range(0)));
  ByteWriter out;
  for (auto _ : state) {
    out.Clear();
    for (const std::int64_t number : numbers) out.WriteLong(number);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kNumbers));
}
BENCHMARK(BM_WriteLong)->Arg(6)->Arg(31)->Arg(63);

void BM_ReadLong(benchmark::State& state) {
  ByteWriter out;
  for (const std::int64_t number : Numbers(static_cast<int>(state.range(0)))) out.WriteLong(number);
  for (auto _ : state) {
    ByteReader in(out.view());
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kNumbers; ++i) sum ^= in.ReadLong();
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kNumbers));
}
BENCHMARK(BM_ReadLong)->Arg(6)->Arg(31)->Arg(63);

// Eight numbers, a name, a position and a list of 16: about 100 bytes.
void WriteRecord(ByteWriter& out, std::int64_t id) {
  int last_id = 0;
  for (int field = 1; field <= 8; ++field) {
    out.WriteTag(last_id, field, TypeCode::kInteger);
    out.WriteLong(id * field);
  }
  out.WriteTag(last_id, 9, TypeCode::kBytes);
  out.WriteBytes("a name of a role");
  out.WriteTag(last_id, 10, TypeCode::kVector3);
  out.WriteVector(Vector3{1, 2, 3});
  out.WriteTag(last_id, 11, TypeCode::kList);
  out.WriteListHeader(16, TypeCode::kInteger);
  for (int i = 0; i < 16; ++i) out.WriteLong(id + i);
  out.WriteEnd();
}

void BM_WriteRecord(benchmark::State& state) {
  ByteWriter out;
  std::int64_t id = 0;
  for (auto _ : state) {
    out.Clear();
    WriteRecord(out, ++id & 0xFFFFF);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(BM_WriteRecord);

void BM_ReadRecord(benchmark::State& state) {
  ByteWriter out;
  WriteRecord(out, 70000);
  for (auto _ : state) {
    ByteReader in(out.view());
    std::int64_t sum = 0;
    int last_id = 0;
    for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
      if (tag.id <= 8) {
        sum += in.ReadIntegerAs<std::int64_t>(tag.type);
      } else if (tag.id == 9) {
        sum += static_cast<std::int64_t>(in.ReadBytesAs(tag.type).size());
      } else if (tag.id == 10) {
        sum += static_cast<std::int64_t>(in.ReadVectorAs<Vector3>(tag.type).x);
      } else {
        TypeCode element;
        for (std::size_t n = in.ReadListHeader(element); n > 0; --n) {
          sum += in.ReadIntegerAs<std::int64_t>(element);
        }
      }
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(BM_ReadRecord);

void BM_SkipRecord(benchmark::State& state) {
  ByteWriter out;
  WriteRecord(out, 70000);
  for (auto _ : state) {
    ByteReader in(out.view());
    in.Skip(TypeCode::kBean);
    benchmark::DoNotOptimize(in.position());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(BM_SkipRecord);

}  // namespace
}  // namespace zeze
