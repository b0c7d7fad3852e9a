// OfflineBook: when a server is gone, exactly one other server is asked to take over what it left.
//
//   book.Register(now, session, {.server_id = 7, .notify_id = "Timer", .serial = 3});
//   book.Close(now, session, services);   // The connection broke: wait for it to come back,
//   book.Tick(now);                       // then SendOfflineNotify to somebody.
//
// Without I/O, threads or clocks.

#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

struct OfflineOptions {
  // From the loss of a connection until the server is taken for gone.
  std::chrono::nanoseconds delay = std::chrono::seconds(600);

  // Nobody could take over: all are asked again after so long, or when a new one registers.
  std::chrono::nanoseconds retry = std::chrono::seconds(30);

  std::size_t notices_max = 100'000;
  std::size_t watched_max = 10'000;   // Of one announcement.
  std::size_t notify_ids_max = 1000;  // That one session registers or announces.
  std::size_t text_bytes_max = 512;
  std::size_t context_bytes_max = 1 << 16;
};

enum class OfflineAnswer : std::uint8_t {
  kTaken,
  kRefused,
  kLost,  // No answer: it may have been taken. The serial protects whoever is asked next.
};

// A notice is bound to a live session; or it waits for its server to come back; or somebody is
// being asked to take it over. It ends when somebody has taken it, or by an orderly end of the
// server. A server has come back when it registers the notice again, or announces itself, or
// registers a service that the lost session had: agents of Zeze 1.6 repeat only that.
class OfflineBook {
 public:
  using Time = std::chrono::nanoseconds;

  // `random` gives any number.
  OfflineBook(OfflineOptions options, RegistryOutput& output, std::function<std::uint64_t()> random)
      : options_(options), output_(output), random_(std::move(random)) {}

  // Fails with kInvalidArgument or kOverloaded; nothing has changed then.
  Result<void> Register(Time now, SessionId session, const OfflineNotice& notice);
  Result<void> Announce(Time now, SessionId session, const Announcement& announcement);

  // An orderly end: nothing is left to take over.
  void NormalClose(SessionId session);

  // `services`: what the session had registered.
  void Close(Time now, SessionId session, const std::vector<ServiceKey>& services);

  // A session has registered a service; `from` had it before, or nobody.
  void OnService(SessionId session, const ServiceKey& service, SessionId from);

  void OnAnswer(Time now, std::uint64_t ask, OfflineAnswer answer);

  void Tick(Time now);

  // Notices of an earlier life; Close follows for each session. kNoSession: of a watched server.
  void Restore(const OfflineNotice& notice, SessionId owner, Time watched_since);

  std::size_t notice_count() const { return records_.size(); }

 private:
  struct Key {
    std::int32_t server_id = 0;
    std::string notify_id;
    SessionId nobody = kNoSession;  // Without a server id: the session stands for it.

    auto operator<=>(const Key&) const = default;
  };
  struct Record {
    OfflineNotice notice;
    SessionId owner = kNoSession;  // Live; else it waits or is being asked for.
    Time due{};
    std::uint64_t ask = 0;
    std::set<SessionId> tried;
    SessionId returned = kNoSession;  // The server has come back while somebody was asked.
    bool overdue = false;             // Everybody has been asked once.
    bool watched = false;             // By others that announced themselves; it never registered.
    std::vector<ServiceKey> services;
  };
  using Records = std::map<Key, Record>;

  static Key KeyOf(const OfflineNotice& notice, SessionId session) {
    return {.server_id = notice.server_id,
            .notify_id = notice.notify_id,
            .nobody = notice.server_id < 0 ? session : kNoSession};
  }
  Result<void> CheckCandidate(SessionId session, const std::string& notify_id) const;
  void AddCandidate(Time now, SessionId session, const std::string& notify_id,
                    std::int32_t server_id);
  void RemoveCandidate(SessionId session);
  bool IsLive(std::int32_t server_id, const std::string& notify_id) const;
  void Returned(Records::value_type& entry, SessionId session);
  void ForgetReturned(SessionId session);
  void Bind(Records::value_type& entry, SessionId session);
  void Unbind(Records::value_type& entry);  // From its session, its time and its services.
  void WaitUntil(Records::value_type& entry, Time due);
  void Ask(Time now, Records::value_type& entry);
  void Erase(Records::iterator at);

  const OfflineOptions options_;
  RegistryOutput& output_;
  const std::function<std::uint64_t()> random_;
  Records records_;
  std::map<SessionId, std::set<Key>> bound_;
  std::set<std::pair<Time, Key>> waiting_;
  std::map<std::uint64_t, Key> asks_;
  std::map<ServiceKey, std::set<Key>> by_service_;  // Of records that wait or are asked for.
  // Who can take over, with its server id.
  std::map<std::string, std::map<SessionId, std::int32_t>> candidates_;
  std::map<SessionId, std::set<std::string>> candidate_for_;
  std::uint64_t last_ask_ = 0;
};

}  // namespace zeze::registry
