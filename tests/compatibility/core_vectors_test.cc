// Every vector of core.json, written by the existing implementations, is reproduced (where it is an
// encoding) and understood (where it is input). None is skipped: a type that no checker knows
// fails.

#include "tests/compatibility/core_vectors.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace zeze::compatibility {
namespace {

constexpr std::size_t kVectorCount = 543;

Checkers AllCheckers() {
  Checkers checkers;
  AddPrimitiveCheckers(checkers);
  AddConversionCheckers(checkers);
  AddBeanCheckers(checkers);
  AddIdCheckers(checkers);
  AddNetCheckers(checkers);
  return checkers;
}

const Checker* Find(const Checkers& checkers, const std::string& type) {
  if (const auto exact = checkers.find(type); exact != checkers.end()) return &exact->second;
  for (const auto& [key, checker] : checkers) {
    if (key.ends_with('*') && type.starts_with(key.substr(0, key.size() - 1))) return &checker;
  }
  return nullptr;
}

TEST(CoreVectors, AllAgree) {
  const Checkers checkers = AllCheckers();
  std::size_t checked = 0;
  for (const Vector& vector : CoreVectors::Load().all()) {
    SCOPED_TRACE(vector.name + " (" + vector.type + ") " + vector.hex);
    const Checker* checker = Find(checkers, vector.type);
    if (checker == nullptr) {
      ADD_FAILURE() << "nothing checks vectors of this type";
      continue;
    }
    (*checker)(vector);
    ++checked;
  }
  EXPECT_EQ(checked, kVectorCount);
  RecordProperty("vectors", static_cast<int>(checked));
}

// Copies with one digit of the encoding changed, with nothing but zeros, and with a value where an
// error was.
std::vector<Vector> ChangedCopies(const Vector& vector) {
  std::vector<Vector> copies;
  for (std::size_t i = 0; i < vector.hex.size(); ++i) {
    if (vector.hex[i] == '|') continue;
    Vector& copy = copies.emplace_back(vector);
    copy.hex[i] = copy.hex[i] == '0' ? '1' : '0';
  }
  for (char& digit : copies.emplace_back(vector).hex) digit = digit == '|' ? '|' : '0';
  if (vector.text() == "ERROR") copies.emplace_back(vector).value.text = "1";
  return copies;
}

bool Notices(const Checker& checker, const Vector& changed) {
  ::testing::TestPartResultArray failures;
  ::testing::ScopedFakeTestPartResultReporter reporter(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  checker(changed);
  return failures.size() > 0;
}

// The test above must notice when bytes differ: a checker that compares nothing would pass it too.
TEST(CoreVectors, EveryCheckerNoticesChangedBytes) {
  const Checkers checkers = AllCheckers();
  std::map<std::string, std::size_t> noticed;
  for (const Vector& vector : CoreVectors::Load().all()) {
    const Checker* checker = Find(checkers, vector.type);
    ASSERT_NE(checker, nullptr);
    for (const Vector& changed : ChangedCopies(vector)) {
      noticed[vector.type] += Notices(*checker, changed) ? 1 : 0;
    }
  }
  for (const auto& [type, count] : noticed) EXPECT_GT(count, 0U) << type;
}

}  // namespace
}  // namespace zeze::compatibility
