// Tests of SocketPoller, and of connections for which each piece of news comes once.

#include "zeze/net/internal/socket_poller.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/internal/tcp_socket.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {
namespace {

using testing::Echo;
using testing::HandleEcho;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using testing::RawClient;

struct Pair {
  Pair() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = std::make_unique<SocketDescriptor>(ends[0]);
    theirs = std::make_unique<SocketDescriptor>(ends[1]);
  }
  void Say() const { EXPECT_EQ(::send(theirs->get(), "x", 1, 0), 1); }

  std::unique_ptr<SocketDescriptor> ours;
  std::unique_ptr<SocketDescriptor> theirs;
};

class Recorder final : public SocketOwner {
 public:
  void OnSocket(std::uint32_t news) override {
    seen.push_back(news);
    if (act) act();
  }

  std::vector<std::uint32_t> seen;
  std::function<void()> act;
};

TEST(SocketPoller, TellsEachPieceOfNewsOnce) {
  SocketPoller poller;
  const Pair pair;
  const auto owner = std::make_shared<Recorder>();
  const SocketPoller::Ticket ticket = poller.Watch(pair.ours->get(), owner).value();
  EXPECT_TRUE(poller.Poll()) << "there is room to write";
  EXPECT_FALSE(poller.Poll());
  pair.Say();
  EXPECT_TRUE(poller.Poll());
  EXPECT_FALSE(poller.Poll()) << "although nobody has read it";
  pair.Say();
  EXPECT_TRUE(poller.Poll());
  pair.theirs->Close();
  EXPECT_TRUE(poller.Poll());
  ASSERT_EQ(owner->seen.size(), 4u);
  EXPECT_EQ(owner->seen[0], EPOLLOUT);
  EXPECT_EQ(owner->seen[1], EPOLLIN | EPOLLOUT);
  EXPECT_NE(owner->seen[3] & EPOLLRDHUP, 0u);
  poller.Unwatch(ticket, pair.ours->get());
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(SocketPoller, NewsIsNotForWhoeverGetsThePlaceOfAnOwnerThatHasLeft) {
  SocketPoller poller;
  const Pair first;
  const Pair second;
  const Pair third;
  const auto leaving = std::make_shared<Recorder>();
  const auto other = std::make_shared<Recorder>();
  const auto successor = std::make_shared<Recorder>();
  const SocketPoller::Ticket first_ticket = poller.Watch(first.ours->get(), leaving).value();
  const SocketPoller::Ticket second_ticket = poller.Watch(second.ours->get(), other).value();
  poller.Poll();
  first.Say();
  second.Say();
  // Whichever is told first takes the other one's place away.
  const auto replace = [&](SocketPoller::Ticket ticket, const Pair& pair) {
    leaving->act = other->act = nullptr;
    poller.Unwatch(ticket, pair.ours->get());
    EXPECT_TRUE(poller.Watch(third.ours->get(), successor).ok());
  };
  leaving->act = [&] { replace(second_ticket, second); };
  other->act = [&] { replace(first_ticket, first); };
  EXPECT_TRUE(poller.Poll());
  EXPECT_EQ(leaving->seen.size() + other->seen.size(), 3u) << "one of them was told of the byte";
  EXPECT_TRUE(successor->seen.empty());
  EXPECT_TRUE(poller.Poll());
  EXPECT_EQ(successor->seen.size(), 1u) << "of its own room";
}

TEST(SocketPoller, WhatIsNoSocketIsAnError) {
  SocketPoller poller;
  const Result<SocketPoller::Ticket> ticket = poller.Watch(-1, std::make_shared<Recorder>());
  ASSERT_FALSE(ticket.ok());
  EXPECT_NE(ticket.error().message().find("cannot be watched"), std::string::npos);
}

// The end of the input comes with the last of it, and no news comes of it later.
TEST(ConnectionNews, WhatWasSaidBeforeTheEndIsHeardAndSoIsTheEnd) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  testing::Counter heard;
  testing::Counter closed;
  server.Handle<Echo>([&heard](const Request<Echo>&) { heard.Add(); });
  server.OnClose([&closed](const ConnectionPtr&, const Error&) { closed.Add(); });
  const NetAddress address = MustListen(server);
  constexpr int kClients = 200;
  for (int i = 0; i < kClients; ++i) {
    RawClient client(address);
    ASSERT_TRUE(client.Send(RawClient::RequestFrame<Echo>(1, {"last words"})));
  }
  EXPECT_TRUE(heard.WaitFor(kClients));
  EXPECT_TRUE(closed.WaitFor(kClients));
}

// More than the loop's buffer in one piece: the rest is read without news of it.
TEST(ConnectionNews, ReadsWhatDoesNotFitIntoTheBufferAtOnce) {
  IoThreads io({.read_buffer_bytes = 4096});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));
  for (const std::size_t size : {4096u, 8192u, 100'000u, 1'000'000u}) {
    const std::string text(size, 'x');
    EXPECT_TRUE(MustEcho(*connection, text) == text) << size;
  }
}

// An answer that may wait leaves without anything to leave with, and in order with others.
TEST(ConnectionNews, AnswersThatMayWaitDoNotWaitLong) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.HandleRaw(Echo::kDescriptor, [](Connection& connection, const Frame& frame) {
    const auto payload = [&frame](ByteWriter& out) { out.WriteRaw(frame.payload); };
    return frame.session_id % 3 == 0
               ? connection.SendAnswer(Echo::kDescriptor, frame.session_id, 0, payload)
               : connection.SendAnswerSoon(Echo::kDescriptor, frame.session_id, 0, payload);
  });
  const NetAddress address = MustListen(server);
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, address);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(MustEcho(*connection, "alone"), "alone");
  RawClient raw(address);
  constexpr int kRequests = 100;
  std::string requests;
  for (int i = 1; i <= kRequests; ++i) requests += RawClient::RequestFrame<Echo>(i, {"many"});
  ASSERT_TRUE(raw.Send(requests));
  for (int i = 1; i <= kRequests; ++i) {
    const std::optional<Frame> answer = raw.ReadFrame();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->session_id, i);
  }
}

}  // namespace
}  // namespace zeze::internal
