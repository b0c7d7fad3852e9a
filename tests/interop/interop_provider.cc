// A server of a mixed cluster with logins of roles, which sends their words to each other (talk.h).
//
//   zeze_interop_provider --id 1 --database URL --global PORT --registry PORT --directory D
//
// The Java server (PeerProvider) takes the same arguments. It says "ready", and "stopped" when it
// has ended because of the file stop-ID in the directory.

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "tests/cluster/server_program.h"
#include "tests/interop/talk.h"
#include "zeze/app/application.h"
#include "zeze/app/module.h"
#include "zeze/app/session.h"
#include "zeze/arch/online/login.h"
#include "zeze/arch/online/logins.h"
#include "zeze/arch/online/redirect_sender.h"
#include "zeze/arch/online/role_online.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/clock.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::interop {
namespace {

class Talk final : public Module {
 public:
  Talk(arch::RoleOnline& online, std::int32_t server_id) : online_(online), server_id_(server_id) {}

  std::int32_t id() const override { return Say::kDescriptor.module_id; }
  std::string_view name() const override { return "interop.Talk"; }
  std::vector<TableBase*> Tables() override { return {}; }
  std::span<const ProtocolHandler> Handlers() const override {
    static constexpr std::array<ProtocolHandler, 1> kHandlers = {
        ProtocolHandler{.protocol = &Say::kDescriptor, .decode = &Decode}};
    return kHandlers;
  }

 private:
  class Call final : public ProtocolCall {
   public:
    explicit Call(ByteReader& in) { argument_.Decode(in); }
    std::int64_t Run(Module& module, Transaction* tx, Session& session) override {
      result_ = {};
      return static_cast<Talk&>(module).Process(*tx, session, argument_, result_);
    }
    void EncodeResult(ByteWriter& out) const override { result_.Encode(out); }

   private:
    Words argument_;
    Words result_;
  };
  static std::unique_ptr<ProtocolCall> Decode(ByteReader& in) { return std::make_unique<Call>(in); }

  std::int64_t Process(Transaction& tx, Session& session, const Words& words, Words& result) {
    result.control = server_id_;
    if (words.desc == "kick me") {
      session.Kick(Words::ErrorSeeDescription, "as you wish");
      return 0;
    }
    online_.logins().SendAfterCommit<Heard>(tx, words.linksid,
                                            {.linksid = std::stoll(session.context()),
                                             .code = words.code,
                                             .desc = words.desc,
                                             .control = server_id_});
    return 0;
  }

  arch::RoleOnline& online_;
  const std::int32_t server_id_;
};

struct Arguments {
  std::int32_t id = 0;
  std::string database;
  std::uint16_t global = 0;
  std::uint16_t registry = 0;
  std::string directory;
};

void Serve(const Arguments& arguments) {
  arch::RoleOnline online({});
  Talk talk(online, arguments.id);
  ApplicationOptions options{.server_id = arguments.id,
                             .storage = {.url = arguments.database},
                             .globals = {{.host = "127.0.0.1", .port = arguments.global}},
                             .worker_threads = 4,
                             .checkpoint_period = std::chrono::milliseconds(200),
                             .liveness = {.period = std::chrono::seconds(0)}};
  options.registry.emplace().connector = {.host = "127.0.0.1", .port = arguments.registry};
  auto opened = Application::Open("provider", options);
  cluster::CheckOrEnd(opened);
  Application& application = *opened.value();
  application.AddModule(online);
  application.AddModule(talk);
  cluster::CheckOrEnd(application.Start());

  IoThreads io({});
  const std::string prefix = "Game.Server.Module#";
  arch::Redirect redirect(
      application, io, *application.registry(),
      {.name_prefix = prefix, .direct = {.ip = "127.0.0.1"}, .register_modules = false});
  arch::RedirectSender direct(redirect);
  direct.Serve(online);
  cluster::CheckOrEnd(redirect.Start());
  arch::Provider provider(application, io, *application.registry(),
                          {.name_prefix = prefix,
                           .linkd_name = "Game.Linkd",
                           .direct_ip = redirect.links().ip(),
                           .direct_port = redirect.links().port()});
  provider.AddModule(online);
  provider.AddModule(talk);
  provider.OnLinkBroken(
      [&](const arch::LinkAddress& link, const auto&) { online.LinkBroken(link); });
  cluster::CheckOrEnd(provider.Start(false));
  online.Connect(provider.links(), &direct);
  provider.SetReady(true);
  cluster::CheckOrEnd(application.registry()->AwaitSettled(std::chrono::seconds(30)));
  std::cout << "ready\n" << std::flush;

  const std::filesystem::path directory(arguments.directory);
  const std::filesystem::path stop = directory / fmt::format("stop-{}", arguments.id);
  bool saved = false;
  while (!std::filesystem::exists(stop)) {
    if (!saved && std::filesystem::exists(directory / "save")) {
      cluster::CheckOrEnd(application.engine().CheckpointNow());
      std::cout << "saved\n" << std::flush;
      saved = true;
    }
    SystemClock().SleepFor(std::chrono::milliseconds(20));
  }
  provider.Stop();
  redirect.Stop();
  cluster::CheckOrEnd(application.Stop());
  std::cout << "stopped\n" << std::flush;
}

}  // namespace
}  // namespace zeze::interop

int main(int argc, char** argv) {
  zeze::interop::Arguments arguments;
  CLI::App app("A server with logins of a mixed cluster.");
  app.add_option("--id", arguments.id)->required();
  app.add_option("--database", arguments.database)->required();
  app.add_option("--global", arguments.global)->required();
  app.add_option("--registry", arguments.registry)->required();
  app.add_option("--directory", arguments.directory)->required();
  CLI11_PARSE(app, argc, argv);
  zeze::interop::Serve(arguments);
  return 0;
}
