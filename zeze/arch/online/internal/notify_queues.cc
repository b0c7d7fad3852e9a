#include "zeze/arch/online/internal/notify_queues.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "Zeze/Builtin/Online.h"
#include "zeze/arch/online/internal/login_kind.h"
#include "zeze/arch/online/login.h"
#include "zeze/base/log.h"
#include "zeze/base/result_code.h"
#include "zeze/messages/notify_hash.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch::internal {

namespace wire = Zeze::Builtin::Online;

template <typename Key>
bool NotifyQueues<Key>::HasRoom(const NotifyQueue& queue, std::size_t bytes) const {
  return queue.Frames.size() < environment_.options.notify_frames_max &&
         static_cast<std::size_t>(queue.Bytes) + bytes <= environment_.options.notify_bytes_max;
}

template <typename Key>
auto NotifyQueues<Key>::Add(Transaction& tx, const Key& key, std::string_view mark,
                            std::string_view frame) -> Added {
  std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record || !record->notify_marks.Contains(std::string(mark))) return {};
  NotifyQueue queue = kind_.GetQueue(tx, key).value_or(NotifyQueue{});
  if (!record->live()) {
    // Nobody keeps it: a later re-login must not look as if nothing had happened.
    if (!queue.Lost) kind_.PutQueue(tx, key, {.Lost = true});
    return {};
  }
  if (!queue.Lost && !HasRoom(queue, frame.size())) {
    if (environment_.options.notify_overflow == NotifyOverflow::kRefuse) {
      return {.code = result_code::kBusy};
    }
    ZEZE_LOG_WARNING("{} does not confirm its {} notifies of {} bytes: it must log in afresh",
                     kind_.Describe(key), queue.Frames.size(), queue.Bytes);
    queue = {.Lost = true};
    kind_.PutQueue(tx, key, queue);
  }
  if (!queue.Lost) {
    queue.Frames.PushBack(Binary{std::string(frame)});
    queue.Bytes += static_cast<std::int64_t>(frame.size());
    kind_.PutQueue(tx, key, queue);
  }
  wire::BReliableNotify notify{.ReliableNotifyIndex = record->notify_index};
  notify.Notifies.PushBack(Binary{std::string(frame)});
  record->notify_index += 1;
  kind_.Put(tx, key, *record);
  return {.frame = kind_.NotifyFrame(notify), .version = record->login_version};
}

template <typename Key>
std::int64_t NotifyQueues<Key>::Confirm(Transaction& tx, const Key& key, std::int64_t index,
                                        std::int64_t hash) {
  const std::int64_t out_of_range =
      kind_.ErrorCode(wire::ResultCodeReliableNotifyConfirmIndexOutOfRange);
  std::optional<LoginRecord> record = kind_.Get(tx, key);
  if (!record) return kind_.ErrorCode(wire::ResultCodeOnlineDataNotFound);
  std::optional<NotifyQueue> queue = kind_.GetQueue(tx, key);
  const auto size = static_cast<std::int64_t>(queue ? queue->Frames.size() : 0);
  const bool whole =
      !(queue && queue->Lost) && record->notify_index - record->notify_confirmed == size;
  if (!whole || index < record->notify_confirmed || index > record->notify_index) {
    return out_of_range;
  }
  // What another kind of server has confirmed is not in the hash.
  const bool proves = hash != 0 && record->notify_hash != 0;
  const bool unproven = queue && queue->Unproven;
  if (unproven && !proves) return out_of_range;
  if (index == record->notify_confirmed && !unproven) {
    return proves && hash != record->notify_hash ? out_of_range : result_code::kSuccess;
  }
  for (; record->notify_confirmed < index; ++record->notify_confirmed) {
    const std::string& frame = queue->Frames.front().bytes;
    if (record->notify_hash != 0) {
      record->notify_hash = ExtendNotifyHash(record->notify_hash, frame);
    }
    queue->Bytes -= static_cast<std::int64_t>(frame.size());
    queue->Frames.Erase(0);
  }
  // The transaction that is refused changes nothing.
  if (proves && hash != record->notify_hash) return out_of_range;
  queue->Unproven = false;
  kind_.Put(tx, key, *record);
  if (queue->Frames.empty()) {
    kind_.RemoveQueue(tx, key);
  } else {
    kind_.PutQueue(tx, key, *queue);
  }
  return result_code::kSuccess;
}

template <typename Key>
std::optional<std::string> NotifyQueues<Key>::Rest(Transaction& tx, const Key& key) {
  const std::optional<LoginRecord> record = kind_.Get(tx, key);
  const std::optional<NotifyQueue> queue = kind_.GetQueue(tx, key);
  if (!record || !queue || queue->Frames.empty()) return std::nullopt;
  return kind_.NotifyFrame(
      {.Notifies = queue->Frames, .ReliableNotifyIndex = record->notify_confirmed});
}

template class NotifyQueues<AccountKey>;
template class NotifyQueues<RoleId>;

}  // namespace zeze::arch::internal
