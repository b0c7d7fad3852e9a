// What the server programs of the cluster tests have in common: they end with a line that says why.

#pragma once

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"

namespace zeze::cluster {

inline constexpr int kFencedStatus = 86;

template <typename R>
void CheckOrEnd(const R& result) {
  if (result.ok()) return;
  std::cerr << program_invocation_short_name << ": " << result.error().message() << '\n'
            << std::flush;
  std::_Exit(1);
}

[[noreturn]] inline void EndFenced(const std::string& why) {
  std::cerr << program_invocation_short_name << ": fenced, ends without saving: " << why << '\n'
            << std::flush;
  std::_Exit(kFencedStatus);
}

inline std::unique_ptr<Storage> OpenOrEnd(const std::string& url) {
  Result<std::unique_ptr<Storage>> opened = OpenStorage({.url = url});
  CheckOrEnd(opened);
  return std::move(opened).value();
}

}  // namespace zeze::cluster
