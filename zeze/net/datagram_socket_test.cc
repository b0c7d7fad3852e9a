#include "zeze/net/datagram_socket.h"

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/net_address.h"

namespace zeze {
namespace {

// What has come last.
class Inbox {
 public:
  void Put(std::string_view bytes) {
    const MutexLock lock(mutex_);
    text_ = bytes;
    ++count_;
    changed_.NotifyAll();
  }
  std::string Await() {
    const MutexLock lock(mutex_);
    while (count_ == 0) changed_.Wait(mutex_);
    --count_;
    return text_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ZEZE_GUARDED_BY(mutex_) = 0;
  std::string text_ ZEZE_GUARDED_BY(mutex_);
};

void Echo(DatagramSocket& socket, std::string_view bytes, const NetAddress& from) {
  socket.Send(bytes, from);
}

TEST(DatagramSocketTest, AnswersWhoeverSent) {
  IoThreads io({.name = "io"});
  for (const char* ip : {"127.0.0.1", ""}) {
    const auto server = DatagramSocket::Open(io, {.ip = ip, .bytes_max = 10}, Echo).value();
    Inbox inbox;
    const auto client = DatagramSocket::Open(io, {.ip = "127.0.0.1"},
                                             [&inbox](DatagramSocket&, std::string_view bytes,
                                                      const NetAddress&) { inbox.Put(bytes); })
                            .value();
    const NetAddress to = NetAddress::FromText("127.0.0.1", server->address().port()).value();

    client->Send("longer than ten", to);  // Dropped.
    client->Send("hello", to);
    EXPECT_EQ("hello", inbox.Await());

    server->Close();
    client->Send("hello", to);
    client->Close();
    client->Close();
  }
}

TEST(DatagramSocketTest, SaysWhyAPortCannotBeUsed) {
  IoThreads io({.name = "io"});
  const auto first = DatagramSocket::Open(io, {.ip = "127.0.0.1"}, Echo).value();
  const auto second =
      DatagramSocket::Open(io, {.ip = "127.0.0.1", .port = first->address().port()}, Echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ErrorCode::kInUse, second.error().code());
  EXPECT_FALSE(DatagramSocket::Open(io, {.ip = "nowhere"}, Echo).ok());
  first->Close();
}

}  // namespace
}  // namespace zeze
