// Messages and calls of services over real sockets on the loopback interface.

#include "zeze/net/service.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/base/testing/captured_log.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/base/usage_error.h"
#include "zeze/net/testing/echo_protocol.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/testing/service_fixture.h"

namespace zeze {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CapturedLog;
using ::testing::Contains;
using testing::Counter;
using testing::Echo;
using ::testing::ElementsAre;
using testing::HandleEcho;
using ::testing::HasSubstr;
using testing::ManualClock;
using testing::MustConnect;
using testing::MustEcho;
using testing::MustListen;
using testing::Note;
using testing::RawClient;

TEST(Service, AnswersCalls) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));

  EXPECT_EQ(MustEcho(*connection, "hello"), "hello");
  EXPECT_EQ(MustEcho(*connection, std::string(1 << 20, 'x')), std::string(1 << 20, 'x'));
  EXPECT_EQ(server.connection_count(), 1U);
  EXPECT_EQ(server.connections().front()->peer_address(), connection->local_address());
}

TEST(Service, KeepsTheOrderOfAConnectionOnManyThreads) {
  for (const Dispatch dispatch : {Dispatch::kInline, Dispatch::kOrdered}) {
    ThreadPool pool({.thread_count = 4});
    IoThreads io({.thread_count = 2});
    Mutex mutex;
    std::vector<std::string> seen;
    Counter closed;
    Service server(
        io,
        {.name = "server", .dispatch = dispatch, .executor = &pool, .dispatched_messages_max = 16});
    const auto note = [&](const std::string& what) {
      MutexLock lock(mutex);
      seen.push_back(what);
    };
    server.OnOpen([&](const ConnectionPtr&) { note("open"); });
    server.Handle<Note>([&](const Message<Note>& message) { note(message.argument.text); });
    server.OnClose([&](const ConnectionPtr&, const Error&) {
      note("close");
      closed.Add();
    });
    Service client(io, {.name = "client"});
    const ConnectionPtr connection = MustConnect(client, MustListen(server), {.reconnect = false});

    std::vector<std::string> expected = {"open"};
    for (int i = 0; i < 5000; ++i) {
      expected.push_back(std::to_string(i));
      ASSERT_TRUE(connection->Send<Note>({expected.back()}).ok());
    }
    expected.emplace_back("close");
    connection->CloseWhenSent("done");

    ASSERT_TRUE(closed.WaitFor(1));
    MutexLock lock(mutex);
    EXPECT_EQ(seen, expected);
  }
}

TEST(Service, SlipsOfTheSetUpAreRefusedWithASentence) {
  EXPECT_THROW(IoThreads({.thread_count = 0}), UsageError);
  EXPECT_THROW(IoThreads({.read_buffer_bytes = 1}), UsageError);
  IoThreads io({});
  EXPECT_THROW(Service(io, {.name = "s", .dispatch = Dispatch::kOrdered}), UsageError);
  EXPECT_THROW(Service(io, {.name = "s", .frame_bytes_max = 0}), UsageError);
  Service server(io, {.name = "server"});
  server.Handle<Note>([](const Message<Note>&) {});
  EXPECT_THROW(server.Handle<Note>([](const Message<Note>&) {}), UsageError);
  static_cast<void>(MustListen(server));
  EXPECT_THROW(server.Handle<Echo>([](Request<Echo>) {}), UsageError);
  EXPECT_THROW(server.OnOpen([](const ConnectionPtr&) {}), UsageError);
  EXPECT_THROW(server.OnClose([](const ConnectionPtr&, const Error&) {}), UsageError);
}

TEST(Service, LetsOthersAnswerLaterAndCallsBackOverAcceptedConnections) {
  ThreadPool pool({.thread_count = 2});
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([&pool](Request<Echo> request) {
    // Asks the client itself, on another thread, before it answers.
    pool.Post([request = std::move(request)]() mutable {
      Result<RpcReply<Echo>> asked = request.connection()->CallAndWait<Echo>({"back"});
      (void)request.Answer({request.argument().text + asked.value().result.text});
    });
  });
  Service client(io, {.name = "client"});
  client.Handle<Echo>(
      [](Request<Echo> request) { (void)request.Answer({"<" + request.argument().text + ">"}); });
  const ConnectionPtr connection = MustConnect(client, MustListen(server));

  EXPECT_EQ(MustEcho(*connection, "there"), "there<back>");
}

