#include "zeze/redo/redo_queue_client.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/redo/internal/redo_sender.h"
#include "zeze/redo/redo_store.h"

namespace zeze {

std::string_view ToString(RedoState state) {
  switch (state) {
    case RedoState::kConnecting:
      return "connecting";
    case RedoState::kSending:
      return "sending";
    case RedoState::kRetrying:
      return "retrying";
    case RedoState::kHalted:
      return "halted";
  }
  return "unknown";
}

Result<std::unique_ptr<RedoQueueClient>> RedoQueueClient::Open(std::shared_ptr<RedoStore> store,
                                                               RedoQueueClientOptions options) {
  if (options.servers.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queue '{}' has no server to send to", options.name));
  }
  if (options.window_max == 0 || options.window_bytes_max == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("redo queue '{}': a window of 0 sends nothing", options.name));
  }
  Result<RedoJournal*> journal = store->OpenQueue(options.name);
  if (!journal.ok()) return journal.error();
  return std::unique_ptr<RedoQueueClient>(new RedoQueueClient(
      std::make_unique<Sender>(std::move(store), *journal.value(), std::move(options))));
}

RedoQueueClient::RedoQueueClient(std::unique_ptr<Sender> sender) : sender_(std::move(sender)) {}

RedoQueueClient::~RedoQueueClient() = default;

Result<std::int64_t> RedoQueueClient::Add(std::int32_t type, std::string_view param) {
  if (Result<void> room = sender_->CheckRoom(); !room.ok()) return room.error();
  return journal().Add(type, param);
}

Result<std::int64_t> RedoQueueClient::AddMany(std::span<const NewRedoTask> tasks) {
  if (Result<void> room = sender_->CheckRoom(); !room.ok()) return room.error();
  return journal().AddMany(tasks);
}

Result<void> RedoQueueClient::WaitDone(std::int64_t id, std::chrono::nanoseconds patience) {
  return sender_->WaitDone(id, patience);
}

RedoStatus RedoQueueClient::GetStatus() const {
  return sender_->GetStatus();
}

RedoJournal& RedoQueueClient::journal() const {
  return sender_->journal();
}

void RedoQueueClient::Retry() {
  sender_->Retry();
}

}  // namespace zeze
