#include "promises.h"

#include <cstdio>
#include <string_view>

#include <fmt/core.h>

namespace arena_example {

void Promises::Tell(bool kept, std::string_view kind, std::string_view what) {
  fmt::print("{:<7} {}  {}\n", kept ? "kept" : "BROKEN", kind, what);
  std::fflush(stdout);
  all_kept_ = all_kept_ && kept;
}

}  // namespace arena_example
