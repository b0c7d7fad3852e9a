#include "tools/cli/admin_command.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "zeze/admin/admin_desk.h"
#include "zeze/admin/audit_log.h"
#include "zeze/admin/operator_key.h"
#include "zeze/admin/operator_list.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/global/service/admin_wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"

namespace zeze::cli {

namespace {

namespace wire = global::wire;

constexpr int kFailed = 1;
constexpr auto kConnectPatience = std::chrono::seconds(5);
constexpr std::uint16_t kDefaultPort = 5002;

struct AdminArguments {
  std::string global = "127.0.0.1:5002";
  std::string key;
  std::string name;
  std::string reason;
  std::string file;
  std::string id;
  std::int32_t server_id = 0;
  bool yes = false;
};

std::string Duration(std::int64_t milliseconds) {
  return milliseconds < 10'000 ? FormatDuration(std::chrono::milliseconds(milliseconds))
                               : FormatDuration(std::chrono::seconds((milliseconds + 500) / 1000));
}

bool Confirm(const AdminArguments& arguments, const std::string& question) {
  if (arguments.yes) return true;
  std::cout << question << " Type \"yes\" to go on: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (Trim(answer) == "yes") return true;
  std::cout << "Nothing was done.\n";
  return false;
}

// An operator at the desk of a Global.
class Desk {
 public:
  static Result<std::unique_ptr<Desk>> Open(const AdminArguments& arguments) {
    std::string host = arguments.global;
    std::int64_t port = kDefaultPort;
    if (const std::size_t colon = host.rfind(':'); colon != std::string::npos) {
      const Result<std::int64_t> parsed = ParseInteger(host.substr(colon + 1), 1, 65535);
      if (!parsed.ok()) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("\"{}\" is not the address of a Global: expected host:port",
                                 arguments.global));
      }
      port = parsed.value();
      host.resize(colon);
    }
    auto desk = std::unique_ptr<Desk>(new Desk());
    auto connector = desk->service_.Connect(
        {.host = host, .port = static_cast<std::uint16_t>(port), .reconnect = false});
    Result<ConnectionPtr> connection = connector->WaitReady(kConnectPatience);
    if (!connection.ok()) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("connecting to the Global at {}: {}", arguments.global,
                               connection.error().message()));
    }
    desk->connection_ = std::move(connection).value();
    return desk;
  }

  // Refusals of Global are errors with its text.
  template <typename Rpc>
  Result<typename Rpc::Result> Ask(const typename Rpc::Argument& argument) {
    const Result<RpcReply<Rpc>> reply = connection_->CallAndWait<Rpc>(argument);
    if (!reply.ok()) return reply.error();
    if (reply.value().outcome != RpcOutcome::kAnswered) {
      return Error(ErrorCode::kUnknownOutcome,
                   "Global did not answer, or ended the connection: is it an older version? "
                   "\"zeze admin list\" shows what it has");
    }
    if (!reply.value().ok()) {
      return Error(ErrorCode::kInvalidArgument,
                   reply.value().result.text.empty()
                       ? fmt::format("refused with code {}", reply.value().result_code)
                       : reply.value().result.text);
    }
    return reply.value().result;
  }

  // Of the request with this id, or whose id begins so.
  Result<wire::AdminListResult::Item> Find(const std::string& id) {
    Result<wire::AdminListResult> list = Ask<wire::AdminList>({});
    if (!list.ok()) return list.error();
    const wire::AdminListResult::Item* found = nullptr;
    for (const wire::AdminListResult::Item& item : list.value().items) {
      if (id.empty() || !item.request.id.starts_with(id)) continue;
      if (found != nullptr) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("several requests begin with \"{}\": give more of it", id));
      }
      found = &item;
    }
    if (found != nullptr) return *found;
    return Error(ErrorCode::kNotFound,
                 fmt::format("there is no request \"{}\"; see \"zeze admin list\"", id));
  }

 private:
  Desk() : io_({.name = "admin-io"}), service_(io_, {.name = "Admin"}) {}

  IoThreads io_;
  Service service_;
  ConnectionPtr connection_;
};

struct Signer {
  std::string name;
  admin::OperatorKey key;
};

Result<Signer> LoadSigner(const AdminArguments& arguments) {
  Result<admin::OperatorKey> key = admin::OperatorKey::Load(arguments.key);
  if (!key.ok()) return key.error();
  std::string name = arguments.name;
  if (name.empty()) name = std::filesystem::path(arguments.key).stem().string();
  return Signer{.name = std::move(name), .key = std::move(key).value()};
}

