#include "zeze/net/http/http_post.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <fmt/core.h>
#include <openssl/ssl.h>
#include <openssl/tls1.h>

#include "zeze/base/result.h"
#include "zeze/base/url.h"

namespace zeze {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using SystemError = beast::error_code;

// An answer is looked at for its status only.
constexpr std::uint64_t kAnswerBytesMax = 64 << 10;

Result<Url> Parse(std::string_view text) {
  Result<Url> url = ParseUrl(text, {{"http", 80}, {"https", 443}});
  if (url.ok()) return url;
  return Error(url.error().code(), "not an address for a POST: " + url.error().message());
}

// One exchange: name, connection, encryption, request, answer.
template <typename Stream>
class Exchange {
 public:
  Exchange(asio::io_context& io, Stream stream, const Url& url, const HttpPost& post)
      : resolver_(io), stream_(std::move(stream)), url_(url) {
    request_.method(http::verb::post);
    request_.target(url.target);
    request_.version(11);
    const bool usual = url.port == (url.scheme == "https" ? 443 : 80);
    const std::string name =
        url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
    request_.set(http::field::host, usual ? name : name + ":" + std::to_string(url.port));
    request_.set(http::field::user_agent, "zeze");
    request_.set(http::field::content_type, "application/json");
    request_.set(http::field::connection, "close");
    request_.body() = post.body;
    request_.prepare_payload();
    answer_.body_limit(kAnswerBytesMax);
    beast::get_lowest_layer(stream_).expires_after(post.timeout);
  }

  void Start() {
    const std::string port = std::to_string(url_.port);
    resolver_.async_resolve(url_.host, port, [this](SystemError error, const auto& found) {
      if (Failed(error, "looking up its name")) return;
      beast::get_lowest_layer(stream_).async_connect(found, [this](SystemError failed, auto&&) {
        if (!Failed(failed, "connecting")) Handshake();
      });
    });
  }

  // Null: not done in time.
  const std::optional<Result<void>>& result() const { return result_; }

 private:
  bool Failed(SystemError error, std::string_view step) {
    if (!error) return false;
    result_ = Error(ErrorCode::kUnavailable, fmt::format("{}: {}", step, error.message()));
    return true;
  }

  void Handshake() {
    if constexpr (std::is_same_v<Stream, beast::ssl_stream<beast::tcp_stream>>) {
      stream_.async_handshake(asio::ssl::stream_base::client, [this](SystemError error) {
        if (!Failed(error, "agreeing on encryption")) Write();
      });
    } else {
      Write();
    }
  }

  void Write() {
    http::async_write(stream_, request_, [this](SystemError error, std::size_t) {
      if (Failed(error, "sending")) return;
      http::async_read(stream_, buffer_, answer_, [this](SystemError failed, std::size_t) {
        if (failed == http::error::body_limit && answer_.is_header_done()) failed = {};
        if (!Failed(failed, "reading the answer")) Judge();
      });
    });
  }

  void Judge() {
    const unsigned status = answer_.get().result_int();
    if (status / 100 == 2) {
      result_ = Result<void>();
    } else {
      result_ = Error(ErrorCode::kUnavailable, fmt::format("it answered with status {}", status));
    }
  }

  asio::ip::tcp::resolver resolver_;
  Stream stream_;
  const Url& url_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> answer_;
  beast::flat_buffer buffer_;
  std::optional<Result<void>> result_;
};

template <typename Stream>
Result<void> Run(asio::io_context& io, Stream stream, const Url& url, const HttpPost& post) {
  Exchange<Stream> exchange(io, std::move(stream), url, post);
  exchange.Start();
  io.run_for(std::chrono::duration_cast<std::chrono::milliseconds>(post.timeout));
  if (exchange.result().has_value()) return *exchange.result();
  return Error(ErrorCode::kUnavailable, "not done in time");
}

Result<void> RunEncrypted(asio::io_context& io, const Url& url, const HttpPost& post) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  SystemError error;
  const bool failed = post.authorities_file.empty()
                          ? context.set_default_verify_paths(error).failed()
                          : context.load_verify_file(post.authorities_file, error).failed();
  if (failed) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("loading the trusted authorities: {}", error.message()));
  }
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  beast::ssl_stream<beast::tcp_stream> stream(io, context);
  stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
  // What SSL_set_tlsext_host_name does, without its cast.
  std::string name = url.host;
  SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           name.data());
  return Run(io, std::move(stream), url, post);
}

}  // namespace

Result<void> CheckHttpUrl(std::string_view url) {
  const Result<Url> parsed = Parse(url);
  return parsed.ok() ? Result<void>() : Result<void>(parsed.error());
}

Result<void> PostJson(const HttpPost& post) {
  const Result<Url> url = Parse(post.url);
  if (!url.ok()) return url.error();
  asio::io_context io(1);
  const Result<void> done = url.value().scheme == "https"
                                ? RunEncrypted(io, url.value(), post)
                                : Run(io, beast::tcp_stream(io), url.value(), post);
  if (done.ok()) return {};
  return Error(done.error().code(),
               fmt::format("POST to {}://{}:{}: {}", url.value().scheme, url.value().host,
                           url.value().port, done.error().message()));
}

}  // namespace zeze
