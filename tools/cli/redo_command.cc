#include "tools/cli/redo_command.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <istream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigtimedwait is of POSIX.
#include <time.h>    // NOLINT(modernize-deprecated-headers): timespec.

#include "tools/cli/alert_options.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/base/text.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"
#include "zeze/net/tls_settings.h"
#include "zeze/redo/redo_queue_client.h"
#include "zeze/redo/redo_store.h"
#include "zeze/redo/run_task.h"

namespace zeze::cli {

namespace {

constexpr int kFailed = 1;
constexpr int kUsageError = 2;
constexpr std::size_t kLinesAtOnce = 1000;
constexpr std::size_t kBytesAtOnce = std::size_t{8} << 20;
constexpr std::int64_t kProgressEvery = 100'000;
constexpr auto kPatience = std::chrono::seconds(10);

struct RedoArguments {
  std::string store = "redo";
  std::string queue;
  std::string file = "-";
  std::optional<std::int32_t> type;
  std::vector<std::string> servers;
  std::string input;
  std::int64_t task = 0;
  std::size_t count = 10;
  std::string keep_for = "7d";
  std::int64_t keep_max = 1'000'000;
  std::int64_t status_seconds = 10;
  bool until_empty = false;
  bool yes = false;
  std::int64_t first_new = 1;
  bool tls = false;
  std::string tls_authorities;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_name;
};

Result<std::shared_ptr<RedoStore>> OpenStore(const RedoArguments& arguments, bool create) {
  return RedoStore::Open({.directory = arguments.store, .create_if_missing = create});
}

// To look only: the program whose store it is may be running.
Result<std::shared_ptr<RedoStore>> LookAtStore(const RedoArguments& arguments) {
  return RedoStore::Open({.directory = arguments.store, .read_only = true});
}

// Null: not encrypted.
Result<TlsContextPtr> MakeTls(const RedoArguments& arguments) {
  const bool system = arguments.tls && arguments.tls_authorities.empty();
  return ClientTls({.certificate = {"--tls-certificate", arguments.tls_certificate},
                    .key = {"--tls-key", arguments.tls_key},
                    .authorities = {"--tls-authorities (or --tls)",
                                    system ? "system" : arguments.tls_authorities},
                    .peer_name = {"--tls-name", arguments.tls_name}});
}

// A queue that is there: a name with a typing error makes none.
Result<RedoJournal*> FindQueue(RedoStore& store, const RedoArguments& arguments) {
  const std::vector<std::string> names = store.Queues();
  if (std::find(names.begin(), names.end(), arguments.queue) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    return Error(ErrorCode::kNotFound,
                 fmt::format("there is no queue \"{}\" in {}; there are: {}", arguments.queue,
                             arguments.store, known.empty() ? "none" : known));
  }
  return store.OpenQueue(arguments.queue);
}

bool Confirm(const RedoArguments& arguments, const std::string& question) {
  if (arguments.yes) return true;
  std::cout << question << " Type \"yes\" to go on: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (Trim(answer) == "yes") return true;
  std::cout << "Nothing was done.\n";
  return false;
}

Result<RedoServerAddress> ParseServer(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const Result<std::int64_t> port =
      colon == std::string::npos ? Result<std::int64_t>(Error(ErrorCode::kInvalidArgument, ""))
                                 : ParseInteger(text.substr(colon + 1), 1, 65535);
  if (!port.ok() || colon == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is not the address of a server: expected host:port", text));
  }
  return RedoServerAddress{text.substr(0, colon), static_cast<std::uint16_t>(port.value())};
}

// --- Adding ---

// "TYPE PARAMETER", or only the parameter if the command line says the type.
Result<NewRedoTask> ParseLine(std::string_view line, std::int64_t number,
                              std::optional<std::int32_t> type) {
  if (type.has_value()) return NewRedoTask{*type, line};
  const std::size_t blank = line.find(' ');
  const Result<std::int64_t> parsed = ParseInteger(line.substr(0, blank), INT32_MIN, INT32_MAX);
  if (!parsed.ok()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("line {}: \"{}\" does not begin with the type of a task, a number; "
                             "--type N makes whole lines parameters",
                             number, line.substr(0, 40)));
  }
  return NewRedoTask{static_cast<std::int32_t>(parsed.value()),
                     blank == std::string_view::npos ? "" : line.substr(blank + 1)};
}

Result<std::int64_t> AddLines(std::istream& in, std::optional<std::int32_t> type,
                              RedoJournal& queue) {
  std::int64_t number = 0;
  std::int64_t added = 0;
  bool more = true;
  while (more) {
    std::vector<std::string> lines;
    std::size_t bytes = 0;
    std::string line;
    // What is there at once shares a sync; nobody waits for lines that have not come.
    while (lines.size() < kLinesAtOnce && bytes < kBytesAtOnce &&
           (lines.empty() || in.rdbuf()->in_avail() > 0)) {
      more = static_cast<bool>(std::getline(in, line));
      if (!more) break;
      bytes += line.size();
      lines.push_back(std::move(line));
    }
    std::vector<NewRedoTask> tasks;
    for (const std::string& text : lines) {
      ++number;
      if (text.empty()) continue;
      Result<NewRedoTask> task = ParseLine(text, number, type);
      if (!task.ok()) {
        return Error(task.error().code(), fmt::format("{}; {} tasks of the lines before were added",
                                                      task.error().message(), added));
      }
      tasks.push_back(task.value());
    }
    if (Result<std::int64_t> id = queue.AddMany(tasks); !id.ok()) return id.error();
    const std::int64_t before = added;
    added += static_cast<std::int64_t>(tasks.size());
    if (added / kProgressEvery != before / kProgressEvery) {
      std::cerr << fmt::format("{} tasks added\n", added);
    }
  }
  return added;
}

Result<void> AddTasks(const RedoArguments& arguments) {
  Result<std::shared_ptr<RedoStore>> store = OpenStore(arguments, true);
  if (!store.ok()) return store.error();
  Result<RedoJournal*> queue = store.value()->OpenQueue(arguments.queue);
  if (!queue.ok()) return queue.error();
  std::ifstream file;
  if (arguments.file != "-") {
    file.open(arguments.file);
    if (!file) {
      return Error(ErrorCode::kNotFound, fmt::format("cannot read {}", arguments.file));
    }
  }
  Result<std::int64_t> added =
      AddLines(arguments.file == "-" ? std::cin : file, arguments.type, *queue.value());
  if (!added.ok()) return added.error();
  std::cout << fmt::format("{} tasks added, the last one is {}\n", added.value(),
                           queue.value()->added_id());
  return {};
}

// --- Looking ---

std::string Ago(std::int64_t ms) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      SystemClock().SystemNow().time_since_epoch());
  return FormatDuration(now - std::chrono::seconds(ms / 1000)) + " ago";
}

