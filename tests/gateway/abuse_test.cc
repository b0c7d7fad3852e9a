// The abuse suite: a gateway in a process of its own, as `zeze linkd` runs, strangers in another,
// and honest clients here. What strangers do is refused, each kind with a counter of its own;
// honest clients' p99 is at most doubled; 20,000 idle connections keep nobody out.
//
// What strangers cost the machine is not the gateway's fault: with two processors they, and the
// system for them, slow down everybody. So p99 is compared with that of a control, in which the
// same strangers do the same to a sink.
//
// A window in which other work on the machine got in the way is ten times as slow, and there may be
// more of them than others. Two estimates bear that, each in its way, and the smaller one counts:
// windows are measured in pairs, in turns which first, and the median of their ratios does not care
// for work that comes and goes, which spoils either side alike; and as others only ever add to a
// p99, the best quarter of the windows of each side shows what the gateway itself does. One that is
// too slow is so in each pair and at its best. As long as both estimates are above two, more pairs
// are measured, up to a limit: an unlucky first impression does not last.
//
// Where not even the control comes below a millisecond at its best, the system's scheduler is what
// is measured: whoever uses more of a processor that is not there waits longer, by whole time
// slices. Then there is no verdict on the p99, and the output says so; all else is still expected.
//
// ZEZE_ABUSE_WINDOWS: pairs of windows for each kind instead of 5.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/clock.h"
#include "zeze/base/testing/child_process.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"

namespace zeze::arch {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::TestClient;
using testing::TestProvider;
using zeze::testing::RawClient;

constexpr std::int32_t kShop = 100;

// How many pairs of windows a verdict needs, and how many it may take.
int WindowsMin() {
  const char* given = std::getenv("ZEZE_ABUSE_WINDOWS");  // NOLINT(concurrency-mt-unsafe)
  return given == nullptr ? 5 : std::max(1, std::atoi(given));
}
constexpr int kWindowsMoreMax = 20;
constexpr milliseconds kBusyMachine{1};

NetAddress Loopback(std::uint16_t port) {
  return NetAddress::FromText("127.0.0.1", port).value();
}

// The largest of the lowest half, quarter, ...
template <typename T>
T Lowest(std::vector<T> values, std::size_t part) {
  std::ranges::sort(values);
  return values[values.size() / part];
}

struct Comparison {
  std::vector<nanoseconds> abused;
  std::vector<nanoseconds> controls;
  std::vector<double> ratios;