TEST(Service, AnswersForHandlersThatDoNot) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([](Request<Echo> request) {
    if (request.argument().text == "throw") throw std::runtime_error("no luck");
  });
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));

  EXPECT_EQ(MustEcho(*connection, "drop"), "code -11");
  EXPECT_EQ(MustEcho(*connection, "throw"), "code -1");
  EXPECT_THAT(log.lines(), Contains(HasSubstr("zeze.test.Echo threw: no luck")));
}

// A bean that holds itself, so many levels of it.
struct Nest {
  int levels = 0;

  void Encode(ByteWriter& out) const {
    const ByteWriter::BeanScope scope(out);
    int last_id = 0;
    if (levels > 1) {
      out.WriteTag(last_id, 1, TypeCode::kBean);
      Nest{levels - 1}.Encode(out);
    }
    out.WriteEnd();
  }
  void Decode(ByteReader& in) {
    const ByteReader::BeanScope scope(in);
    levels = 1;
    int last_id = 0;
    for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
      Nest inner;
      inner.Decode(in);
      levels += inner.levels;
    }
  }
};

struct NestRpc {
  using Argument = Nest;
  using Result = Nest;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 7, .protocol_id = 1, .full_name = "zeze.test.Nest", .is_rpc = true};
};
struct NestNote {
  using Argument = Nest;
  static constexpr ProtocolDescriptor kDescriptor{
      .module_id = 7, .protocol_id = 2, .full_name = "zeze.test.NestNote"};
};

TEST(Service, DoesNotSendWhatThePeerCouldNotRead) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  // Answers with more levels than it was asked with.
  server.Handle<NestRpc>(
      [](Request<NestRpc> request) { (void)request.Answer({request.argument().levels + 1}); });
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));
  const auto ask = [&](int levels) { return connection->CallAndWait<NestRpc>({levels}); };

  EXPECT_EQ(ask(127).value().result.levels, 128);
  const Result<RpcReply<NestRpc>> refused = ask(129);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("zeze.test.Nest was not sent: beans are nested deeper than 128"));
  EXPECT_EQ(connection->Send<NestNote>({129}).error().code(), ErrorCode::kInvalidArgument);
  // The answer would be too deep: the client is told, and the connection lives on.
  EXPECT_EQ(ask(128).value().result_code, -1);
  EXPECT_EQ(ask(1).value().result.levels, 2);
  EXPECT_TRUE(connection->IsOpen());
}

TEST(Service, SurvivesCallbacksThatThrow) {
  for (const Dispatch dispatch : {Dispatch::kInline, Dispatch::kOrdered, Dispatch::kParallel}) {
    CapturedLog log;
    ThreadPool pool({.thread_count = 2});
    IoThreads io({});
    Service server(io, {.name = "server"});
    HandleEcho(server);
    Service client(io, {.name = "client", .dispatch = dispatch, .executor = &pool});
    client.OnOpen([](const ConnectionPtr&) { throw std::runtime_error("open"); });
    client.OnClose([](const ConnectionPtr&, const Error&) { throw std::runtime_error("close"); });
    const ConnectionPtr connection = MustConnect(client, MustListen(server), {.reconnect = false});
    Counter called;
    ASSERT_TRUE(connection
                    ->Call<Echo>({"x"}, {},
                                 [&](const RpcReply<Echo>&) {
                                   called.Add();
                                   throw std::runtime_error("reply");
                                 })
                    .ok());
    ASSERT_TRUE(called.WaitFor(1));

    EXPECT_EQ(MustEcho(*connection, "still there"), "still there");
    client.Stop();  // Also when nobody was told of the end.
    EXPECT_THAT(log.lines(), Contains(HasSubstr("a call threw: reply")));
    EXPECT_THAT(log.lines(), Contains(HasSubstr("connection open threw: open")));
    EXPECT_THAT(log.lines(), Contains(HasSubstr("connection close threw: close")));
  }
}