Result<void> PrintQueue(RedoJournal& queue) {
  const RedoPosition at = queue.position();
  std::string oldest;
  if (at.backlog() > 0) {
    Result<std::vector<RedoTask>> tasks = queue.Read(at.confirmed_id, 1, 1);
    if (!tasks.ok()) return tasks.error();
    oldest = fmt::format(", the oldest added {}", Ago(tasks.value().front().record.added_ms));
  }
  Result<std::optional<std::int64_t>> since = queue.KeptSince();
  if (!since.ok()) return since.error();
  std::cout << fmt::format(
      "queue      {}\n"
      "added      {}\n"
      "done       {} (as the server said last; {} saved in its database)\n"
      "backlog    {}{}\n"
      "kept from  {}{}\n",
      queue.name(), at.added_id, at.confirmed_id, at.saved_id, at.backlog(), oldest,
      at.floor_id + 1,
      since.value().has_value() ? fmt::format(", confirmed {}", Ago(*since.value())) : "");
  return {};
}

Result<redo::Answer> AskServer(const RedoArguments& arguments, const std::string& queue,
                               std::int64_t store_id);

// Whose tasks a server has done.
enum class Origin { kThisStore, kOtherStore, kOtherHistory };

// The store must have been opened after the server answered: what the server has done is in it
// then.
Result<Origin> OriginOf(const redo::Answer& answer, RedoJournal& queue) {
  if (answer.store_id != 0 && answer.store_id != queue.store().id()) return Origin::kOtherStore;
  if (answer.task_id > queue.added_id()) return Origin::kOtherHistory;
  Result<std::optional<std::int64_t>> chain = queue.ChainAt(answer.task_id);
  if (!chain.ok()) return chain.error();
  const bool same = answer.chain == 0 || answer.task_id <= 0 || answer.chain == chain.value();
  return same ? Origin::kThisStore : Origin::kOtherHistory;
}