  double ratio() const { return std::min(Lowest(ratios, 2), RatioAtBest()); }
  double RatioAtBest() const {
    return static_cast<double>(Lowest(abused, 4).count()) /
           static_cast<double>(Lowest(controls, 4).count());
  }
  // At most twice the control, or nobody can tell.
  bool Fine() const {
    if (ratio() <= 2) return true;
    if (Lowest(controls, 4) < kBusyMachine) return false;
    std::cout << "no verdict: the machine is too busy\n";
    return true;
  }
  std::string Format() const {
    return fmt::format(
        "p99 {:.2f} times the control's (in pairs {:.2f}, at best {:.2f}: {} us, control {} us), "
        "{} "
        "pairs",
        ratio(), Lowest(ratios, 2), RatioAtBest(), Lowest(abused, 4) / microseconds(1),
        Lowest(controls, 4) / microseconds(1), ratios.size());
  }
};

// Each measures the p99 of one window.
template <typename Abused, typename Control>
Comparison Compare(Abused&& abused, Control&& control) {
  Comparison all;
  int pairs = WindowsMin();
  for (int i = 0; i < pairs; ++i) {
    if (i % 2 == 0) all.controls.push_back(control());
    all.abused.push_back(abused());
    if (i % 2 == 1) all.controls.push_back(control());
    all.ratios.push_back(static_cast<double>(all.abused.back().count()) /
                         static_cast<double>(all.controls.back().count()));
    const bool unclear = i + 1 == pairs && all.ratio() > 2;
    if (unclear && pairs < WindowsMin() + kWindowsMoreMax) ++pairs;
  }
  return all;
}

// `zeze linkd` and what is behind it.
struct RunningGateway {
  std::unique_ptr<ChildProcess> program;
  std::unique_ptr<TestProvider> provider;
  std::uint16_t client_port = 0;
  std::uint16_t metrics_port = 0;
};

class AbuseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 fmt::format("zeze-abuse-{}-{}", ::getpid(),
                             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
    key_file_ = (directory_ / "accounts.key").string();
    ASSERT_TRUE(key_.Save(key_file_).ok());
    std::ofstream(directory_ / "accounts.keys") << "accounts " << key_.public_text() << '\n';
  }
  ~AbuseTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  // Without limits of addresses, so that everything is handled in full depth.
  RunningGateway StartGateway(std::string_view more = {}, bool insecure = false) {
    insecure_ = insecure;
    const std::string name = fmt::format("gateway{}", ++gateways_);
    const std::string config = (directory_ / (name + ".xml")).string();
    std::ofstream(config) << fmt::format(
        R"(<zeze>
  <ServiceConf Name="LinkdService" CompressC2s="2"/>
  <CustomizeConf Name="Zeze.Linkd" ExemptAddresses="127.0.0.1" AcceptLast="0"
                 SessionMessages="0" SessionBytes="0" AccountMessages="0" AddressMessages="0"
                 RefusedMessages="1/500" {}>
    <Protocol Module="100" Id="6" Rate="10/10"/>
  </CustomizeConf>
</zeze>
)",
        more);
    const std::string sids = (directory_ / (name + ".sids")).string();
    std::vector<std::string> command = {ZEZE_BINARY,       "linkd", "--config",       config,
                                        "--sid-file",      sids,    "--ip",           "127.0.0.1",
                                        "--port",          "0",     "--provider-ip",  "127.0.0.1",
                                        "--provider-port", "0",     "--metrics-port", "0"};
    if (insecure) {
      command.emplace_back("--insecure-accounts");
    } else {
      command.insert(command.end(), {"--token-keys", (directory_ / "accounts.keys").string()});
    }
    RunningGateway gateway;
    gateway.program = std::make_unique<ChildProcess>(std::move(command));
    const std::string line = gateway.program->Line();
    unsigned clients = 0;
    unsigned servers = 0;
    unsigned metrics = 0;
    EXPECT_EQ(
        3, std::sscanf(line.c_str(), "clients on port %u, servers on port %u, metrics on port %u",
                       &clients, &servers, &metrics))
        << line;
    gateway.client_port = static_cast<std::uint16_t>(clients);
    gateway.metrics_port = static_cast<std::uint16_t>(metrics);
    gateway.provider =
        std::make_unique<TestProvider>(Loopback(static_cast<std::uint16_t>(servers)), "1");
    gateway.provider->Offer({kShop});
    return gateway;
  }

  std::string NewTokenOf(const std::string& account) const {
    if (insecure_) return account;
    return SignToken(key_, NewToken(account, "Linkd", seconds(60)));
  }
  std::unique_ptr<TestClient> Login(const RunningGateway& to, const std::string& account) const {
    auto client = std::make_unique<TestClient>(Loopback(to.client_port));
    EXPECT_TRUE(client->EndHandshake());
    EXPECT_EQ(0, client->Authenticate(NewTokenOf(account)));
    return client;
  }

  // The gateway's page of metrics.
  struct Metrics {
    std::string page;

    std::uint64_t Of(const std::string& name) const {
      const std::size_t at = page.find("\n" + name + " ");
      EXPECT_NE(at, std::string::npos) << name << " in:\n" << page;
      return at == std::string::npos ? 0 : std::stoull(page.substr(at + name.size() + 2));
    }
    std::uint64_t Refused(Refusal refusal) const {
      return Of(fmt::format("zeze_linkd_refused_total{{reason=\"{}\"}}", ToString(refusal)));
    }
    std::uint64_t RefusedAtAll() const {
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(Refusal::kCount); ++i) {
        all += Refused(static_cast<Refusal>(i));
      }
      return all;
    }
  };
  static Metrics GetMetrics(const RunningGateway& of) {
    RawClient web(Loopback(of.metrics_port));
    web.Send("GET /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n");
    return {web.ReadBytes(1 << 20)};
  }
  static bool AwaitSessions(const RunningGateway& of, std::uint64_t count) {
    return testing::Eventually([&] { return GetMetrics(of).Of("zeze_linkd_sessions") == count; });
  }

  // Of an honest client's round trips, for a while: what one of a hundred takes longer than.
  static nanoseconds P99(TestClient& honest, const nanoseconds duration) {
    constexpr std::size_t kRoundTripsMin = 100;
    Clock& clock = SystemClock();
    std::vector<nanoseconds> times;
    const nanoseconds end = clock.Now() + duration;
    for (nanoseconds now = clock.Now(); now < end || times.size() < kRoundTripsMin;) {
      EXPECT_TRUE(honest.Request(kShop, 5, "x"));
      EXPECT_EQ("x", honest.Answer());
      const nanoseconds before = std::exchange(now, clock.Now());
      times.push_back(now - before);
    }
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
    std::ranges::nth_element(times, at);
    return *at;
  }

  std::filesystem::path directory_;
  const admin::OperatorKey key_ = admin::OperatorKey::Generate().value();
  std::string key_file_;
  int gateways_ = 0;
  bool insecure_ = false;  // A token is the account's name.
};

