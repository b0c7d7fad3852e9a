// ProtocolTest: the fixture of the tests that walk through the commit and flush protocol.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "zeze/base/testing/manual_clock.h"
#include "zeze/transaction/internal/context.h"
#include "zeze/transaction/testing/engine_test.h"

namespace zeze::testing {

class ProtocolTest : public EngineTest {
 protected:
  void OpenShared() {
    options.coherence = &coherence;
    Open();
  }

  // Of a commit or Reduce under way, 0 if there is none.
  std::uint64_t AnnouncedEpoch() {
    std::uint64_t announced = 0;
    engine->contexts()->ForEach([&announced](internal::Context& context) {
      announced = std::max(announced, context.epoch.load());
    });
    return announced;
  }

  // For tests in which nothing may happen in the background.
  ManualClock clock;
  // For hooks that the engine calls to its end.
  std::atomic<std::size_t> drains = 0;
  std::atomic<int> wrong = 0;
};

}  // namespace zeze::testing
