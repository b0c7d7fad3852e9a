#include "bench/etcd_client.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/measure.h"

namespace zeze::bench {

namespace {

// --- the few messages, in the encoding of protocol buffers ------------------------------------

void AddVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AddNumber(std::string& out, std::uint64_t field, std::uint64_t value) {
  AddVarint(out, field << 3);
  AddVarint(out, value);
}

void AddBytes(std::string& out, std::uint64_t field, std::string_view value) {
  AddVarint(out, field << 3 | 2);
  AddVarint(out, value.size());
  out += value;
}

std::uint64_t TakeVarint(std::string_view& in) {
  std::uint64_t value = 0;
  for (int shift = 0; !in.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// The number or the bytes of a field.
std::string FieldOf(std::string_view message, std::uint64_t field, std::uint64_t& number) {
  while (!message.empty()) {
    const std::uint64_t tag = TakeVarint(message);
    const std::uint64_t value = TakeVarint(message);
    std::string_view bytes;
    if ((tag & 7) == 2) {
      bytes = message.substr(0, value);
      message.remove_prefix(bytes.size());
    }
    if (tag >> 3 != field) continue;
    number = value;
    return std::string(bytes);
  }
  return "";
}

// --- the connection ---------------------------------------------------------------------------

// HTTP/2 with gRPC's framing on one socket. Throws std::runtime_error when it breaks.
class GrpcConnection {
 public:
  // An answer, without gRPC's prefix, belongs to the number given with its request.
  using Answered = std::function<void(std::size_t number, std::string_view message)>;

  explicit GrpcConnection(std::uint16_t port) : socket_(ConnectTo(port)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnEnd);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;
  ~GrpcConnection() {
    nghttp2_session_del(session_);
    ::close(socket_);
  }

  void Ask(std::size_t number, std::string_view method, std::string_view message) {
    auto stream = std::make_unique<Stream>();
    stream->number = number;
    stream->request.assign(1, '\0');
    for (int shift = 24; shift >= 0; shift -= 8) {
      stream->request += static_cast<char>(message.size() >> shift);
    }
    stream->request += message;
    const std::array<nghttp2_nv, 6> headers = {
        Header(":method", "POST"), Header(":scheme", "http"),
        Header(":path", method),   Header(":authority", "127.0.0.1"),
        Header("te", "trailers"),  Header("content-type", "application/grpc")};
    nghttp2_data_provider body{.source = {.ptr = stream.get()}, .read_callback = &ReadBody};
    const std::int32_t id =
        nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, nullptr);
    if (id < 0) throw std::runtime_error("HTTP/2 refuses a request");
    streams_[id] = std::move(stream);
  }

  // Sends what was asked, waits for something to come, and hands out whole answers.
  void Exchange(const Answered& answered) {
    const std::uint8_t* bytes = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
      if (::send(socket_, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) {
        throw std::runtime_error("etcd does not read");
      }
    }
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) throw std::runtime_error("etcd has closed the connection");
    if (nghttp2_session_mem_recv(session_, buffer_.data(), static_cast<std::size_t>(got)) < 0) {
      throw std::runtime_error("etcd does not speak HTTP/2");
    }
    for (const std::unique_ptr<Stream>& stream : std::exchange(ended_, {})) {
      answered(stream->number,
               std::string_view(stream->answer)
                   .substr(std::min<std::size_t>(kPrefixBytes, stream->answer.size())));
    }
  }

 private:
  static constexpr std::size_t kPrefixBytes = 5;
  struct Stream {
    std::size_t number = 0;
    std::string request;
    std::size_t sent = 0;
    std::string answer;
  };

  static int ConnectTo(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error("etcd does not listen");
    }
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  static nghttp2_nv Header(std::string_view name, std::string_view value) {
    // The library copies them, although its interface wants to write.
    return {.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
            .namelen = name.size(),
            .valuelen = value.size(),
            .flags = NGHTTP2_NV_FLAG_NONE};
  }
  static ssize_t ReadBody(nghttp2_session* /*session*/, std::int32_t /*id*/, std::uint8_t* out,
                          std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                          void* /*self*/) {
    auto* stream = static_cast<Stream*>(source->ptr);
    const std::size_t count = std::min(size, stream->request.size() - stream->sent);
    std::memcpy(out, stream->request.data() + stream->sent, count);
    stream->sent += count;
    if (stream->sent == stream->request.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }
  static int OnData(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                    const std::uint8_t* data, std::size_t size, void* self) {
    static_cast<GrpcConnection*>(self)->streams_[id]->answer.append(
        reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnEnd(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t /*code*/,
                   void* self) {
    auto& connection = *static_cast<GrpcConnection*>(self);
    connection.ended_.push_back(std::move(connection.streams_[id]));
    connection.streams_.erase(id);
    return 0;
  }

  const int socket_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> ended_;
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(64 << 10);
};

}  // namespace

// --- the clients ------------------------------------------------------------------------------

class EtcdClient::Impl {
 public:
  Impl(std::uint16_t port, std::size_t clients) : connection_(port), clients_(clients) {
    std::size_t waiting = clients;
    for (std::size_t i = 0; i < clients; ++i) {
      std::string message;
      AddNumber(message, 1, 600);  // Seconds.
      connection_.Ask(i, "/etcdserverpb.Lease/LeaseGrant", message);
    }
    while (waiting > 0) {
      connection_.Exchange([&](std::size_t number, std::string_view message) {
        FieldOf(message, 2, clients_[number].lease);
        --waiting;
      });
    }
  }

  double Run(double seconds) {
    std::uint64_t pairs = 0;
    std::size_t busy = clients_.size();
    for (std::size_t i = 0; i < clients_.size(); ++i) Lock(i);
    const double begin = WallSeconds();
    double measured = 0;
    std::uint64_t counted = 0;
    while (busy > 0) {
      connection_.Exchange([&](std::size_t number, std::string_view message) {
        if (std::exchange(clients_[number].locking, false)) {
          Unlock(number, message);
          return;
        }
        ++pairs;
        measured < seconds ? Lock(number) : static_cast<void>(--busy);
      });
      if (measured < seconds) {
        measured = WallSeconds() - begin;
        counted = pairs;
      }
    }
    return static_cast<double>(counted) / measured;
  }

 private:
  struct Client {
    std::uint64_t lease = 0;
    std::uint64_t locks = 0;
    bool locking = false;
  };

  void Lock(std::size_t number) {
    Client& client = clients_[number];
    client.locking = true;
    std::string message;
    AddBytes(message, 1, fmt::format("lock-{}-{}", number, ++client.locks));
    AddNumber(message, 2, client.lease);
    connection_.Ask(number, "/v3lockpb.Lock/Lock", message);
  }
  void Unlock(std::size_t number, std::string_view locked) {
    std::uint64_t ignored = 0;
    const std::string key = FieldOf(locked, 2, ignored);
    if (key.empty()) throw std::runtime_error("etcd did not lock");
    std::string message;
    AddBytes(message, 1, key);
    connection_.Ask(number, "/v3lockpb.Lock/Unlock", message);
  }

  GrpcConnection connection_;
  std::vector<Client> clients_;
};

EtcdClient::EtcdClient(std::uint16_t port, std::size_t clients)
    : impl_(std::make_unique<Impl>(port, clients)) {}
EtcdClient::~EtcdClient() = default;

double EtcdClient::LockPairsPerSecond(double seconds) {
  return impl_->Run(seconds);
}

}  // namespace zeze::bench