// How far the server is, and whether that is what this store has sent.
Result<void> PrintServer(const RedoArguments& arguments, const redo::Answer& answer,
                         RedoJournal& queue) {
  Result<Origin> origin = OriginOf(answer, queue);
  if (!origin.ok()) return origin.error();
  std::cout << fmt::format(
      "server     {} has done {}{}\n", arguments.servers.front(), answer.task_id,
      origin.value() == Origin::kOtherStore     ? ", of another store"
      : origin.value() == Origin::kOtherHistory ? ", which are not those of this store"
                                                : "");
  return {};
}

// For each queue. The program that owns the store may go on meanwhile.
Result<std::map<std::string, redo::Answer>> AskServer(const RedoArguments& arguments) {
  std::map<std::string, redo::Answer> answers;
  if (arguments.servers.empty()) return answers;
  Result<std::shared_ptr<RedoStore>> store = LookAtStore(arguments);
  if (!store.ok()) return store.error();
  for (const std::string& name : store.value()->Queues()) {
    if (!arguments.queue.empty() && name != arguments.queue) continue;
    Result<redo::Answer> answer = AskServer(arguments, name, store.value()->id());
    if (!answer.ok()) return answer.error();
    answers.emplace(name, std::move(answer).value());
  }
  return answers;
}

Result<void> Status(const RedoArguments& arguments) {
  Result<std::map<std::string, redo::Answer>> answers = AskServer(arguments);
  if (!answers.ok()) return answers.error();
  Result<std::shared_ptr<RedoStore>> store = LookAtStore(arguments);
  if (!store.ok()) return store.error();
  std::vector<std::string> names = store.value()->Queues();
  if (!arguments.queue.empty()) {
    if (Result<RedoJournal*> queue = FindQueue(*store.value(), arguments); !queue.ok()) {
      return queue.error();
    }
    names = {arguments.queue};
  }
  std::cout << fmt::format("store      {} ({:x})\n", arguments.store,
                           static_cast<std::uint64_t>(store.value()->id()));
  for (const std::string& name : names) {
    Result<RedoJournal*> queue = store.value()->OpenQueue(name);
    if (!queue.ok()) return queue.error();
    if (Result<void> printed = PrintQueue(*queue.value()); !printed.ok()) return printed;
    const auto answer = answers.value().find(name);
    if (answer == answers.value().end()) continue;
    if (Result<void> printed = PrintServer(arguments, answer->second, *queue.value());
        !printed.ok()) {
      return printed;
    }
  }
  return {};
}

std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 200)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return bytes.size() > 200 ? text + "..." : text;
}

void PrintTask(const RedoTask& task) {
  std::cout << fmt::format("{}  type {}  added {}  {} bytes{}  {}\n", task.id, task.record.type,
                           Ago(task.record.added_ms), task.record.param.bytes.size(),
                           task.record.skip ? "  (skipped)" : "",
                           Printable(task.record.param.bytes));
}

Result<void> Show(const RedoArguments& arguments) {
  Result<std::shared_ptr<RedoStore>> store = LookAtStore(arguments);
  if (!store.ok()) return store.error();
  Result<RedoJournal*> queue = FindQueue(*store.value(), arguments);
  if (!queue.ok()) return queue.error();
  const RedoPosition at = queue.value()->position();
  const std::int64_t first = arguments.task > 0 ? arguments.task : at.confirmed_id + 1;
  if (first <= at.floor_id) {
    return Error(ErrorCode::kNotFound, fmt::format("task {} is no longer kept, the first one is {}",
                                                   first, at.floor_id + 1));
  }
  Result<std::vector<RedoTask>> tasks =
      queue.value()->Read(first - 1, arguments.count, std::size_t{64} << 20);
  if (!tasks.ok()) return tasks.error();
  for (const RedoTask& task : tasks.value()) PrintTask(task);
  std::cout << fmt::format(
      "{} tasks from {} on, {} behind them\n", tasks.value().size(), first,
      std::max<std::int64_t>(
          at.added_id - first + 1 - static_cast<std::int64_t>(tasks.value().size()), 0));
  return {};
}

