#include "server.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait is of POSIX.

#include "board.h"
#include "maps.h"
#include "players.h"
#include "world.h"
#include "zeze/app/application.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/provider/module_binds.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/scheduler.h"
#include "zeze/config/config.h"
#include "zeze/net/io_threads.h"
#include "zeze/transaction/result_code.h"
#include "zeze/transaction/transaction.h"

namespace arena_example {

namespace {

constexpr const char* kNamePrefix = "arena.Server.Module#";

int Fail(const zeze::Error& error) {
  fmt::print(stderr, "arena: {}\n", error.message());
  return 1;
}

// The modules of the arena. Every server has all of them, for their tables;
// provider.module.binds.xml says which of them it offers to clients.
struct Modules {
  Players players;
  Board board{players};
  Maps maps{players, board};
  World world{players};
  zeze::arch::RoleOnline online{{}};

  Modules() {
    online.logins().On(zeze::arch::LoginChange::kLogin,
                       {.in_transaction = [](zeze::Transaction&, const auto& login) {
                         // Nobody plays what is not his.
                         return login.key == RoleOf(login.account)
                                    ? zeze::result_code::kSuccess
                                    : Players::ErrorCode(arena::Player::RoleTaken);
                       }});
  }

  void AddTo(zeze::Application& application) {
    application.AddModule(players);
    application.AddModule(board.rank());
    application.AddModule(board);
    application.AddModule(maps);
    application.AddModule(world);
    application.AddModule(online);
  }
};

zeze::Result<std::unique_ptr<zeze::Application>> OpenApplication(const std::string& config_file) {
  auto config = zeze::Config::Load(config_file);
  if (!config.ok()) return config.error();
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return options.error();
  return zeze::Application::Open("arena", options.value());
}

void WaitForTheEnd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  int signal = 0;
  sigwait(&signals, &signal);
}

// Before any thread: all of them leave these signals to WaitForTheEnd.
void BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

int Serve(const std::string& config_file, const std::string& binds_file) {
  BlockSignals();
  auto binds = zeze::arch::ModuleBinds::Load(binds_file);
  if (!binds.ok()) return Fail(binds.error());

  Modules modules;
  auto opened = OpenApplication(config_file);
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
  modules.AddTo(application);
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());

  zeze::IoThreads io({});
  zeze::arch::Redirect redirect(
      application, io, *application.registry(),
      {.name_prefix = kNamePrefix, .direct = {.ip = "127.0.0.1"}, .register_modules = false});
  redirect.AddModule(modules.maps);
  if (auto started = redirect.Start(); !started.ok()) return Fail(started.error());

  zeze::arch::Provider provider(application, io, *application.registry(),
                                {.name_prefix = kNamePrefix,
                                 .linkd_name = "arena.Linkd",
                                 .direct_ip = redirect.links().ip(),
                                 .direct_port = redirect.links().port(),
                                 .binds = binds.value()});
  provider.AddModule(modules.players);
  provider.AddModule(modules.board);
  provider.AddModule(modules.maps);
  provider.AddModule(modules.world);
  provider.AddModule(modules.online);
  provider.OnLinkBroken([&](const zeze::arch::LinkAddress& address, const auto& broken) {
    modules.maps.Leave(RoleOf(broken.account), address);
    modules.online.LinkBroken(address);
  });
  modules.world.Connect(application, redirect);
  if (auto started = provider.Start(false); !started.ok()) return Fail(started.error());
  modules.maps.Connect(provider.links());
  modules.online.Connect(provider.links());
  provider.SetReady(true);
  zeze::ScheduledTask views = application.scheduler().Every(
      std::chrono::milliseconds(500), zeze::Task("send views", [&] { modules.maps.SendViews(); }));
  fmt::print("server {} is ready\n", application.options().server_id);
  std::fflush(stdout);

  WaitForTheEnd();
  views.Cancel();
  provider.Stop();
  redirect.Stop();
  const auto stopped = application.Stop();
  fmt::print("moves out of order: {}\n", modules.maps.disorder_count());
  if (!stopped.ok()) return Fail(stopped.error());
  return modules.maps.disorder_count() == 0 ? 0 : 1;
}

int Verify(const std::string& config_file, long player_count, const std::string& receipts_file) {
  Modules modules;
  auto opened = OpenApplication(config_file);
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
  modules.AddTo(application);
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());
  const auto totals = modules.players.Count();
  if (!totals.ok()) return Fail(totals.error());
  const auto board = modules.board.Check();
  std::int64_t promised = 0;
  std::int64_t kept = 0;
  std::ifstream receipts(receipts_file);
  for (std::int64_t role = 0, number = 0; receipts >> role >> number;) {
    ++promised;
    const auto receipt = modules.players.tReceipt.ReadCopy({.role = role, .number = number});
    if (receipt.ok() && receipt.value()) ++kept;
  }
  if (auto stopped = application.Stop(); !stopped.ok()) return Fail(stopped.error());

  bool right = true;
  const auto expect = [&right](const char* what, std::int64_t found, std::int64_t expected) {
    fmt::print("{}: {}{}\n", what, found,
               found == expected ? "" : fmt::format(", but it should be {}", expected));
    right = right && found == expected;
  };
  const Totals& all = totals.value();
  expect("players", all.players, player_count < 0 ? all.players : player_count);
  expect("gold", all.gold, all.players * kGoldAtStart);
  expect("goods", all.goods, all.players * kGoodKinds * kGoodsAtStart);
  expect("trades noted at players", all.trades, 2 * all.receipts);
  expect("trades acknowledged and kept", kept, promised);
  fmt::print("leaderboard: {}\n",
             board.ok() ? "as the players' records say" : board.error().message());
  return right && board.ok() ? 0 : 1;
}

}  // namespace arena_example
