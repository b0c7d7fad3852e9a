#include "server.h"

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/core.h>

#include "game.h"
#include "players.h"
#include "zeze/app/application.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/module_binds.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/base/scheduler.h"
#include "zeze/base/stop_signals.h"
#include "zeze/config/config.h"
#include "zeze/net/io_threads.h"

namespace arena_example {

namespace {

constexpr const char* kNamePrefix = "arena.Server.Module#";

int Fail(const zeze::Error& error) {
  fmt::print(stderr, "arena: {}\n", error.message());
  return 1;
}

}  // namespace

int Serve(const std::string& config_file, const std::string& binds_file) {
  zeze::StopSignals signals;  // Before any thread.
  auto binds = zeze::arch::ModuleBinds::Load(binds_file);
  if (!binds.ok()) return Fail(binds.error());

  auto config = zeze::Config::Load(config_file);
  if (!config.ok()) return Fail(config.error());
  auto game_options = GameOptions::FromConfig(config.value());
  if (!game_options.ok()) return Fail(game_options.error());
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return Fail(options.error());
  Game game(game_options.value());
  auto opened = zeze::Application::Open("arena", options.value());
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
  game.AddTo(application);
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());

  zeze::IoThreads io({});
  zeze::arch::Redirect redirect(
      application, io, *application.registry(),
      {.name_prefix = kNamePrefix, .direct = {.ip = "127.0.0.1"}, .register_modules = false});
  redirect.AddModule(game.maps);
  if (auto started = redirect.Start(); !started.ok()) return Fail(started.error());

  zeze::arch::Provider provider(application, io, *application.registry(),
                                {.name_prefix = kNamePrefix,
                                 .linkd_name = "arena.Linkd",
                                 .direct_ip = redirect.links().ip(),
                                 .direct_port = redirect.links().port(),
                                 .binds = binds.value()});
  provider.AddModule(game.players);
  provider.AddModule(game.board);
  provider.AddModule(game.maps);
  provider.AddModule(game.world);
  provider.AddModule(game.buffs);
  provider.AddModule(game.mails);
  provider.AddModule(game.online);
  provider.OnLinkBroken([&](const zeze::arch::LinkAddress& address, const auto& broken) {
    game.maps.Leave(RoleOf(broken.account), address);
    game.online.LinkBroken(address);
  });
  game.world.Connect(application, redirect);
  if (auto started = provider.Start(false); !started.ok()) return Fail(started.error());
  game.maps.Connect(provider.links());
  game.online.Connect(provider.links());
  game.mails.Connect(game.online.logins());
  game.buffs.Connect(game.online.logins());
  provider.SetReady(true);
  zeze::ScheduledTask views = application.scheduler().Every(
      std::chrono::milliseconds(500), zeze::Task("send views", [&] { game.maps.SendViews(); }));
  fmt::print("server {} is ready\n", application.options().server_id);
  std::fflush(stdout);

  signals.Wait();
  views.Cancel();
  provider.Stop();
  redirect.Stop();
  const auto stopped = application.Stop();
  fmt::print("moves out of order: {}\n", game.maps.disorder_count());
  if (!stopped.ok()) return Fail(stopped.error());
  return game.maps.disorder_count() == 0 ? 0 : 1;
}

}  // namespace arena_example