// A kind of abuse, how often a second, and what it is refused as.
struct Kind {
  std::string name;
  int per_second = 0;
  Refusal refusal = Refusal::kCount;
  std::string settings = {};
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

class AbuseOfAKind : public AbuseTest, public ::testing::WithParamInterface<Kind> {
 protected:
  static constexpr milliseconds kWindow{200};

  // The p99 of an honest client meanwhile; how many were done is added.
  static nanoseconds Window(TestClient& honest, ChildProcess& strangers, std::uint16_t port,
                            std::uint64_t& done) {
    strangers.Tell(fmt::format("storm {} {} {} {}", GetParam().name, port, GetParam().per_second,
                               kWindow.count()));
    const nanoseconds p99 = P99(honest, kWindow);
    const std::string did = strangers.Line();
    EXPECT_TRUE(did.starts_with("did ")) << did;
    done += std::stoull(did.substr(4));
    return p99;
  }
};

TEST_P(AbuseOfAKind, IsCountedAndAtMostDoublesTheP99OfHonestClients) {
  const RunningGateway gateway = StartGateway(GetParam().settings);
  const std::string used = NewTokenOf("victim");
  TestClient victim(Loopback(gateway.client_port));
  ASSERT_TRUE(victim.EndHandshake());
  ASSERT_EQ(0, victim.Authenticate(used));
  const std::unique_ptr<TestClient> honest = Login(gateway, "honest");
  ChildProcess sink({ZEZE_STRANGERS, "sink"});
  const auto sink_port = static_cast<std::uint16_t>(std::stoul(sink.Line()));
  ChildProcess strangers({ZEZE_STRANGERS, key_file_, admin::ToHex(used)});
  P99(*honest, milliseconds(50));  // Whatever happens for the first time.
  const Metrics before = GetMetrics(gateway);

  std::uint64_t done = 0;
  std::uint64_t closed = 0;
  const Comparison compared = Compare(
      [&] {
        const nanoseconds p99 = Window(*honest, strangers, gateway.client_port, done);
        const std::string settled = strangers.Ask("settle");
        EXPECT_TRUE(settled.starts_with("closed ")) << settled;
        closed += std::stoull(settled.substr(7));
        return p99;
      },
      [&] {
        std::uint64_t elsewhere = 0;
        const nanoseconds p99 = Window(*honest, strangers, sink_port, elsewhere);
        EXPECT_EQ("dropped", strangers.Ask("drop"));
        return p99;
      });

  std::cout << GetParam().name << ": " << compared.Format() << ", " << done << " done\n";
  EXPECT_TRUE(compared.Fine()) << compared.Format();
  const Metrics after = GetMetrics(gateway);
  const std::uint64_t refused =
      after.Refused(GetParam().refusal) - before.Refused(GetParam().refusal);
  EXPECT_EQ(refused, closed);
  if (GetParam().refusal == Refusal::kFlood) {
    // Of messages: each session was refused five hundred and one before it was closed.
    const std::uint64_t messages =
        after.Refused(Refusal::kProtocolRate) - before.Refused(Refusal::kProtocolRate);
    EXPECT_GE(messages, closed * 501);
  } else {
    EXPECT_EQ(closed, done);
    EXPECT_EQ(after.RefusedAtAll() - before.RefusedAtAll(), done) << after.page;
  }
  EXPECT_TRUE(victim.Settle().empty());
}

// Long enough for honest clients, also when the machine is busy.
constexpr const char* kShortPatience = R"(AuthenticationTimeout="1500ms")";

INSTANTIATE_TEST_SUITE_P(
    Of, AbuseOfAKind,
    ::testing::Values(
        Kind{"oversize", 200, Refusal::kOversizeFrame}, Kind{"malformed", 200, Refusal::kMalformed},
        Kind{"unauthenticated", 200, Refusal::kUnauthenticated},
        Kind{"flood", 100, Refusal::kFlood}, Kind{"bomb", 100, Refusal::kCompressionBomb},
        Kind{"replay", 100, Refusal::kReplayedToken}, Kind{"forged", 100, Refusal::kForgedToken},
        Kind{"expired", 100, Refusal::kExpiredToken},
        Kind{"stall", 200, Refusal::kHandshakeTimeout, kShortPatience},
        Kind{"slowloris", 200, Refusal::kAuthTimeout, kShortPatience}),
    [](const auto& kind) { return kind.param.name; });

// Each end of a connection needs a descriptor: the gateway has its own process, and so have two
// halves of the strangers.
TEST_F(AbuseTest, TwentyThousandIdleConnectionsKeepNobodyOut) {
  constexpr std::size_t kWanted = 20'000;
  constexpr std::size_t kReserve = 72;  // What the gateway keeps for others, and honest clients.
  [[maybe_unused]] constexpr std::size_t kBytesEach = 8 << 10;
  constexpr std::size_t kWorthIt = 5000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t count = std::min<std::size_t>(kWanted, limit.rlim_max - kReserve);
  if (limit.rlim_max < kWorthIt) {
    GTEST_SKIP() << "a process may have " << limit.rlim_max << " descriptors open ('ulimit -Hn'), "
                 << kWanted + kReserve << " are needed";
  }
  if (count < kWanted) {
    std::cout << "only " << count << " of " << kWanted << " connections: a process may have "
              << limit.rlim_max << " descriptors open ('ulimit -Hn'), " << kWanted + kReserve
              << " are needed\n";
  }
  // What is held is the matter here, not how it was let in. The control is a gateway without them.
  const RunningGateway full = StartGateway({}, /*insecure=*/true);
  const RunningGateway empty = StartGateway({}, /*insecure=*/true);
  full.program->Pin();
  empty.program->Pin();
  const std::unique_ptr<TestClient> honest = Login(full, "honest");
  const std::unique_ptr<TestClient> lonely = Login(empty, "lonely");
  P99(*honest, milliseconds(50));
  P99(*lonely, milliseconds(50));
  const std::size_t memory = full.program->MemoryInUse();
  {
    ChildProcess one({ZEZE_STRANGERS, key_file_, "00"});
    ChildProcess two({ZEZE_STRANGERS, key_file_, "00"});
    one.Tell(fmt::format("idle {} {} one", full.client_port, count / 2));
    two.Tell(fmt::format("idle {} {} two", full.client_port, count - count / 2));
    EXPECT_EQ(fmt::format("idle {}", count / 2), one.Line());
    EXPECT_EQ(fmt::format("idle {}", count - count / 2), two.Line());
    EXPECT_TRUE(AwaitSessions(full, count + 1));
    const std::size_t grown = full.program->MemoryInUse() - memory;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(grown, count * kBytesEach);
#endif
    const std::unique_ptr<TestClient> late = Login(full, "late");
    EXPECT_TRUE(late->Request(kShop, 5, "x"));
    EXPECT_EQ("x", late->Answer());
    const Comparison compared = Compare([&] { return P99(*honest, milliseconds(200)); },
                                        [&] { return P99(*lonely, milliseconds(200)); });
    std::cout << count << " idle connections, " << grown / count
              << " bytes each: " << compared.Format() << '\n';
    EXPECT_TRUE(compared.Fine()) << compared.Format();
  }
  EXPECT_TRUE(AwaitSessions(full, 1));
  EXPECT_EQ(GetMetrics(full).RefusedAtAll(), 0U);
}

}  // namespace
}  // namespace zeze::arch
