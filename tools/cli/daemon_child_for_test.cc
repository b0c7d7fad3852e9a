// An Application that works for five probes, and whose workers then hang. Its argument is its
// configuration file.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "zeze/app/application.h"
#include "zeze/base/clock.h"
#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"

namespace zeze {
namespace {

constexpr std::uint64_t kProbes = 5;

[[noreturn]] void Hang() {
  Mutex mutex;
  CondVar never;
  const MutexLock lock(mutex);
  while (true) never.Wait(mutex);
}

int Main(const std::string& file) {
  const Result<Config> config = Config::Load(file);
  auto opened = Application::Open("child", OptionsFromConfig(config.value()).value());
  Application& app = *opened.value();
  if (!app.Start().ok()) return 1;
  while (app.liveness().successes < kProbes) std::this_thread::yield();
  std::cout << "probed " << kProbes << " times\n" << std::flush;
  app.workers().Post([] { Hang(); });
  Hang();
}

}  // namespace
}  // namespace zeze

int main(int argc, char** argv) {
  return argc == 2 ? zeze::Main(argv[1]) : 2;
}