// Runs each task on another thread while Post is under way, and lets Post go on a little longer.
class LingeringExecutor final : public Executor {
 public:
  void Post(Task task) override {
    ++posting;
    std::thread([&task] { task(); }).join();
    MutexLock lock(mutex_);
    const auto deadline = SystemClock().Now() + milliseconds(50);
    while (!destroyed_soon_ && SystemClock().WaitUntil(changed_, mutex_, deadline)) {
    }
    --posting;
  }

  // What its owner says before it destroys it.
  void Release() {
    MutexLock lock(mutex_);
    destroyed_soon_ = true;
    changed_.NotifyAll();
  }

  std::atomic<int> posting = 0;

 private:
  Mutex mutex_;
  CondVar changed_;
  bool destroyed_soon_ ZEZE_GUARDED_BY(mutex_) = false;
};

TEST(Service, StopReturnsAfterTheLastUseOfTheExecutor) {
  for (const Dispatch dispatch : {Dispatch::kOrdered, Dispatch::kParallel}) {
    LingeringExecutor executor;
    IoThreads io({});
    Service server(io, {.name = "server"});
    HandleEcho(server);
    Service client(io, {.name = "client", .dispatch = dispatch, .executor = &executor});
    static_cast<void>(MustConnect(client, MustListen(server), {.reconnect = false}));

    client.Stop();
    EXPECT_EQ(executor.posting, 0);
    executor.Release();
  }
}

TEST(Service, AnswersNotImplementedForAKnownProtocolWithoutHandler) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.HandleRaw(Echo::kDescriptor, {});
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));

  EXPECT_EQ(MustEcho(*connection, "x"), "code -3");
  EXPECT_TRUE(connection->IsOpen());
}

TEST(Service, TimesCallsOutAndDropsLateAnswers) {
  ManualClock clock;
  IoThreads server_io({});
  IoThreads io({.clock = &clock});
  Mutex mutex;
  std::vector<Request<Echo>> kept;
  Counter arrived;
  Service server(server_io, {.name = "server"});
  server.Handle<Echo>([&](Request<Echo> request) {
    MutexLock lock(mutex);
    kept.push_back(std::move(request));
    arrived.Add();
  });
  Service client(io, {.name = "client"});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));

  Counter ended;
  RpcReply<Echo> got;
  ASSERT_TRUE(connection
                  ->Call<Echo>({"slow"}, {.timeout = seconds(3)},
                               [&](const RpcReply<Echo>& reply) {
                                 got = reply;
                                 ended.Add();
                               })
                  .ok());
  ASSERT_TRUE(arrived.WaitFor(1));
  clock.Advance(seconds(3));
  ASSERT_TRUE(ended.WaitFor(1));
  EXPECT_EQ(got.outcome, RpcOutcome::kTimedOut);
  EXPECT_EQ(got.result_code, result_code::kTimeout);

  // Its answer comes now, in front of that to the next call, and harms nobody.
  {
    MutexLock lock(mutex);
    EXPECT_TRUE(kept[0].Answer({"late"}).ok());
    kept.clear();
  }
  std::thread answer([&] {
    ASSERT_TRUE(arrived.WaitFor(2));
    MutexLock lock(mutex);
    (void)kept[0].Answer({"in time"});
    kept.clear();
  });
  EXPECT_EQ(MustEcho(*connection, "next"), "in time");
  answer.join();
  EXPECT_EQ(client.GetStatistics().late_answers, 1U);
}

TEST(Service, FailsPendingCallsAtOnceWhenTheConnectionCloses) {
  ManualClock clock;  // Stands still: no time-out can help.
  IoThreads io({.clock = &clock});
  Mutex mutex;
  std::vector<Request<Echo>> kept;
  Counter arrived;
  Service server(io, {.name = "server"});
  server.Handle<Echo>([&](Request<Echo> request) {
    MutexLock lock(mutex);
    kept.push_back(std::move(request));
    arrived.Add();
  });
  Mutex order_mutex;
  std::vector<std::string> order;
  Counter ended;
  Service client(io, {.name = "client"});
  client.OnClose([&](const ConnectionPtr&, const Error&) {
    MutexLock lock(order_mutex);
    order.emplace_back("close");
    ended.Add();
  });
  const ConnectionPtr connection = MustConnect(client, MustListen(server), {.reconnect = false});

  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(connection
                    ->Call<Echo>({"x"}, {},
                                 [&, i](const RpcReply<Echo>& reply) {
                                   MutexLock lock(order_mutex);
                                   order.push_back(std::to_string(i) + ":" +
                                                   std::to_string(reply.result_code));
                                   ended.Add();
                                 })
                    .ok());
  }
  ASSERT_TRUE(arrived.WaitFor(3));
  server.connections().front()->Close("test");
  ASSERT_TRUE(ended.WaitFor(4));

  {
    MutexLock lock(order_mutex);
    EXPECT_THAT(order, ElementsAre("0:-18", "1:-18", "2:-18", "close"));
  }
  Result<void> sent = connection->Send<Note>({"x"});
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(sent.error().message(), HasSubstr("the peer closed the connection"));
  Result<void> answered = kept[0].Answer({"too late"});
  EXPECT_EQ(answered.error().code(), ErrorCode::kUnavailable);
}