// --- Deciding ---

Result<void> Skip(const RedoArguments& arguments) {
  Result<std::shared_ptr<RedoStore>> store = OpenStore(arguments, false);
  if (!store.ok()) return store.error();
  Result<RedoJournal*> queue = FindQueue(*store.value(), arguments);
  if (!queue.ok()) return queue.error();
  Result<std::vector<RedoTask>> tasks = queue.value()->Read(arguments.task - 1, 1, 1);
  if (!tasks.ok()) return tasks.error();
  if (tasks.value().empty()) {
    return Error(ErrorCode::kNotFound, fmt::format("there is no task {}, the last one is {}",
                                                   arguments.task, queue.value()->added_id()));
  }
  PrintTask(tasks.value().front());
  std::cout << "It will not be run: the server sets it aside, and a copy stays in this store.\n";
  if (!Confirm(arguments, "Skip it?")) return {};
  if (Result<void> skipped = queue.value()->Skip(arguments.task); !skipped.ok()) return skipped;
  std::cout << fmt::format("task {} is skipped when it is its turn\n", arguments.task);
  return {};
}

// How far a server is with a queue.
Result<redo::Answer> AskServer(const RedoArguments& arguments, const std::string& queue,
                               std::int64_t store_id) {
  Result<RedoServerAddress> address = ParseServer(arguments.servers.front());
  if (!address.ok()) return address.error();
  const RedoServerAddress& server = address.value();
  Result<TlsContextPtr> tls = MakeTls(arguments);
  if (!tls.ok()) return tls.error();
  IoThreads io({.name = "redo-io"});
  Service service(io, {.name = "RedoQueue", .handshake = HandshakeOptions{}});
  auto connector = service.Connect({.host = server.host,
                                    .port = server.port,
                                    .reconnect = false,
                                    .tls = tls.value(),
                                    .tls_name = arguments.tls_name});
  Result<ConnectionPtr> connection = connector->WaitReady(kPatience);
  if (!connection.ok()) return connection.error();
  const Result<RpcReply<redo::RunTask>> reply = connection.value()->CallAndWait<redo::RunTask>(
      {.queue = queue, .prev_task_id = redo::kOnlyAsk, .store_id = store_id, .adopt = true},
      {.timeout = kPatience});
  service.Stop();
  if (!reply.ok()) return reply.error();
  if (reply.value().result_code != result_code::kErrorRequestId) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{} does not say how far it is with \"{}\": code {}",
                             connector->name(), queue, reply.value().result_code));
  }
  return reply.value().result;
}

Result<void> Adopt(const RedoArguments& arguments) {
  Result<std::shared_ptr<RedoStore>> store = OpenStore(arguments, true);
  if (!store.ok()) return store.error();
  Result<RedoJournal*> queue = store.value()->OpenQueue(arguments.queue);
  if (!queue.ok()) return queue.error();
  Result<redo::Answer> answer = AskServer(arguments, arguments.queue, store.value()->id());
  if (!answer.ok()) return answer.error();
  const RedoPosition at = queue.value()->position();
  Result<Origin> origin = OriginOf(answer.value(), *queue.value());
  if (!origin.ok()) return origin.error();
  // An old server does not say whose tasks it has done.
  if (origin.value() == Origin::kThisStore && answer.value().chain != 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the server has done tasks up to {} of this store: there is nothing "
                             "to adopt",
                             answer.value().task_id));
  }
  std::cout << fmt::format(
      "The server has done tasks up to {} of another store. If this store takes its place, the {} "
      "tasks here get the ids from {} on. What the lost store had and the server has not done is "
      "lost, unless it is added again.\n",
      answer.value().task_id, std::max<std::int64_t>(at.added_id - arguments.first_new + 1, 0),
      answer.value().task_id + 1);
  const std::int64_t old = arguments.first_new - 1 - at.confirmed_id;
  if (old > 0) {
    std::cout << fmt::format(
        "Tasks {} to {}, which this store does not know to be done, were in the copy: the server "
        "has done them. They stay in the store as skipped ones do.\n",
        at.confirmed_id + 1, arguments.first_new - 1);
  }
  if (!Confirm(arguments, "Let this store take its place?")) return {};
  Result<void> adopted =
      queue.value()->Adopt(answer.value().task_id, answer.value().chain, arguments.first_new);
  if (!adopted.ok()) return adopted;
  return PrintQueue(*queue.value());
}

