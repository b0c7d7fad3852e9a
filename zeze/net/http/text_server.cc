#include "zeze/net/http/text_server.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>

#include "zeze/base/activity.h"
#include "zeze/base/log.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"

namespace zeze {

namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;
using Answer = std::function<Response(const Request& request)>;

constexpr std::size_t kRequestBytesMax = 4096;

// One request and its answer; keeps itself as long as it lives.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, Answer answer, std::shared_ptr<void> place)
      : stream_(std::move(socket)), answer_(std::move(answer)), place_(std::move(place)) {
    parser_.header_limit(kRequestBytesMax);
  }

  void Start(std::chrono::nanoseconds timeout) {
    stream_.expires_after(timeout);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error) self->Reply();
                     });
  }

 private:
  void Reply() {
    response_ = answer_(parser_.get());
    response_.keep_alive(false);
    response_.prepare_payload();
    http::async_write(
        stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
          std::ignore = self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
        });
  }

  boost::beast::tcp_stream stream_;
  const Answer answer_;
  const std::shared_ptr<void> place_;  // Counts connections.
  boost::beast::flat_buffer buffer_{kRequestBytesMax};
  http::request_parser<http::empty_body> parser_;
  Response response_;
};

}  // namespace

class TextServer::Impl {
 public:
  explicit Impl(const TextServerOptions& options) : options_(options), acceptor_(io_) {}
  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> Start() {
    error_code error;
    const auto address = boost::asio::ip::make_address(options_.ip, error);
    if (error) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is not an address to listen on", options_.ip));
    }
    const tcp::endpoint endpoint(address, options_.port);
    std::ignore = acceptor_.open(endpoint.protocol(), error);
    if (!error)
      std::ignore = acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
    if (!error) std::ignore = acceptor_.bind(endpoint, error);
    if (!error)
      std::ignore = acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error(ErrorCode::kInUse, fmt::format("cannot listen on {} port {}: {}", options_.ip,
                                                  options_.port, error.message()));
    }
    port_ = acceptor_.local_endpoint(error).port();
    if (!address.is_loopback()) {
      ZEZE_LOG_WARNING(
          "metrics: other machines can reach {} port {}, and whoever reaches it can read them: "
          "keep "
          "the port inside (127.0.0.1, a firewall)",
          options_.ip, port_);
    }
    Accept();
    thread_ = std::thread([this] {
      SetThreadName("http");
      io_.run();
    });
    return {};
  }

  void Add(const std::string& path, std::function<std::string()> page) {
    const MutexLock lock(mutex_);
    pages_[path] = std::move(page);
  }

  std::uint16_t port() const { return port_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return AcceptLater();
      if (places_.use_count() <= static_cast<long>(options_.connections_max)) {
        std::make_shared<Exchange>(
            std::move(socket), [this](const Request& request) { return Reply(request); }, places_)
            ->Start(options_.timeout);
      }
      Accept();
    });
  }

  // There may be no descriptor left, and somebody who waits for one.
  void AcceptLater() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  Response Reply(const Request& request) {
    Response response(http::status::ok, request.version());
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    std::function<std::string()> page;
    {
      const MutexLock lock(mutex_);
      const auto found = pages_.find(std::string(request.target()));
      if (found != pages_.end()) page = found->second;
    }
    if (request.method() != http::verb::get) {
      response.result(http::status::method_not_allowed);
    } else if (!page) {
      response.result(http::status::not_found);
    } else {
      response.body() = page();
    }
    return response;
  }

  const TextServerOptions options_;
  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_{io_};
  std::uint16_t port_ = 0;
  const std::shared_ptr<void> places_ = std::make_shared<int>(0);
  Mutex mutex_;
  std::map<std::string, std::function<std::string()>> pages_ ZEZE_GUARDED_BY(mutex_);
  std::thread thread_;
};

TextServer::TextServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextServer::~TextServer() = default;

Result<std::unique_ptr<TextServer>> TextServer::Start(const TextServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (Result<void> started = impl->Start(); !started.ok()) return started.error();
  return std::unique_ptr<TextServer>(new TextServer(std::move(impl)));
}

void TextServer::Add(const std::string& path, std::function<std::string()> page) {
  impl_->Add(path, std::move(page));
}

std::uint16_t TextServer::port() const {
  return impl_->port();
}

}  // namespace zeze
