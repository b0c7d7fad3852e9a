// A network between a server and Global that loses everything without a word.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/base/clock.h"
#include "zeze/global/service/testing/small_cluster.h"
#include "zeze/storage/memory/memory_storage.h"

namespace zeze::global {
namespace {

using testing::Global;
using testing::Server;

constexpr int kNotPermitted = 77;
constexpr auto kFailsWithin = std::chrono::seconds(8);  // A call, while the network is silent.
constexpr auto kBackWithin = std::chrono::seconds(8);   // After it has healed.

// Of the network namespace of this process, which has nothing but its own loopback.
bool SwitchLoopback(bool up) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  bool done = ioctl(descriptor, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags =
      static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  done = done && ioctl(descriptor, SIOCSIFFLAGS, &request) == 0;
  close(descriptor);
  return done;
}

std::chrono::nanoseconds TimeUntilAdded(Server& server, std::int64_t key) {
  const auto begin = SystemClock().Now();
  while (server.Add(key, 1) != 0 && SystemClock().Now() < begin + kBackWithin * 5) {
    std::this_thread::yield();
  }
  return SystemClock().Now() - begin;
}

// Runs in a process of its own. Returns its exit status.
int LoseTheNetworkForAWhile() {
  if (unshare(CLONE_NEWNET) != 0 || !SwitchLoopback(true)) return kNotPermitted;
  const auto database = NewMemoryDatabase();
  Global global(database, "g1");
  Server server(database, 1, global.port());
  EXPECT_EQ(0, server.Add(1, 1));

  EXPECT_TRUE(SwitchLoopback(false));
  const auto begin = SystemClock().Now();
  EXPECT_NE(0, server.Add(2, 1)) << "a new right without Global";
  const std::chrono::nanoseconds failed = SystemClock().Now() - begin;
  EXPECT_LE(failed, kFailsWithin);
  EXPECT_EQ(0, server.Add(1, 1)) << "it has the right and a lease";
  EXPECT_TRUE(SwitchLoopback(true));
  const std::chrono::nanoseconds back = TimeUntilAdded(server, 2);
  EXPECT_LE(back, kBackWithin);
  EXPECT_FALSE(server.fenced());
  fmt::print("the call failed after {} ms; back {} ms after the network\n",
             failed / std::chrono::milliseconds(1), back / std::chrono::milliseconds(1));
  (void)std::fflush(stdout);
  return ::testing::Test::HasFailure() ? 1 : 0;
}

TEST(SilentNetwork, CallsFailSoonAndTheSessionIsBackSoonAfterTheNetwork) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int status = LoseTheNetworkForAWhile();
    std::_Exit(status);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPermitted) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(0, WEXITSTATUS(status));
}

}  // namespace
}  // namespace zeze::global
