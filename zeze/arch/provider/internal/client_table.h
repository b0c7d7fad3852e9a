// ClientTable: the clients of one connection to a gateway, as far as they have sent something.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

#include "zeze/arch/provider/internal/messages.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/serialize/binary.h"

namespace zeze::arch::internal {

struct Client {
  std::shared_ptr<ProviderSession> session;
  std::uint32_t last_used = 0;            // The sweep before which it was seen.
  std::atomic<std::size_t> requests = 0;  // That wait or run. The only part for all threads.
};
using ClientPtr = std::shared_ptr<Client>;

// Messages of a client that bring nothing new about it share one session. Clients that leave
// without a word are swept out: never more than twice as many entries as were used lately.
//
// Of one thread.
class ClientTable {
 public:
  ClientTable(Links& links, std::string link_name)
      : links_(links), link_name_(std::move(link_name)) {}

  const ClientPtr& Find(const DispatchView& message) {
    ClientPtr& client = clients_[message.link_sid];
    if (client == nullptr) {
      if (clients_.size() > sweep_at_) {
        Sweep(message.link_sid);
        return Find(message);
      }
      client = std::make_shared<Client>();
    }
    client->last_used = sweep_;
    if (client->session == nullptr || !Same(*client->session, message)) {
      client->session = std::make_shared<ProviderSession>(
          links_,
          ProviderSession::State{.address = {link_name_, message.link_sid},
                                 .account = std::string(message.account),
                                 .context = std::string(message.context),
                                 .context_bytes = Binary{std::string(message.context_bytes)},
                                 .online_set_name = std::string(message.online_set_name)});
    }
    return client;
  }

  void Erase(std::int64_t sid) { clients_.erase(sid); }
  std::size_t size() const { return clients_.size(); }

 private:
  static constexpr std::size_t kSweepMin = 4096;

  static bool Same(const ProviderSession& session, const DispatchView& message) {
    return session.account() == message.account && session.context() == message.context &&
           session.context_bytes().bytes == message.context_bytes &&
           session.online_set_name() == message.online_set_name;
  }

  void Sweep(std::int64_t new_sid) {
    boost::unordered::erase_if(clients_, [this, new_sid](const auto& entry) {
      if (entry.first == new_sid) return false;
      return entry.second->last_used != sweep_ && entry.second->requests == 0;
    });
    ++sweep_;
    sweep_at_ = std::max(kSweepMin, 2 * clients_.size());
  }

  Links& links_;
  const std::string link_name_;
  boost::unordered_flat_map<std::int64_t, ClientPtr> clients_;
  std::size_t sweep_at_ = kSweepMin;
  std::uint32_t sweep_ = 0;
};

}  // namespace zeze::arch::internal