TEST(Service, RefusesOutputBeyondItsBoundAndReadsNoMoreFromWhoDoesNotRead) {
  IoThreads io({});
  std::atomic<int> handled = 0;
  Service server(io, {.name = "server", .output_bytes_max = 256 << 10});
  server.Handle<Echo>([&](Request<Echo> request) {
    ++handled;
    (void)request.Answer(request.argument());
  });
  const NetAddress address = MustListen(server);
  RawClient slow(address);

  // The reader does not read, so it can send no more than what fits between the two of us.
  const std::string frame = slow.RequestFrame<Echo>(1, {std::string(1000, 'x')});
  int sent = 0;
  while (slow.TrySend(frame)) ++sent;
  // Server memory: its queue stays at about half of the bound.
  const ConnectionPtr connection = server.connections().front();
  EXPECT_LE(connection->QueuedBytesApprox(), (128U << 10) + 300000U);
  // What the server itself wants to tell it is refused at the bound, and the connection goes on.
  Result<void> told;
  while (told.ok()) told = connection->Send<Note>({std::string(1000, 'y')});
  EXPECT_EQ(told.error().code(), ErrorCode::kOverloaded);
  EXPECT_LE(connection->QueuedBytesApprox(), 256U << 10);
  EXPECT_TRUE(connection->IsOpen());

  // Once it reads, every request is answered.
  int answers = 0;
  while (answers < sent) {
    const std::optional<Frame> frame_read = slow.ReadFrame();
    ASSERT_TRUE(frame_read.has_value());
    if (frame_read->family == FrameFamily::kResponse) ++answers;
  }
  EXPECT_GE(handled, sent);  // The last one was sent in part, and the rest of it later.
}

TEST(Service, ClosesWhoDoesNotReadForTooLong) {
  CapturedLog log;
  ManualClock clock;
  IoThreads io({.clock = &clock});
  Counter closed;
  Service server(io, {.name = "server", .write_stall_timeout = seconds(30)});
  server.OnClose([&](const ConnectionPtr&, const Error&) { closed.Add(); });
  HandleEcho(server);
  RawClient slow(MustListen(server));
  ASSERT_TRUE(slow.Send(slow.RequestFrame<Echo>(1, {"hello"})));
  ASSERT_TRUE(slow.ReadFrame().has_value());
  const ConnectionPtr connection = server.connections().front();

  // Until everything between the two is full, and then for thirty seconds more.
  while (connection->IsOpen()) {
    (void)connection->Send<Note>({std::string(100000, 'y')});
    clock.Advance(milliseconds(10));
  }

  ASSERT_TRUE(closed.WaitFor(1));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the peer does not read")));
}

TEST(Service, RefusesAClaimedSizeBeforeItStoresAnything) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  RawClient client(MustListen(server));

  ASSERT_TRUE(client.Send(std::string("\x07\0\0\0\x01\0\0\0\0\0\0\x80", 12)));  // 2 GiB.

  EXPECT_FALSE(client.ReadFrame().has_value());  // Closed.
  EXPECT_THAT(log.lines(), Contains(HasSubstr("claims a body of 2147483648 bytes")));
  EXPECT_EQ(server.GetStatistics().protocol_errors, 1U);
}

