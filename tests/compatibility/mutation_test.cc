// Damaged encodings: every truncation, and a million random changes, of all kinds of valid ones.
// Each decodes, or fails with an error that says where; none makes the decoder crash, or allocate
// more than the bytes that are really there can justify.
//
// ZEZE_TEST_SEED and ZEZE_TEST_MUTATIONS (a number) choose another run.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/compatibility/core_vectors.h"
#include "tests/compatibility/framework_beans.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/testing/random_role.h"
#include "zeze/bean/testing/test_beans.h"
#include "zeze/serialize/byte_reader.h"

namespace {

// Bytes in use now, and at most since the last reset. The test has one thread.
std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

void* CountedAllocate(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  live_bytes += malloc_usable_size(memory);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}

void CountedFree(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return CountedAllocate(size);
}
void* operator new[](std::size_t size) {
  return CountedAllocate(size);
}
void operator delete(void* memory) noexcept {
  CountedFree(memory);
}
void operator delete[](void* memory) noexcept {
  CountedFree(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  CountedFree(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  CountedFree(memory);
}

namespace zeze::compatibility {
namespace {

using testing::BDerived;
using testing::BRole;
using testing::RandomRole;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::uint64_t kMutations = 50'000;
#else
constexpr std::uint64_t kMutations = 1'000'000;
#endif

// The dearest thing per byte that a schema of the tests has is a map of roles: a role of several
// hundred bytes, with its place in the map, for a key of one byte and an empty bean of one byte.
constexpr std::size_t kBytesPerInputByte = sizeof(BRole) * 2;
constexpr std::size_t kBytesAlways = 4096;

// Shorter inputs say little about the memory that a byte of input costs.
constexpr std::size_t kBytesToCompare = 256;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What became of one input.
struct Outcome {
  bool decoded = false;
  std::size_t peak_bytes = 0;
};

template <typename B>
Outcome DecodeAs(std::string_view bytes) {
  const std::size_t before = live_bytes;
  peak_bytes = live_bytes;
  Outcome outcome;
  {
    Result<B> bean = DecodeBean<B>(bytes);
    outcome.decoded = bean.ok();
    outcome.peak_bytes = peak_bytes - before;
    if (bean.ok()) {
      // What was understood can be written and is then understood in the same way.
      const std::string own = EncodeBean(bean.value());
      Result<B> again = DecodeBean<B>(own);
      EXPECT_TRUE(again.ok()) << again.error().message();
      EXPECT_EQ(EncodeBean(again.value()), own);
    } else {
      EXPECT_EQ(bean.error().code(), ErrorCode::kCorrupt);
      EXPECT_NE(bean.error().message().find("offset"), std::string::npos) << bean.error().message();
    }
  }
  EXPECT_EQ(live_bytes, before) << "a leak";
  return outcome;
}

using Decode = Outcome (*)(std::string_view);

struct Seed {
  std::string bytes;
  Decode decode;
};

// The vectors of beans, as beans that know some of their fields and as one that knows all types,
// and larger beans full of everything.
std::vector<Seed> Seeds() {
  std::vector<Seed> seeds;
  for (const Vector& vector : CoreVectors::Load().all()) {
    if (!vector.type.starts_with("bean") || vector.type == "beanTypeId") continue;
    for (const Decode decode : {&DecodeAs<BRole>, &DecodeAs<BOld>, &DecodeAs<BDerived>,
                                &DecodeAs<BRocksValue>, &DecodeAs<BTimer>}) {
      seeds.push_back({vector.bytes(), decode});
    }
  }
  RandomRole random(FromEnvironment("ZEZE_TEST_SEED", 1));
  for (int i = 0; i < 300; ++i) {
    seeds.push_back({EncodeBean(random.Make(5 + i, 2)), &DecodeAs<BRole>});
  }
  return seeds;
}

std::string Hex(std::string_view bytes) {
  return ToHex(bytes.substr(0, 2000));
}

void CheckOutcome(std::string_view bytes, const Outcome& outcome) {
  EXPECT_LE(outcome.peak_bytes, kBytesAlways + kBytesPerInputByte * bytes.size()) << Hex(bytes);
  ByteReader skipping(bytes);
  skipping.Skip(TypeCode::kBean);
  EXPECT_LE(skipping.position(), bytes.size());
}

// Changes bytes in one of the ways in which disks, networks and attackers do.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  void Mutate(std::string& bytes, std::string_view other) {
    for (std::uint64_t changes = 1 + Below(3); changes > 0; --changes) Change(bytes, other);
  }

  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }

 private:
  void Change(std::string& bytes, std::string_view other) {
    const std::size_t at = bytes.empty() ? 0 : Below(bytes.size());
    const std::size_t count = 1 + Below(8);
    switch (bytes.empty() ? 3 : Below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        bytes.erase(at, count);
        break;
      case 3:
        bytes.insert(at, 1, static_cast<char>(random_()));
        break;
      case 4:
        bytes.insert(at, std::string(bytes, at, count));
        break;
      case 5:
        PutHugeNumber(bytes, at);
        break;
      default:
        if (!other.empty()) bytes.replace(at, count, other.substr(Below(other.size()), 2 * count));
    }
  }

  // Where a count or a length may be: a claim of up to 4 billion.
  void PutHugeNumber(std::string& bytes, std::size_t at) {
    static constexpr std::string_view kNumbers[] = {{"\xf0\xff\xff\xff\xff"},
                                                    {"\xf0\x7f\xff\xff\xff"},
                                                    {"\xf0\x3f\xff\xff\xff"},
                                                    {"\xdf\xff\xff"},
                                                    {"\xbf\xff"},
                                                    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff"}};
    bytes.replace(at, 1, kNumbers[Below(std::size(kNumbers))]);
  }

  std::mt19937_64 random_;
};

TEST(Mutation, EveryTruncationFails) {
  std::uint64_t truncations = 0;
  for (const Seed& seed : Seeds()) {
    // A bean is complete with its last byte, not before.
    for (std::size_t size = 0; size < seed.bytes.size(); ++size) {
      const std::string_view bytes = std::string_view(seed.bytes).substr(0, size);
      const Outcome outcome = seed.decode(bytes);
      ASSERT_FALSE(outcome.decoded) << Hex(bytes);
      CheckOutcome(bytes, outcome);
      ASSERT_FALSE(HasFailure()) << Hex(bytes);
      ++truncations;
    }
  }
  std::cout << truncations << " truncations\n";
}

TEST(Mutation, RandomChangesDecodeOrFail) {
  const std::uint64_t seed_number = FromEnvironment("ZEZE_TEST_SEED", 1);
  const std::uint64_t mutations = FromEnvironment("ZEZE_TEST_MUTATIONS", kMutations);
  std::cout << "ZEZE_TEST_SEED=" << seed_number << " ZEZE_TEST_MUTATIONS=" << mutations << "\n";
  const std::vector<Seed> seeds = Seeds();
  Mutator mutator(seed_number);
  std::uint64_t decoded = 0;
  double dearest = 0;
  for (std::uint64_t i = 0; i < mutations; ++i) {
    const Seed& seed = seeds[mutator.Below(seeds.size())];
    std::string bytes = seed.bytes;
    mutator.Mutate(bytes, seeds[mutator.Below(seeds.size())].bytes);
    const Outcome outcome = seed.decode(bytes);
    CheckOutcome(bytes, outcome);
    ASSERT_FALSE(HasFailure()) << "mutation " << i << ": " << Hex(bytes);
    decoded += outcome.decoded ? 1 : 0;
    if (bytes.size() < kBytesToCompare) continue;
    dearest = std::max(dearest,
                       static_cast<double>(outcome.peak_bytes) / static_cast<double>(bytes.size()));
  }
  std::cout << decoded << " decoded, " << mutations - decoded << " failed; dearest "
            << static_cast<int>(dearest) << " bytes of memory per byte of input\n";
  // Neither outcome may be a rarity, or the test would show little.
  EXPECT_GT(decoded, mutations / 20);
  EXPECT_GT(mutations - decoded, mutations / 20);
}

// The worst that honest bytes can ask for, and what mere claims get.
TEST(Mutation, MemoryFollowsTheBytesThatAreThere) {
  BRole crowd;
  for (std::int32_t i = 0; i < 10000; ++i) crowd.children.Put(i, BRole());
  const std::string honest = EncodeBean(crowd);
  const Outcome outcome = DecodeAs<BRole>(honest);
  EXPECT_TRUE(outcome.decoded);
  EXPECT_GT(outcome.peak_bytes, 10000 * sizeof(BRole));
  CheckOutcome(honest, outcome);

  // In front of every field of every container: a claim of a billion elements, and ten bytes.
  for (const int field : {8, 9, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27}) {
    ByteWriter out;
    int last_id = 0;
    const bool is_text = field < 16;
    const bool is_list = field < 20 || field == 26;
    out.WriteTag(last_id, field,
                 is_text   ? TypeCode::kBytes
                 : is_list ? TypeCode::kList
                           : TypeCode::kMap);
    if (is_text) {
      out.WriteUint(1'000'000'000);
    } else if (is_list) {
      out.WriteListHeader(1'000'000'000, field == 26 ? TypeCode::kDynamic : TypeCode::kBean);
    } else {
      out.WriteMapHeader(1'000'000'000, TypeCode::kInteger, TypeCode::kBean);
    }
    out.WriteRaw(std::string(10, '\0'));
    const Outcome claim = DecodeAs<BRole>(out.view());
    EXPECT_FALSE(claim.decoded) << field;
    EXPECT_LE(claim.peak_bytes, 1024U) << field;
  }
}

}  // namespace
}  // namespace zeze::compatibility
