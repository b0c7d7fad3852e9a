// DatagramSocket: sends and receives UDP datagrams on a network thread.
//
//   Result<std::shared_ptr<DatagramSocket>> socket = DatagramSocket::Open(
//       io, {.port = 5001}, [](DatagramSocket& socket, std::string_view bytes,
//                              const NetAddress& from) { socket.Send(bytes, from); });
//
// Whoever receives a datagram knows nothing about its sender: answer nothing that is much larger.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"

namespace zeze {

struct DatagramOptions {
  std::string ip = {};     // Empty: every address of the machine.
  std::uint16_t port = 0;  // 0: any; see DatagramSocket::address.

  // Longer datagrams are dropped without being looked at.
  std::size_t bytes_max = 1472;
};

// Thread-safe.
class DatagramSocket {
 public:
  // On the first network thread; it must not wait. The bytes are gone when it returns.
  using Handler =
      std::function<void(DatagramSocket& socket, std::string_view bytes, const NetAddress& from)>;

  // Fails with kInUse if somebody has the port, else with kUnavailable or kInvalidArgument.
  static Result<std::shared_ptr<DatagramSocket>> Open(IoThreads& io, const DatagramOptions& options,
                                                      Handler handler);

  DatagramSocket() = default;
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;
  virtual ~DatagramSocket() = default;

  // Where it receives, with the port that the system chose.
  virtual const NetAddress& address() const = 0;

  // At once or not at all; a datagram may be lost on its way.
  virtual void Send(std::string_view bytes, const NetAddress& to) = 0;

  // The handler does not run any more when this returns, unless called from a network thread.
  virtual void Close() = 0;
};

}  // namespace zeze