TEST(Service, ClosesConnectionsThatSpeakNonsense) {
  CapturedLog log;
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  server.Handle<Note>([](const Message<Note>&) {});
  const NetAddress address = MustListen(server);
  const auto expect_closed = [&](const std::string& bytes, const std::string& line) {
    RawClient client(address);
    ASSERT_TRUE(client.Send(bytes));
    EXPECT_FALSE(client.ReadFrame().has_value());
    EXPECT_THAT(log.lines(), Contains(HasSubstr(line)));
  };
  const auto frame = [](const ProtocolDescriptor& protocol, FrameFamily family,
                        std::string_view payload) {
    ByteWriter out;
    EncodeFrame({.module_id = protocol.module_id,
                 .protocol_id = protocol.protocol_id,
                 .family = family,
                 .session_id = 1,
                 .payload = payload},
                out);
    return out.Release();
  };

  expect_closed(frame(Echo::kDescriptor, FrameFamily::kOneWay, "\x01x"),
                "zeze.test.Echo came as a one-way message, but it is an rpc");
  expect_closed(frame(Note::kDescriptor, FrameFamily::kRequest, "\x01x"),
                "zeze.test.Note came as a request message, but it is a one-way protocol");
  expect_closed(frame(Echo::kDescriptor, FrameFamily::kRaftRequest, "\x01x"), "speak raft");
  expect_closed(frame(Echo::kDescriptor, FrameFamily::kRequest, "\x05x"), "zeze.test.Echo: ");
  expect_closed(frame({.module_id = 9, .protocol_id = 9}, FrameFamily::kOneWay, ""),
                "module 9 protocol 9, which this service does not know");
  expect_closed(std::string("\x07\0\0\0\x01\0\0\0\0\0\0\0", 12), "frame of module 7");
}

TEST(Service, ForwardsWhatItDoesNotHandleAsItCame) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.ForwardOthers(
      [](Connection& connection, const Frame& frame, std::string_view body) -> Result<void> {
        EXPECT_EQ(frame.family, FrameFamily::kRequest);
        EXPECT_EQ(frame.session_id, 64);
        EXPECT_TRUE(body.ends_with(frame.payload));
        ByteWriter out;
        out.WriteInt4(frame.module_id);
        out.WriteInt4(frame.protocol_id);
        const std::size_t size = out.BeginSize4();
        out.WriteRaw(body);
        out.EndSize4(size);
        return connection.SendFrames(out.view());
      });
  RawClient client(MustListen(server));
  ASSERT_TRUE(client.Send(client.RequestFrame<Echo>(64, {"through"})));

  const std::optional<Frame> frame = client.ReadFrame();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->session_id, 64);
  EXPECT_EQ(frame->payload, "\x07through");
}

TEST(Service, AnswersFramesThatComeByteByByte) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  HandleEcho(server);
  RawClient client(MustListen(server));
  const std::string frame = client.RequestFrame<Echo>(5, {"piecemeal"});
  for (const char byte : frame) ASSERT_TRUE(client.Send(std::string(1, byte)));

  const std::optional<Frame> answer = client.ReadFrame();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->session_id, 5);
  EXPECT_EQ(answer->payload, "\x09piecemeal");
}

TEST(Service, SaysItsLastWordsToWhoStillTalks) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.Handle<Echo>([](Request<Echo> request) {
    const ConnectionPtr connection = request.connection();
    (void)request.Answer({std::string(1 << 20, 'x')});
    connection->CloseWhenSent("enough");
    EXPECT_EQ(connection->Send<Note>({"more"}).error().code(), ErrorCode::kUnavailable);
  });
  RawClient client(MustListen(server));
  const std::string request = client.RequestFrame<Echo>(1, {"x"});
  ASSERT_TRUE(client.Send(request));
  for (int i = 0; i < 100; ++i) client.Send(request);  // Nobody reads them any more.

  std::optional<Frame> answer = client.ReadFrame();
  ASSERT_TRUE(answer.has_value());
  EXPECT_GT(answer->payload.size(), 1U << 20);
  EXPECT_FALSE(client.ReadFrame().has_value());
}