void Print(const wire::AdminPreviewResult& preview) {
  std::string connection = "none";
  if (!preview.peer.empty()) {
    connection = fmt::format("from {}, heard {} ago", preview.peer, Duration(preview.silent_ms));
  } else {
    connection = fmt::format("none for {}", Duration(preview.silent_ms));
  }
  std::cout << fmt::format(
      "server      {}\n"
      "epoch       {}{}\n"
      "holder      {}\n"
      "connection  {}\n"
      "rights      {} to write, {} to read{}\n",
      preview.request.server_id, preview.request.epoch,
      preview.unfenced ? " (of Zeze 1.6: the database cannot fence it)" : "",
      preview.holder.empty() ? "unknown" : preview.holder, connection, preview.modify,
      preview.share,
      preview.announced ? "" : " (not announced yet since Global's restart: there may be more)");
  if (!preview.live) std::cout << "            they are being taken away already\n";
}

Result<void> Keygen(const AdminArguments& arguments) {
  if (!admin::IsOperatorName(arguments.name)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a name: expected letters, digits and - _ . @", arguments.name));
  }
  const Result<admin::OperatorKey> key = admin::OperatorKey::Generate();
  if (!key.ok()) return key.error();
  const std::string file = arguments.file.empty() ? arguments.name + ".key" : arguments.file;
  if (Result<void> saved = key.value().Save(file); !saved.ok()) return saved;
  std::cerr << "The private key is in " << file
            << ": keep it to yourself. For the file of operators:\n";
  std::cout << arguments.name << ' ' << key.value().public_text() << '\n';
  return {};
}

Result<void> Cleanup(const AdminArguments& arguments) {
  const Result<Signer> signer = LoadSigner(arguments);
  if (!signer.ok()) return signer.error();
  Result<std::unique_ptr<Desk>> desk = Desk::Open(arguments);
  if (!desk.ok()) return desk.error();
  const auto preview = desk.value()->Ask<wire::AdminPreview>({.server_id = arguments.server_id});
  if (!preview.ok()) return preview.error();
  Print(preview.value());
  std::cout << fmt::format(
      "A cleanup takes these rights away. A process that still runs loses what it has not saved, "
      "and ends.\nIt needs {} approvals and is carried out {} after the last.\n",
      preview.value().approvals, Duration(preview.value().delay_ms));
  if (!preview.value().live) {
    return Error(ErrorCode::kConflict, "there is nothing to ask for");
  }
  if (!Confirm(arguments, "Ask for it?")) return {};
  admin::AdminRequest request = preview.value().request;
  if (request.server_id != arguments.server_id) {
    return Error(ErrorCode::kCorrupt, "Global's preview is of another server");
  }
  request.proposer = signer.value().name;
  request.reason = arguments.reason;
  const auto answer = desk.value()->Ask<wire::AdminPropose>(
      {.id = request.id,
       .name = request.proposer,
       .reason = request.reason,
       .signature = signer.value().key.Sign(ApprovalText(request))});
  if (!answer.ok()) return answer.error();
  std::cout << answer.value().text << '\n';
  return {};
}

Result<void> Approve(const AdminArguments& arguments) {
  const Result<Signer> signer = LoadSigner(arguments);
  if (!signer.ok()) return signer.error();
  Result<std::unique_ptr<Desk>> desk = Desk::Open(arguments);
  if (!desk.ok()) return desk.error();
  const auto item = desk.value()->Find(arguments.id);
  if (!item.ok()) return item.error();
  const admin::AdminRequest& request = item.value().request;
  std::cout << DescribeRequest(request) << '\n';
  if (const auto now = desk.value()->Ask<wire::AdminPreview>({.server_id = request.server_id});
      now.ok()) {
    Print(now.value());
  }
  if (!Confirm(arguments, "Approve this request?")) return {};
  const auto answer = desk.value()->Ask<wire::AdminApprove>(
      {.id = request.id,
       .name = signer.value().name,
       .signature = signer.value().key.Sign(ApprovalText(request))});
  if (!answer.ok()) return answer.error();
  std::cout << answer.value().text << '\n';
  return {};
}

Result<void> Cancel(const AdminArguments& arguments) {
  const Result<Signer> signer = LoadSigner(arguments);
  if (!signer.ok()) return signer.error();
  Result<std::unique_ptr<Desk>> desk = Desk::Open(arguments);
  if (!desk.ok()) return desk.error();
  const auto item = desk.value()->Find(arguments.id);
  if (!item.ok()) return item.error();
  const auto answer = desk.value()->Ask<wire::AdminCancel>(
      {.id = item.value().request.id,
       .name = signer.value().name,
       .signature = signer.value().key.Sign(CancellationText(item.value().request))});
  if (!answer.ok()) return answer.error();
  std::cout << answer.value().text << '\n';
  return {};
}

