#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/app/application.h"
#include "zeze/base/executor.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/components/collections/queue/any_queue.h"
#include "zeze/components/collections/queue/queue.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/registry_agent.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/patient_call.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

// Nodes of cleared queues that one transaction removes.
constexpr std::size_t kNodesInOneStep = 100;

constexpr std::string_view kDelayRemovePrefix = "__GCTableQueue#";

}  // namespace

Queues::Queues() = default;
Queues::~Queues() = default;

Result<void> Queues::CheckName(std::string_view name) {
  if (name.empty()) return Error(ErrorCode::kInvalidArgument, "a queue needs a name");
  if (name.find('@') != std::string_view::npos) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("queue name '{}': '@' is reserved for queues of servers", name));
  }
  if (name.starts_with(kDelayRemovePrefix)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("queue name '{}': names that begin with '{}' are those of DelayRemove",
                             name, kDelayRemovePrefix));
  }
  return {};
}

std::string Queues::NameForServer(std::string_view name, std::int32_t server_id) {
  return fmt::format("{}@{}", name, server_id);
}

std::int64_t Queues::LoadSerial(Transaction& tx, std::string_view name, std::int32_t server_id) {
  const AnyQueue::Root* root = tQueues.Get(tx, NameForServer(name, server_id));
  return root == nullptr ? 0 : root->LoadSerialNo;
}

bool Queues::TakeOver(Transaction& tx, const std::string& name, std::int32_t from,
                      std::int64_t serial, std::int32_t to) {
  const AnyQueue left(*this, NameForServer(name, from));
  if (from == to || LoadSerial(tx, name, from) != serial || left.Size(tx) == 0) return false;
  AnyQueue(*this, NameForServer(name, to)).Append(tx, left);
  return true;
}

Result<AnyQueue> Queues::OpenOfServer(Application& application, const std::string& name,
                                      QueueOptions options) {
  if (Result<void> good = CheckName(name); !good.ok()) return good.error();
  const std::int32_t server_id = application.options().server_id;
  AnyQueue queue(*this, NameForServer(name, server_id), options);
  std::int64_t serial = 0;
  // Saved before others hear of the serial: they compare it with what they find.
  const std::int64_t code = PatientCall(application.engine(), "Queues.Open", [&](Transaction& tx) {
    tx.RequireDurable();
    serial = ++tQueues.GetOrAdd(tx, queue.name())->LoadSerialNo;
    return result_code::kSuccess;
  });
  if (code != result_code::kSuccess) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("queue '{}' cannot be opened: code {}", queue.name(), code));
  }
  if (registry::RegistryAgent* registry = application.registry()) {
    registry->RegisterOffline(
        {.server_id = server_id, .notify_id = "Zeze.Collections.CsQueue." + name, .serial = serial},
        [this, &application, name, server_id](const registry::OfflineNotice& notice) {
          const std::int64_t taken = application.Call("Queues.TakeOver", [&](Transaction& tx) {
            TakeOver(tx, name, notice.server_id, notice.serial, server_id);
            return result_code::kSuccess;
          });
          return taken == result_code::kSuccess ? registry::TakeOver::kTaken
                                                : registry::TakeOver::kRefused;
        });
  }
  return queue;
}

Result<std::size_t> Queues::CollectCleared(Engine& engine) {
  std::size_t sum = 0;
  while (true) {
    std::size_t dropped = 0;
    const std::int64_t code = engine.Call("Queues.Collect", [&](Transaction& tx) {
      dropped = Cleared().DropNodes(tx, kNodesInOneStep);
      return result_code::kSuccess;
    });
    if (code != result_code::kSuccess) {
      return Error(ErrorCode::kUnavailable,
                   fmt::format("nodes of cleared queues were not removed: code {}", code));
    }
    sum += dropped;
    if (dropped < kNodesInOneStep) return sum;
  }
}

void Queues::CollectSoon() {
  Application* application = application_.load();
  if (application == nullptr || collecting_.exchange(true)) return;
  application->scheduler().After(
      {}, Task("Queues.Collect", [this, application] {
        collecting_ = false;  // First: what is cleared from now on is collected by another run.
        if (application_.load() == nullptr) return;
        const Result<std::size_t> collected = CollectCleared(application->engine());
        if (!collected.ok()) ZEZE_LOG_WARNING("{}", collected.error().message());
      }));
}

Result<void> Queues::Start(Application& application) {
  application_ = &application;
  collecting_ = false;
  CollectSoon();
  return {};
}

void Queues::Stop(Application& /*application*/) {
  application_ = nullptr;
}

}  // namespace zeze