TEST(Service, KeepsStateForEachConnection) {
  struct State final : ConnectionState {
    int count = 0;
  };
  IoThreads io({});
  Service server(io, {.name = "server"});
  server.OnOpen(
      [](const ConnectionPtr& connection) { connection->set_state(std::make_shared<State>()); });
  server.Handle<Echo>([](Request<Echo> request) {
    const int count = ++request.connection()->state<State>()->count;
    (void)request.Answer({std::to_string(count)});
  });
  Service client(io, {.name = "client"});
  const NetAddress address = MustListen(server);
  const ConnectionPtr one = MustConnect(client, address);
  const ConnectionPtr two = MustConnect(client, address);
  EXPECT_EQ(MustEcho(*one, ""), "1");
  EXPECT_EQ(MustEcho(*one, ""), "2");
  EXPECT_EQ(MustEcho(*two, ""), "1");
}

TEST(Service, SendsFromTheCallersThreadInOrder) {
  IoThreads io({});
  Mutex mutex;
  std::vector<std::string> seen;
  Counter arrived;
  Service server(io, {.name = "server"});
  server.Handle<Note>([&](const Message<Note>& message) {
    MutexLock lock(mutex);
    seen.push_back(message.argument.text);
    arrived.Add();
  });
  Service client(io, {.name = "client", .output_bytes_max = 64 << 20, .send_from_caller = true});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        ASSERT_TRUE(connection->Send<Note>({std::to_string(t) + ":" + std::to_string(i)}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(arrived.WaitFor(6000));
  std::vector<int> next(3, 0);
  MutexLock lock(mutex);
  for (const std::string& text : seen) {
    const std::size_t thread = static_cast<std::size_t>(text[0] - '0');
    EXPECT_EQ(text.substr(2), std::to_string(next[thread]++));
  }
}

TEST(Service, EndsEveryCallOnceWhileConnectionsComeAndGo) {
  constexpr std::uint32_t kSeed = 20261117;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const bool from_caller : {false, true}) {
    ThreadPool pool({.thread_count = 4});
    IoThreads io({.thread_count = 2});
    Service server(io, {.name = "server", .dispatch = Dispatch::kOrdered, .executor = &pool});
    HandleEcho(server);
    const NetAddress address = MustListen(server);
    std::atomic<int> accepted = 0;
    std::atomic<int> ended = 0;
    std::atomic<int> opened = 0;
    std::atomic<int> closed = 0;
    Service client(io, {.name = "client",
                        .dispatch = Dispatch::kOrdered,
                        .executor = &pool,
                        .send_from_caller = from_caller});
    client.OnOpen([&](const ConnectionPtr&) { ++opened; });
    client.OnClose([&](const ConnectionPtr&, const Error&) { ++closed; });
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(kSeed + t);
        for (int round = 0; round < 40; ++round) {
          const ConnectionPtr connection = MustConnect(client, address, {.reconnect = false});
          const auto calls = random() % 200;
          for (std::size_t i = 0; i < calls; ++i) {
            const CallOptions options{.dispatch = random() % 2 == 0 ? Dispatch::kOrdered
                                                                    : Dispatch::kInline};
            if (connection
                    ->Call<Echo>({std::string(random() % 2000, 'x')}, options,
                                 [&](const RpcReply<Echo>&) { ++ended; })
                    .ok()) {
              ++accepted;
            }
          }
          if (random() % 2 == 0) MustEcho(*connection, "flushed");
          random() % 2 == 0 ? connection->Close("test") : connection->CloseWhenSent("test");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    client.Stop();
    server.Stop();
    EXPECT_EQ(opened, 120);
    EXPECT_EQ(closed, 120);
    EXPECT_EQ(ended, accepted);
    EXPECT_GT(accepted, 1000);
  }
}

TEST(Service, RefusesMoreCallsThanItsLimit) {
  IoThreads io({});
  Service server(io, {.name = "server"});
  std::vector<Request<Echo>> kept;
  server.Handle<Echo>([&](Request<Echo> request) { kept.push_back(std::move(request)); });
  Service client(io, {.name = "client", .calls_max = 2});
  const ConnectionPtr connection = MustConnect(client, MustListen(server));
  const auto ignore = [](const RpcReply<Echo>&) {};
  EXPECT_TRUE(connection->Call<Echo>({}, {}, ignore).ok());
  EXPECT_TRUE(connection->Call<Echo>({}, {}, ignore).ok());
  Result<void> third = connection->Call<Echo>({}, {}, ignore);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code(), ErrorCode::kOverloaded);
  server.Stop();
}

}  // namespace
}  // namespace zeze
