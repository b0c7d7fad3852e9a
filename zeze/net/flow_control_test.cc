// Tests of connections that stop reading because their output is full, and go on.

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using testing::Echo;
using testing::HandleEcho;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;

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

}  // namespace
}  // namespace zeze
