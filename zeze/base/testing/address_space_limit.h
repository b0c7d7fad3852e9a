// AddressSpaceLimit: lets the machine run out of threads soon, for tests of what happens then.
//
//   if (!CanLimitAddressSpace()) GTEST_SKIP();
//   const AddressSpaceLimit limit(256 << 20);   // Until the end of the scope.

#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/resource.h>
#include <unistd.h>

#include "zeze/base/check.h"

namespace zeze::testing {

// Sanitizers reserve more than any limit.
inline bool CanLimitAddressSpace() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

// The process may take so many bytes more than it has.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ZEZE_CHECK(pages > 0);
    ZEZE_CHECK(::getrlimit(RLIMIT_AS, &before_) == 0);
    rlimit limited = before_;
    limited.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ZEZE_CHECK(::setrlimit(RLIMIT_AS, &limited) == 0);
  }
  ~AddressSpaceLimit() { ZEZE_CHECK(::setrlimit(RLIMIT_AS, &before_) == 0); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_ = {};
};

// Of this process.
inline std::size_t CountThreads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace zeze::testing
