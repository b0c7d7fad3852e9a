// WebListener: a web service for tests. Answers as it is told and remembers what it was asked.
//
//   WebListener listener({.statuses = {503, 200}});      // The first request is refused.
//   Post(listener.Url("http", "/hook"));
//   std::optional<WebListener::Request> request = listener.Next(std::chrono::seconds(10));

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "zeze/base/clock.h"
#include "zeze/base/mutex.h"
#include "zeze/net/testing/certificates.h"

namespace zeze::testing {

// One connection at a time, one request on each, in a thread of its own. Whoever connects must have
// ended, or sent its request, when this ends. Thread-safe.
class WebListener {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  struct Options {
    // For one request after the other; the last for all others. 0: waits until the client gives up.
    std::vector<unsigned> statuses = {200};
    bool tls = false;
  };

  WebListener() : WebListener(Options{}) {}
  explicit WebListener(Options options)
      : options_(std::move(options)),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        port_(acceptor_.local_endpoint().port()) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~WebListener() {
    io_.stop();
    thread_.join();
  }
  WebListener(const WebListener&) = delete;
  WebListener& operator=(const WebListener&) = delete;

  std::string Url(const std::string& scheme, const std::string& path = "/hook") const {
    return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
  }

  // The next request that was answered. None: there was none in this time.
  std::optional<Request> Next(std::chrono::nanoseconds patience) {
    const std::chrono::nanoseconds deadline = SystemClock().Now() + patience;
    const MutexLock lock(mutex_);
    while (requests_.empty()) {
      if (!SystemClock().WaitUntil(arrived_, mutex_, deadline)) return std::nullopt;
    }
    Request first = std::move(requests_.front());
    requests_.pop_front();
    return first;
  }

 private:
  void Accept() {
    acceptor_.async_accept(
        [this](boost::system::error_code error, boost::asio::ip::tcp::socket socket) {
          if (!error) Serve(std::move(socket));
          Accept();
        });
  }

  void Serve(boost::asio::ip::tcp::socket socket) {
    if (!options_.tls) {
      Answer(socket);
      return;
    }
    boost::asio::ssl::context context(boost::asio::ssl::context::tls_server);
    context.use_certificate_chain_file(Certificates::Get().server_certificate);
    context.use_private_key_file(Certificates::Get().server_key, boost::asio::ssl::context::pem);
    boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(std::move(socket), context);
    boost::system::error_code error;
    if (!stream.handshake(boost::asio::ssl::stream_base::server, error)) Answer(stream);
  }

  template <typename Stream>
  void Answer(Stream& stream) {
    namespace http = boost::beast::http;
    boost::beast::flat_buffer buffer;
    Request request;
    boost::system::error_code error;
    if (http::read(stream, buffer, request, error); error) return;
    const unsigned status = options_.statuses[std::min(served_++, options_.statuses.size() - 1)];
    if (status != 0) {
      http::response<http::string_body> answer;
      answer.result(status);
      answer.prepare_payload();
      http::write(stream, answer, error);
    } else {
      char byte = 0;
      stream.read_some(boost::asio::buffer(&byte, 1), error);
    }
    const MutexLock lock(mutex_);
    requests_.push_back(std::move(request));
    arrived_.NotifyAll();
  }

  const Options options_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const unsigned short port_;
  std::size_t served_ = 0;  // Its thread only.

  Mutex mutex_;
  CondVar arrived_;
  std::deque<Request> requests_ ZEZE_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the rest.
};

}  // namespace zeze::testing
