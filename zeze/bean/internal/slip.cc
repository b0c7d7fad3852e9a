#include "zeze/bean/internal/slip.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "zeze/base/usage_error.h"

namespace zeze::internal {

void ThrowBadIndex(std::size_t index, std::size_t size) {
  ThrowUsageError(
      fmt::format("index {} of a list with {} elements", static_cast<std::int64_t>(index), size));
}

void ThrowEnd() {
  ThrowUsageError("an iterator was used at the end of its container");
}

void ThrowNoKeyText(const std::string& key) {
  ThrowUsageError(fmt::format("the map does not have the key {}: use Find to ask for it", key));
}

void ThrowWrongChoice(std::int64_t wanted, std::int64_t held) {
  ThrowUsageError(held == 0 ? fmt::format("a dynamic variable is empty; a bean with type id {} was "
                                          "asked for",
                                          wanted)
                            : fmt::format("a dynamic variable holds a bean with type id {}; one "
                                          "with {} was asked for",
                                          held, wanted));
}

}  // namespace zeze::internal
