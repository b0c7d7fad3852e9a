// EtcdClient: locks of an etcd server, over gRPC, with some clients at a time.
//
//   EtcdClient client(port, 64);
//   double pairs = client.LockPairsPerSecond(seconds);

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zeze::bench {

class EtcdClient {
 public:
  // Takes a lease for each client. Throws std::runtime_error if the server cannot be asked.
  EtcdClient(std::uint16_t port, std::size_t clients);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  // Each client locks a name of its own, unlocks it, and takes the next.
  double LockPairsPerSecond(double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zeze::bench