Result<void> List(const AdminArguments& arguments) {
  Result<std::unique_ptr<Desk>> desk = Desk::Open(arguments);
  if (!desk.ok()) return desk.error();
  const auto list = desk.value()->Ask<wire::AdminList>({});
  if (!list.ok()) return list.error();
  if (list.value().items.empty()) std::cout << "There are no requests.\n";
  for (const wire::AdminListResult::Item& item : list.value().items) {
    std::string state(ToString(item.state));
    if (item.state == admin::RequestState::kWaiting) {
      state += fmt::format(" ({} needed), expires in {}", list.value().approvals,
                           Duration(item.remaining_ms));
    } else if (item.state == admin::RequestState::kScheduled) {
      state += fmt::format(", carried out in {}", Duration(item.remaining_ms));
    } else if (!item.outcome.empty()) {
      state += ": " + item.outcome;
    }
    std::cout << DescribeRequest(item.request) << "approved " << item.approved_by << "\nstate    "
              << state << "\n\n";
  }
  return {};
}

Result<void> VerifyLog(const AdminArguments& arguments) {
  const Result<admin::AuditLogSummary> summary = admin::VerifyAuditLog(arguments.file);
  if (!summary.ok()) return summary.error();
  std::cout << fmt::format("{}: {} lines, none changed; the last has the hash {}\n", arguments.file,
                           summary.value().lines, summary.value().hash);
  if (summary.value().torn_bytes > 0) {
    std::cout << fmt::format(
        "{} bytes behind them are the beginning of a line that a crash cut "
        "off; nobody acted on it\n",
        summary.value().torn_bytes);
  }
  return {};
}

using Command = Result<void> (*)(const AdminArguments&);

CLI::App* Add(CLI::App& admin, const std::shared_ptr<AdminArguments>& arguments, int& exit_code,
              const std::string& name, const std::string& about, const std::string& example,
              Command run) {
  CLI::App* command = admin.add_subcommand(name, about);
  command->footer("Example:\n  " + example);
  command->callback([arguments, &exit_code, name, run] {
    const Result<void> done = run(*arguments);
    if (done.ok()) return;
    std::cerr << "zeze admin " << name << ": " << done.error().message() << '\n';
    exit_code = kFailed;
  });
  return command;
}

void AddGlobalOption(CLI::App& command, const std::shared_ptr<AdminArguments>& arguments) {
  command.add_option("--global", arguments->global, "Where Global listens, host:port")
      ->capture_default_str();
}

void AddSigning(CLI::App& command, const std::shared_ptr<AdminArguments>& arguments) {
  AddGlobalOption(command, arguments);
  command.add_option("--key", arguments->key, "Your private key")->required();
  command.add_option("--name", arguments->name,
                     "Your name in the file of operators (default: the key file's, without .key)");
}

}  // namespace

void AddAdminCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<AdminArguments>();
  CLI::App* admin = app.add_subcommand(
      "admin", "For operators: take the rights of a lost server away, with the consent of several");
  admin->require_subcommand(1);
  admin->footer(
      "Examples:\n"
      "  zeze admin keygen --name alice\n"
      "  zeze admin cleanup 7 --key alice.key --reason \"host-b burnt down\"\n"
      "  zeze admin approve 3f2a --key bob.key");

  CLI::App* keygen = Add(*admin, arguments, exit_code, "keygen", "Make a personal key",
                         "zeze admin keygen --name alice >> operators", Keygen);
  keygen->add_option("--name", arguments->name, "Whose key it is")->required();
  keygen->add_option("--out", arguments->file, "The file for it (default: NAME.key)");

  CLI::App* cleanup =
      Add(*admin, arguments, exit_code, "cleanup", "Ask for a server's rights to be taken away",
          "zeze admin cleanup 7 --global 10.0.0.1:5002 --key alice.key --reason \"host is dead\"",
          Cleanup);
  cleanup->add_option("server", arguments->server_id, "The server's id")
      ->required()
      ->check(CLI::Range(0, INT32_MAX));
  AddSigning(*cleanup, arguments);
  cleanup->add_option("--reason", arguments->reason, "For the others and the audit log");
  cleanup->add_flag("--yes", arguments->yes, "Do not ask");

  CLI::App* approve = Add(*admin, arguments, exit_code, "approve", "Approve a request of another",
                          "zeze admin approve 3f2a --key bob.key", Approve);
  approve->add_option("request", arguments->id, "Its id, or the beginning of it")->required();
  AddSigning(*approve, arguments);
  approve->add_flag("--yes", arguments->yes, "Do not ask");

  CLI::App* cancel = Add(*admin, arguments, exit_code, "cancel", "Cancel a request, alone",
                         "zeze admin cancel 3f2a --key carol.key", Cancel);
  cancel->add_option("request", arguments->id, "Its id, or the beginning of it")->required();
  AddSigning(*cancel, arguments);

  CLI::App* list = Add(*admin, arguments, exit_code, "list", "Show open and recent requests",
                       "zeze admin list --global 10.0.0.1:5002", List);
  AddGlobalOption(*list, arguments);

  CLI::App* verify =
      Add(*admin, arguments, exit_code, "verify-log", "Check that an audit log was not changed",
          "zeze admin verify-log /var/lib/zeze/audit.log", VerifyLog);
  verify->add_option("file", arguments->file, "The audit log")->required();
}

}  // namespace zeze::cli
