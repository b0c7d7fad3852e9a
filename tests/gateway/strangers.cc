// Strangers at the port of a gateway, in a process of their own; and a sink, which takes whatever
// comes, so that the same strangers can spend the same where nobody is disturbed by more than
// their use of the machine.
//
//   strangers sink                 prints its port
//   strangers KEY TOKEN            then, a line at a time:
//     storm KIND PORT PER_SECOND MILLISECONDS     -> "did N"
//     settle    -> "closed N", when the peer has closed all connections of storms, N of them
//     drop      -> "dropped", after closing them
//     idle PORT COUNT TOKEN                       -> "idle N": so many are logged in, and held
//
// KEY: a file with the key of the account service; TOKEN: one that was used, in hexadecimal digits.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Zeze/Builtin/LinkdAuth.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/testing/gateway_fixture.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/check.h"
#include "zeze/base/clock.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/net_address.h"
#include "zeze/net/testing/raw_client.h"
#include "zeze/net/zstd_stream.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

using arch::testing::FrameOf;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Zeze::Builtin::LinkdAuth::Auth;

constexpr std::int32_t kShop = 100;
constexpr std::int32_t kLimited = 6;  // Of the shop: few are allowed.

class Socket {
 public:
  explicit Socket(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ZEZE_CHECK(socket_ >= 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ZEZE_CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  ~Socket() { ::close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // As far as it fits; strangers do not care.
  void Send(std::string_view bytes) const {
    static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void PassOverInput() const {
    char bytes[16384];
    while (::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
  }
  // Blocks until so many have come, or the peer has closed.
  void AwaitFrames(int count) const {
    std::string input;
    char bytes[4096];
    for (int found = 0; found < count;) {
      const ssize_t read = ::recv(socket_, bytes, sizeof bytes, 0);
      if (read <= 0) return;
      input.append(bytes, static_cast<std::size_t>(read));
      std::string_view rest = input;
      for (found = 0; TakeFrame(rest, sizeof bytes).value().has_value();) ++found;
    }
  }
  bool AwaitClosed() const {
    char bytes[16384];
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    constexpr int kPatienceMs = 30'000;
    while (::poll(&waiting, 1, kPatienceMs) > 0) {
      if (::recv(socket_, bytes, sizeof bytes, 0) <= 0) return true;
    }
    return false;
  }

 private:
  const int socket_;
};

std::string HandshakeFrame(std::int32_t id, std::string_view payload) {
  ByteWriter out;
  EncodeFrame({.protocol_id = id, .payload = payload}, out);
  return out.Release();
}

// What ends the handshake of a client that wants nothing special.
std::string Done() {
  return HandshakeFrame(kClientDoneId, std::string_view("\0", 1));
}

std::string Header(std::int32_t module, std::uint32_t bytes) {
  ByteWriter header;
  header.WriteInt4(module);
  header.WriteInt4(5);
  header.WriteInt4(static_cast<std::int32_t>(bytes));
  return header.Release();
}

std::string AuthFrame(std::string_view token) {
  Zeze::Builtin::LinkdAuth::BAuth argument;
  argument.token.bytes = token;
  return testing::RawClient::RequestFrame<Auth>(1, argument);
}

std::string FromHex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Some kilobytes that become 64 MiB.
std::string Bomb() {
  ClientChoice choice;
  choice.compress_to_server = CompressType::kZstd;
  ByteWriter payload;
  choice.Encode(payload);
  std::string wire = HandshakeFrame(kClientChoiceId, payload.view());
  ZstdEncoder zstd;
  zstd.Write(Done() + std::string(64 << 20, '\0'), wire);
  zstd.Flush(wire);
  return wire;
}

class Strangers {
 public:
  Strangers(const std::string& key_file, const std::string& used_token)
      : key_(admin::OperatorKey::Load(key_file).value()) {
    const std::string used = FromHex(used_token);
    // Each opens a connection and says one thing.
    const auto saying = [this](std::string bytes) {
      return [this, bytes = std::move(bytes)](std::uint16_t port) { Open(port).Send(bytes); };
    };
    std::string forged = used;
    forged.back() = static_cast<char>(forged.back() ^ 1);
    auto expired = arch::NewToken("late", "Linkd", milliseconds(60'000));
    expired.expires = expired.issued;
    kinds_ = {
        {"oversize", saying(Done() + Header(kShop, 0x7fffffff))},
        {"malformed", saying(Done() + Header(kShop, 1) + "\x1f")},
        {"unauthenticated", saying(Done() + FrameOf(kShop, 5, "x"))},
        {"stall", saying(std::string(7, '\0'))},
        {"slowloris", [this](std::uint16_t port) { Drip(port); }},
        {"flood", [this](std::uint16_t port) { Flood(port); }},
        {"bomb", saying(Bomb())},
        {"replay", saying(Done() + AuthFrame(used))},
        {"forged", saying(Done() + AuthFrame(forged))},
        {"expired", saying(Done() + AuthFrame(arch::SignToken(key_, expired)))},
    };
  }

  void Run(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "storm") {
      std::string kind;
      std::uint16_t port = 0;
      int per_second = 0;
      int duration = 0;
      words >> kind >> port >> per_second >> duration;
      std::cout << "did " << Storm(kinds_.at(kind), port, per_second, milliseconds(duration));
    } else if (what == "settle") {
      std::cout << "closed " << std::ranges::count_if(open_, [](const auto& socket) {
        return socket->AwaitClosed();
      });
      open_.clear();
    } else if (what == "drop") {
      open_.clear();
      std::cout << "dropped";
    } else if (what == "idle") {
      std::uint16_t port = 0;
      std::size_t count = 0;
      std::string token;
      words >> port >> count >> token;
      std::cout << "idle " << Idle(port, count, token);
    }
    std::cout << '\n' << std::flush;
  }

 private:
  using Kind = std::function<void(std::uint16_t port)>;
  static constexpr int kBursts = 20;  // Of one who floods.

  // Evenly; what is late is left out, so that a slow machine makes fewer strangers, not a burst.
  int Storm(const Kind& kind, std::uint16_t port, int per_second, milliseconds duration) {
    Clock& clock = SystemClock();
    const nanoseconds period = nanoseconds(seconds(1)) / per_second;
    const nanoseconds end = clock.Now() + duration;
    flood_ = nullptr;
    int count = 0;
    for (nanoseconds next = clock.Now(); next < end; next = std::max(next + period, clock.Now())) {
      if (const nanoseconds now = clock.Now(); next > now) clock.SleepFor(next - now);
      kind(port);
      ++count;
    }
    // On a slow machine there were few: what was begun is ended, so that it is a flood.
    while (flood_ != nullptr && bursts_ + 1 < kBursts) Flood(port);
    return count;
  }

  Socket& Open(std::uint16_t port) {
    open_.push_back(std::make_unique<Socket>(port));
    return *open_.back();
  }

  // One more, and all that are there say a byte: progress, of a kind.
  void Drip(std::uint16_t port) {
    constexpr std::size_t kDrips = 10;
    Open(port).Send(Done() + Header(kShop, 4000));
    for (std::size_t i = 0; i < std::min(kDrips, open_.size()); ++i) {
      open_[drip_++ % open_.size()]->Send(std::string_view("\0", 1));
    }
  }

  // A hundred requests at once, of a kind of which ten a second are allowed; twenty times, and then
  // as somebody else.
  void Flood(std::uint16_t port) {
    constexpr int kBurst = 100;
    if (flood_ == nullptr || ++bursts_ == kBursts) {
      bursts_ = 0;
      flood_ = &Open(port);
      flood_->Send(Done() + AuthFrame(arch::SignToken(
                                key_, arch::NewToken("flood", "Linkd", milliseconds(60'000)))));
      flood_->AwaitFrames(2);  // The offer of the handshake, and the answer.
    }
    std::string many;
    for (int i = 0; i < kBurst; ++i) {
      many += FrameOf(kShop, kLimited, "x", FrameFamily::kRequest, i);
    }
    flood_->Send(many);
    flood_->PassOverInput();
  }

  // Some at a time, so that the gateway need not take all at once.
  std::size_t Idle(std::uint16_t port, std::size_t count, const std::string& token) {
    const NetAddress address = NetAddress::FromText("127.0.0.1", port).value();
    constexpr std::size_t kAtOnce = 100;
    while (idle_.size() < count) {
      std::vector<std::unique_ptr<testing::RawClient>> some;
      for (std::size_t i = 0; i < kAtOnce && idle_.size() + some.size() < count; ++i) {
        some.push_back(std::make_unique<testing::RawClient>(address));
        some.back()->Send(Done() + AuthFrame(token));
      }
      for (auto& client : some) {
        // The offer of the handshake; it is short. Then the answer.
        const std::string header = client->ReadBytes(kFrameHeaderBytes);
        if (header.size() < kFrameHeaderBytes) return idle_.size();
        client->ReadBytes(static_cast<unsigned char>(header[8]));
        const auto answer = client->ReadFrame();
        if (!answer.has_value() || answer->result_code != 0) return idle_.size();
        idle_.push_back(std::move(client));
      }
    }
    return idle_.size();
  }

  const admin::OperatorKey key_;
  std::map<std::string, Kind> kinds_;
  std::deque<std::unique_ptr<Socket>> open_;
  Socket* flood_ = nullptr;
  int bursts_ = 0;
  std::size_t drip_ = 0;
  std::vector<std::unique_ptr<testing::RawClient>> idle_;
};

// Accepts, says two empty frames, reads everything, and ends a connection when its peer has.
void Sink() {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ZEZE_CHECK(::bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  ZEZE_CHECK(::listen(listening, 4096) == 0);
  socklen_t length = sizeof at;
  ZEZE_CHECK(::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &length) == 0);
  std::cout << ntohs(at.sin_port) << '\n' << std::flush;
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [poll](int descriptor) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    ZEZE_CHECK(::epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0);
  };
  watch(listening);
  watch(STDIN_FILENO);  // Its end is ours.
  std::vector<char> bytes(256 << 10);
  while (true) {
    epoll_event event = {};
    if (::epoll_wait(poll, &event, 1, -1) < 1) continue;
    if (event.data.fd == STDIN_FILENO) return;
    if (event.data.fd == listening) {
      const int accepted = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted < 0) continue;
      watch(accepted);
      // As much as a gateway says to somebody who logs in.
      const std::string two_frames = Header(0, 0) + Header(0, 0);
      static_cast<void>(::send(accepted, two_frames.data(), two_frames.size(), MSG_NOSIGNAL));
      continue;
    }
    if (::recv(event.data.fd, bytes.data(), bytes.size(), 0) <= 0) ::close(event.data.fd);
  }
}

}  // namespace
}  // namespace zeze

int main(int count, char** arguments) {
  zeze::testing::RaiseOpenFiles();
  if (count == 2 && std::string_view(arguments[1]) == "sink") {
    zeze::Sink();
    return 0;
  }
  if (count != 3) {
    std::cerr << "strangers: expected \"sink\", or KEY and TOKEN\n";
    return 2;
  }
  zeze::Strangers strangers(arguments[1], arguments[2]);
  std::string line;
  while (std::getline(std::cin, line)) strangers.Run(line);
  return 0;
}
