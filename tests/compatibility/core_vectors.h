// CoreVectors: the bytes that the existing implementations write, and what they mean.
//
//   for (const Vector& vector : CoreVectors().all()) Check(vector);

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/compatibility/json.h"

namespace zeze::compatibility {

struct Vector {
  std::string name;
  std::string type;
  Json value;  // A string for most types.
  std::string hex;

  const std::string& text() const { return value.text; }
  std::string bytes() const;  // Of hex.
};

class CoreVectors {
 public:
  static const CoreVectors& Load();

  const std::vector<Vector>& all() const { return all_; }
  const Vector& Named(std::string_view name) const;

 private:
  std::vector<Vector> all_;
};

// Reports with EXPECT what is wrong with a vector.
using Checker = std::function<void(const Vector&)>;

// By type; a key that ends in * stands for all types that start so.
using Checkers = std::map<std::string, Checker, std::less<>>;

void AddPrimitiveCheckers(Checkers& checkers);
void AddConversionCheckers(Checkers& checkers);
void AddBeanCheckers(Checkers& checkers);
void AddIdCheckers(Checkers& checkers);
void AddNetCheckers(Checkers& checkers);

std::string FromHex(std::string_view hex);
std::string ToHex(std::string_view bytes);
std::vector<std::string> Split(std::string_view text, char separator);

// Of the text as Java prints it; stops the test program if it is no number.
std::int64_t ToInt(std::string_view text);
float ToFloat(std::string_view text);
double ToDouble(std::string_view text);

// The number after `label` in a text, such as 11100 after "module " in "module 11100 code 1".
std::int64_t NumberAfter(std::string_view text, std::string_view label);

}  // namespace zeze::compatibility
