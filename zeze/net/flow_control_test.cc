// Tests of connections that stop reading because their output is full, and go on.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "zeze/base/executor.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using testing::Counter;
using testing::Echo;
using testing::HandleEcho;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using testing::Note;

// Beyond half of its output a connection is not read from. Whichever thread writes it out, reading
// goes on, also if the socket took everything at once.
TEST(FlowControl, ReadsOnWhoeverHasWrittenTheOutput) {
  for (const bool from_caller : {false, true}) {
    IoThreads io({});
    Service server(io, {.name = "server"});
    HandleEcho(server);
    Service client(io,
                   {.name = "client", .output_bytes_max = 100000, .send_from_caller = from_caller});
    const ConnectionPtr connection = MustConnect(client, MustListen(server));
    const std::string text(60000, 'x');
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(MustEcho(*connection, text) == text) << "round " << i;
    }
  }
}

// Holds a network thread until the end.
class Held {
 public:
  explicit Held(IoThreads& io) {
    io.Post(Task("wait for the test", [counters = counters_] {
      counters->held.Add();
      counters->released.WaitFor(1);
    }));
    EXPECT_TRUE(counters_->held.WaitFor(1));
  }
  ~Held() { counters_->released.Add(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  // The thread that is let go may still look at them.
  struct Counters {
    Counter held;
    Counter released;
  };
  const std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
};

// Both sides have more than a half of their output waiting before either reads: who stops reading
// then waits for the other one, which has stopped as well. It is enough that one reads on.
TEST(FlowControl, OfTwoFullSidesOneReadsOn) {
  // So much that what sockets take makes no difference.
  constexpr std::size_t kOutput = 4 << 20;
  constexpr int kMessages = 10;
  const std::string text(kOutput * 9 / 10 / kMessages, 'x');
  struct Case {
    bool server_reads_always;
    bool client_reads_always;
  };
  for (const Case& one : {Case{false, false}, {true, false}, {false, true}, {true, true}}) {
    IoThreads server_io({.name = "server-io"});
    IoThreads client_io({.name = "client-io"});
    ServiceOptions options{
        .name = "server",
        .socket = {.send_buffer_bytes = 64 << 10, .receive_buffer_bytes = 64 << 10},
        .output_bytes_max = kOutput,
        .read_always = one.server_reads_always,
        .write_stall_timeout = std::chrono::seconds(60)};
    // Who waits for ever is found after some time.
    const bool stuck = !one.server_reads_always && !one.client_reads_always;
    if (stuck) options.write_stall_timeout = std::chrono::milliseconds(500);
    Service server(server_io, options);
    options.name = "client";
    options.read_always = one.client_reads_always;
    Service client(client_io, options);
    Counter opened;
    Counter server_got;
    Counter client_got;
    Counter closed;
    ConnectionPtr accepted;
    server.OnOpen([&](const ConnectionPtr& connection) {
      accepted = connection;
      opened.Add();
    });
    client.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
    server.Handle<Note>([&](const Message<Note>&) { server_got.Add(); });
    client.Handle<Note>([&](const Message<Note>&) { client_got.Add(); });
    const ConnectionPtr connection = MustConnect(client, MustListen(server), {.reconnect = false});
    ASSERT_TRUE(opened.WaitFor(1));
    {
      const Held server_held(server_io);
      const Held client_held(client_io);
      for (int i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(accepted->Send<Note>({text}).ok());
        ASSERT_TRUE(connection->Send<Note>({text}).ok());
      }
    }
    if (stuck) {
      EXPECT_TRUE(closed.WaitFor(1));
    } else {
      EXPECT_TRUE(server_got.WaitFor(kMessages));
      EXPECT_TRUE(client_got.WaitFor(kMessages));
    }
    accepted = nullptr;
    server.Stop();
    client.Stop();
  }
}

}  // namespace
}  // namespace zeze
