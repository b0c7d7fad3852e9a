// A process for tests to kill, and to find in their way.
//
//   batch_writer hold DIRECTORY          Opens the storage, says "ready", waits till input ends.
//   batch_writer write DIRECTORY BYTES   Flushes numbered batches (testing/batches.h) without end;
//                                        says the number of each when it is acknowledged. If one is
//                                        refused, says "refused" and ends without closing anything.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <unistd.h>

#include "zeze/base/result.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/rocksdb/testing/batches.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// Unbuffered: what is said is acknowledged, whatever happens next.
void Say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(3);
}

int Run(std::string_view mode, const std::string& directory, std::size_t value_bytes) {
  Result<std::unique_ptr<Storage>> opened =
      OpenRocksDbStorage({.directory = directory, .memtable_bytes = std::size_t{1} << 20});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    return 2;
  }
  if (mode == "hold") {
    Say("ready");
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  TestBatches batches(*opened.value());
  for (int number = batches.Read().last + 1;; ++number) {
    // Every third without sync: the end of a process must not lose those either.
    if (!batches.Flush(number, value_bytes, /*sync=*/number % 3 != 0).ok()) {
      Say("refused");
      std::_Exit(1);
    }
    Say(std::to_string(number));
  }
}

}  // namespace
}  // namespace zeze

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return zeze::Run(argv[1], argv[2], argc > 3 ? std::stoul(argv[3]) : 100);
}