Result<void> Compact(const RedoArguments& arguments) {
  const Result<std::chrono::nanoseconds> keep_for =
      ParseDuration(arguments.keep_for, std::chrono::seconds(1));
  if (!keep_for.ok()) return keep_for.error();
  Result<std::shared_ptr<RedoStore>> store = OpenStore(arguments, false);
  if (!store.ok()) return store.error();
  Result<RedoJournal*> queue = FindQueue(*store.value(), arguments);
  if (!queue.ok()) return queue.error();
  const RedoPosition before = queue.value()->position();
  // As the server said last.
  const auto saved = before.says_saved ? std::optional(before.saved_id) : std::nullopt;
  if (Result<void> known = queue.value()->Confirm(before.confirmed_id, saved); !known.ok()) {
    return known;
  }
  const RedoKeepOptions keep{.keep_for = keep_for.value(), .keep_max = arguments.keep_max};
  while (true) {
    Result<bool> more = queue.value()->Compact(keep);
    if (!more.ok()) return more.error();
    const std::int64_t deleted = queue.value()->position().floor_id - before.floor_id;
    if (!more.value()) {
      std::cout << fmt::format("{} tasks deleted\n", deleted);
      return PrintQueue(*queue.value());
    }
    if (deleted % kProgressEvery < 4096) std::cerr << fmt::format("{} tasks deleted\n", deleted);
  }
}

// --- Sending ---

void PrintStatus(const RedoQueueClient& queue) {
  const RedoStatus status = queue.GetStatus();
  std::cout << fmt::format("{}: {}, done {} of {}, backlog {}, oldest {}{}{}\n",
                           queue.journal().name(), ToString(status.state),
                           status.position.confirmed_id, status.position.added_id,
                           status.position.backlog(),
                           FormatDuration(
                               std::chrono::duration_cast<std::chrono::seconds>(status.oldest_age)),
                           status.trouble.empty() ? "" : "; ", status.trouble)
            << std::flush;
}

