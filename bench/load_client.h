// LoadClient: one thread, one epoll, some connections, for any server: so that what differs between
// two figures is the server.
//
//   LoadClient client(port, 8, conversation);
//   Load load = client.Run(seconds);          // load.done / load.seconds
//   double p50 = client.Latency(seconds);     // One connection with one request at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeze::bench {

// What is said on the connections. Throws std::runtime_error when the server says something wrong.
class Conversation {
 public:
  virtual ~Conversation() = default;

  // The first bytes of a connection.
  virtual void Begin(std::size_t connection, std::string& out) = 0;

  // Takes whole answers from the front of what has come, appends what is to be said next, counts
  // what is done.
  virtual void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
                       std::uint64_t& done) = 0;
};

struct Load {
  std::uint64_t done = 0;
  double seconds = 0;

  double per_second() const { return static_cast<double>(done) / seconds; }
};

class LoadClient {
 public:
  LoadClient(std::uint16_t port, std::size_t connections, Conversation& conversation);
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;
  ~LoadClient();

  // What is under way at the end stays so, and goes on with the next call.
  Load Run(double seconds);

  // Until so many more are done.
  Load RunUntil(std::uint64_t done);

  // Seconds from a request to its answer, for a client that does nothing in between.
  std::vector<double> Latencies(double seconds);

 private:
  struct Connection {
    int socket = -1;
    std::string rest = {};  // Of an answer that has not come whole.
  };

  std::uint64_t ReadOnce(int timeout_ms);
  void Send(Connection& connection);

  Conversation& conversation_;
  std::vector<Connection> connections_;
  std::vector<char> buffer_;
  std::string out_;
  int poll_ = -1;
};

// Keeps the caller (process 0), or another process with all its threads, on one core.
void PinProcess(int process, int core);
void UnpinProcess(int process);

}  // namespace zeze::bench
