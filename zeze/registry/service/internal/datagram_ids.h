// DatagramIds: asks a service manager for ids of 128 bits, over UDP.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/datagram_socket.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"
#include "zeze/registry/messages.h"
#include "zeze/registry/service/wire.h"

namespace zeze::registry {

// Thread-safe.
class DatagramIds {
 public:
  explicit DatagramIds(IoThreads& io);
  ~DatagramIds();
  DatagramIds(const DatagramIds&) = delete;
  DatagramIds& operator=(const DatagramIds&) = delete;

  // Asks again and again while nothing comes; answers that are lost burn ids. Waits: not on network
  // threads.
  Result<IdBlock> Allocate(const NetAddress& manager, const std::string& name, std::uint32_t count,
                           std::chrono::nanoseconds timeout);

 private:
  Result<std::shared_ptr<DatagramSocket>> Socket();
  void OnDatagram(std::string_view bytes, const NetAddress& from);

  struct Waiting {
    NetAddress manager;  // Nobody else may answer.
    std::optional<wire::DatagramAnswer> answer;
  };

  IoThreads& io_;
  Mutex mutex_;
  CondVar answered_;
  std::shared_ptr<DatagramSocket> socket_ ZEZE_GUARDED_BY(mutex_);
  // Begins anywhere, so that an answer cannot be guessed.
  std::int64_t last_session_ ZEZE_GUARDED_BY(mutex_);
  std::map<std::int64_t, Waiting> waiting_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::registry
