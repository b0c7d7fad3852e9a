// An Application that works for five probes, and whose workers then hang.

#include <cstdint>
#include <iostream>
#include <memory>
#include <thread>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"

namespace zeze {
namespace {

constexpr std::uint64_t kProbes = 5;

[[noreturn]] void Hang() {
  Mutex mutex;
  CondVar never;
  const MutexLock lock(mutex);
  while (true) never.Wait(mutex);
}

int Main() {
  auto opened = Application::Open("child", {.storage = StorageKind::kMemory,
                                            .worker_threads = 1,
                                            .liveness = {.period = std::chrono::milliseconds(50)}});
  Application& app = *opened.value();
  if (!app.Start().ok()) return 1;
  while (app.liveness().successes < kProbes) std::this_thread::yield();
  std::cout << "probed " << kProbes << " times\n" << std::flush;
  app.workers().Post([] { Hang(); });
  Hang();
}

}  // namespace
}  // namespace zeze

int main() {
  return zeze::Main();
}