Result<void> Send(const RedoArguments& arguments) {
  // Before any thread starts, so that all of them leave the signals to this one. While it reads
  // tasks nobody would look at them: they end it as they are, which loses nothing.
  sigset_t signals;  // NOLINT(misc-include-cleaner): of <signal.h>.
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (arguments.input.empty()) pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Result<std::chrono::nanoseconds> keep_for =
      ParseDuration(arguments.keep_for, std::chrono::seconds(1));
  if (!keep_for.ok()) return keep_for.error();
  RedoQueueClientOptions options{.name = arguments.queue};
  options.keep = {.keep_for = keep_for.value(), .keep_max = arguments.keep_max};
  Result<TlsContextPtr> tls = MakeTls(arguments);
  if (!tls.ok()) return tls.error();
  options.tls = tls.value();
  options.tls_name = arguments.tls_name;
  for (const std::string& text : arguments.servers) {
    Result<RedoServerAddress> server = ParseServer(text);
    if (!server.ok()) return server.error();
    options.servers.push_back(server.value());
  }
  Result<std::shared_ptr<RedoStore>> store = OpenStore(arguments, !arguments.input.empty());
  if (!store.ok()) return store.error();
  if (arguments.input.empty()) {
    if (Result<RedoJournal*> queue = FindQueue(*store.value(), arguments); !queue.ok()) {
      return queue.error();
    }
  }
  Result<std::unique_ptr<RedoQueueClient>> queue = RedoQueueClient::Open(store.value(), options);
  if (!queue.ok()) return queue.error();

  if (!arguments.input.empty()) {
    std::ifstream file;
    if (arguments.input != "-") file.open(arguments.input);
    if (!file && arguments.input != "-") {
      return Error(ErrorCode::kNotFound, fmt::format("cannot read {}", arguments.input));
    }
    Result<std::int64_t> added = AddLines(arguments.input == "-" ? std::cin : file, arguments.type,
                                          queue.value()->journal());
    if (!added.ok()) return added.error();
    std::cout << fmt::format("{} tasks added\n", added.value()) << std::flush;
  }
  const auto period = std::chrono::seconds(arguments.status_seconds);
  while (true) {
    const std::int64_t last = queue.value()->journal().added_id();
    if (arguments.until_empty && queue.value()->WaitDone(last, period).ok()) {
      PrintStatus(*queue.value());
      return {};
    }
    const timespec wait{.tv_sec = arguments.until_empty ? 0 : period.count(), .tv_nsec = 1000};
    const bool ended = sigtimedwait(&signals, nullptr, &wait) > 0;
    PrintStatus(*queue.value());
    if (ended) return {};
  }
}

// --- The command line ---

using Action = Result<void> (*)(const RedoArguments& arguments);

CLI::App* Add(CLI::App& redo, const std::shared_ptr<RedoArguments>& arguments, int& exit_code,
              const std::string& name, const std::string& what, const std::string& example,
              Action action) {
  CLI::App* command = redo.add_subcommand(name, what);
  command->footer("Example:\n  " + example);
  command->add_option("--store", arguments->store, "The directory of the store")
      ->capture_default_str();
  CLI::Option* queue =
      command->add_option("--queue", arguments->queue, "The queue, as the server knows it");
  if (name != "status") queue->required();
  command->callback([arguments, &exit_code, action, name] {
    const Result<void> done = action(*arguments);
    if (done.ok()) return;
    std::cerr << "zeze redo " << name << ": " << done.error().message() << '\n';
    exit_code = done.error().code() == ErrorCode::kNotFound ? kUsageError : kFailed;
  });
  return command;
}

void AddKeepOptions(CLI::App& command, const std::shared_ptr<RedoArguments>& arguments) {
  command
      .add_option("--keep-for", arguments->keep_for,
                  "How long done tasks are kept, for a server that is set back")
      ->capture_default_str();
  command.add_option("--keep-max", arguments->keep_max, "How many of them at most")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX))
      ->capture_default_str();
}

void AddTlsOptions(CLI::App& command, const std::shared_ptr<RedoArguments>& arguments) {
  command.add_flag("--tls", arguments->tls,
                   "Speak encrypted; the authorities of the system sign the certificate of the "
                   "server");
  AddTextOption(command, "--tls-authorities", arguments->tls_authorities,
                "Speak encrypted; these sign the certificate of the server (PEM)");
  CLI::Option* certificate =
      AddTextOption(command, "--tls-certificate", arguments->tls_certificate,
                    "The certificate to show to a server that wants one (PEM)");
  CLI::Option* key =
      AddTextOption(command, "--tls-key", arguments->tls_key, "The key of the certificate (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  AddTextOption(command, "--tls-name", arguments->tls_name,
                "The name in the certificate of the server (default: its host)");
}

void AddTypeOption(CLI::App& command, const std::shared_ptr<RedoArguments>& arguments) {
  command.add_option("--type", arguments->type,
                     "Of all tasks: whole lines are parameters. Without it each line begins with "
                     "the type, a number, and a blank");
}

void AddAddCommand(CLI::App& redo, const std::shared_ptr<RedoArguments>& arguments,
                   int& exit_code) {
  CLI::App* add = Add(redo, arguments, exit_code, "add", "Add tasks from a file or standard input",
                      "zeze redo add --queue recharge --type 1 orders.txt", AddTasks);
  add->add_option("file", arguments->file, "One task in each line; -: standard input")
      ->capture_default_str();
  AddTypeOption(*add, arguments);
}

