#include "tests/compatibility/core_vectors.h"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "zeze/base/check.h"

namespace zeze::compatibility {

std::string Vector::bytes() const {
  return FromHex(hex);
}

const CoreVectors& CoreVectors::Load() {
  static const CoreVectors vectors = [] {
    std::ifstream file(ZEZE_CORE_VECTORS, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    CoreVectors loaded;
    for (const Json& entry : ParseJson(text.str()).items) {
      loaded.all_.push_back(
          {entry["name"].text, entry["type"].text, entry["value"], entry["hex"].text});
    }
    return loaded;
  }();
  return vectors;
}

const Vector& CoreVectors::Named(std::string_view name) const {
  for (const Vector& vector : all_) {
    if (vector.name == name) return vector;
  }
  ZEZE_CHECK(false && "no such vector");
  return all_.front();
}

std::string FromHex(std::string_view hex) {
  ZEZE_CHECK(hex.size() % 2 == 0);
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const char* end = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16).ptr;
    ZEZE_CHECK(end == hex.data() + i + 2);
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex.push_back("0123456789abcdef"[value >> 4]);
    hex.push_back("0123456789abcdef"[value & 15]);
  }
  return hex;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::int64_t ToInt(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  ZEZE_CHECK(result.ec == std::errc() && result.ptr == text.data() + text.size());
  return value;
}

double ToDouble(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  ZEZE_CHECK(!copy.empty() && *end == '\0');
  return value;
}

float ToFloat(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const float value = std::strtof(copy.c_str(), &end);
  ZEZE_CHECK(!copy.empty() && *end == '\0');
  return value;
}

std::int64_t NumberAfter(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  ZEZE_CHECK(at != text.npos);
  text.remove_prefix(at + label.size());
  std::int64_t value = 0;
  ZEZE_CHECK(std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc());
  return value;
}

}  // namespace zeze::compatibility
