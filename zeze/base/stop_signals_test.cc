#include "zeze/base/stop_signals.h"

#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace zeze {
namespace {

void SignalSelf() {
  ::kill(::getpid(), SIGTERM);
}

// Each runs in a process of its own, which ends with the status that it must not.
class StopSignalsDeathTest : public testing::Test {
 protected:
  StopSignalsDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StopSignalsDeathTest, ASignalDuringTheStartEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        SignalSelf();
        for (;;) ::pause();
      },
      testing::KilledBySignal(SIGTERM), "before its start is complete");
}

TEST_F(StopSignalsDeathTest, ASignalIsKeptForWaitWhenSomethingIsUnsaved) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        const StopSignals::Unsaved unsaved([] { return "3 records"; });
        SignalSelf();
        const bool right = signals.Wait() == SIGTERM && signals.Wait() == SIGTERM;
        std::_Exit(right ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(StopSignalsDeathTest, ASecondSignalEndsTheProcessAndSaysWhatIsLost) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        const auto unsaved = std::make_unique<StopSignals::Unsaved>([] { return "3 records"; });
        SignalSelf();
        signals.Wait();
        SignalSelf();
        for (;;) ::pause();
      },
      testing::KilledBySignal(SIGTERM), "what is lost: 3 records");
}

}  // namespace
}  // namespace zeze