void AddSendCommand(CLI::App& redo, const std::shared_ptr<RedoArguments>& arguments,
                    int& exit_code) {
  CLI::App* send =
      Add(redo, arguments, exit_code, "send", "Send what is there, and go on until a signal",
          "zeze redo send --queue recharge --server 10.0.0.7:5020 --until-empty", Send);
  send->add_option("--server", arguments->servers, "host:port; several: tried in turn")->required();
  send->add_option("--input", arguments->input,
                   "Add the lines of this file, too, while sending; -: standard input");
  AddTypeOption(*send, arguments);
  send->add_flag("--until-empty", arguments->until_empty, "End when everything is done");
  send->add_option("--status-seconds", arguments->status_seconds, "How often it says how far it is")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  AddKeepOptions(*send, arguments);
  AddTlsOptions(*send, arguments);
}

void AddLookCommands(CLI::App& redo, const std::shared_ptr<RedoArguments>& arguments,
                     int& exit_code) {
  CLI::App* status = Add(redo, arguments, exit_code, "status",
                         "Show how far the queues of a store are, also while a program uses it",
                         "zeze redo status --store /var/lib/recharge/redo", Status);
  status->add_option("--server", arguments->servers, "host:port; ask it, too, how far it is")
      ->expected(1);
  AddTlsOptions(*status, arguments);

  CLI::App* show = Add(redo, arguments, exit_code, "show", "Show tasks, first what waits",
                       "zeze redo show --queue recharge --count 3", Show);
  show->add_option("--task", arguments->task, "The first one (default: the first that waits)")
      ->check(CLI::Range(std::int64_t{1}, INT64_MAX));
  show->add_option("--count", arguments->count, "How many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

void AddDecideCommands(CLI::App& redo, const std::shared_ptr<RedoArguments>& arguments,
                       int& exit_code) {
  CLI::App* skip =
      Add(redo, arguments, exit_code, "skip", "Let a task not be run: the server sets it aside",
          "zeze redo skip --queue recharge --task 4711", Skip);
  skip->add_option("--task", arguments->task, "Its id")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, INT64_MAX));
  skip->add_flag("--yes", arguments->yes, "Do not ask");

  CLI::App* adopt =
      Add(redo, arguments, exit_code, "adopt", "Let a new store take the place of one that is lost",
          "zeze redo adopt --queue recharge --server 10.0.0.7:5020", Adopt);
  adopt->add_option("--server", arguments->servers, "host:port")->required()->expected(1);
  adopt
      ->add_option("--first-new", arguments->first_new,
                   "For a store that was restored from a copy: the first task that was added after "
                   "the copy was made (zeze redo show says when tasks were added)")
      ->check(CLI::Range(std::int64_t{1}, INT64_MAX));
  AddTlsOptions(*adopt, arguments);
  adopt->add_flag("--yes", arguments->yes, "Do not ask");

  CLI::App* compact =
      Add(redo, arguments, exit_code, "compact", "Delete done tasks that need not be kept any more",
          "zeze redo compact --queue recharge --keep-for 1d", Compact);
  AddKeepOptions(*compact, arguments);
}

}  // namespace

void AddRedoCommand(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<RedoArguments>();
  CLI::App* redo = app.add_subcommand(
      "redo", "Hand tasks to a server, each exactly once: add, send, look, decide");
  redo->require_subcommand(1);
  redo->footer(
      "Examples:\n"
      "  zeze redo add --queue recharge orders.txt         each line: TYPE PARAMETER\n"
      "  zeze redo send --queue recharge --server 10.0.0.7:5020\n"
      "  tail -F orders | zeze redo send --queue recharge --server 10.0.0.7:5020 --input -\n"
      "  zeze redo status");
  AddAddCommand(*redo, arguments, exit_code);
  AddSendCommand(*redo, arguments, exit_code);
  AddLookCommands(*redo, arguments, exit_code);
  AddDecideCommands(*redo, arguments, exit_code);
}

}  // namespace zeze::cli
