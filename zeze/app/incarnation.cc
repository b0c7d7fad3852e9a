#include "zeze/app/incarnation.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace zeze {

namespace {

std::string_view Variable(std::string_view name) {
  const char* value =
      std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it.
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Incarnation IncarnationFromEnvironment() {
  Incarnation incarnation;
  const std::string_view own = Variable(kIncarnationVariable);
  if (own.size() != kIncarnationSize) return incarnation;
  incarnation.own = own;
  std::string_view rest = Variable(kEndedVariable);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    if (one.size() == kIncarnationSize && one != own) incarnation.ended.emplace_back(one);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return incarnation;
}

}  // namespace zeze
