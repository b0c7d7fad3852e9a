#include "zeze/net/internal/tls_stream.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/internal/tls_context.h"
#include "zeze/net/net_address.h"
#include "zeze/net/tls.h"

namespace zeze::internal {

struct TlsStream::Session {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl{nullptr, &SSL_free};
  BIO* input = nullptr;     // Owned by ssl.
  BIO* output = nullptr;    // Owned by ssl.
  std::string server_name;  // As a client: whom the certificate must be for.
  bool ended = false;
};

namespace {

// What OpenSSL says about bytes that were never meant to be TLS.
bool IsNoTls(unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_HTTP_REQUEST || reason == SSL_R_BAD_RECORD_TYPE;
}

}  // namespace

TlsStream::TlsStream(TlsContextPtr context, std::unique_ptr<Session> session)
    : context_(std::move(context)), session_(std::move(session)) {
  session_->ssl.reset(SSL_new(context_->impl().context.get()));
  ZEZE_CHECK(session_->ssl != nullptr);
  session_->input = BIO_new(BIO_s_mem());
  session_->output = BIO_new(BIO_s_mem());
  ZEZE_CHECK(session_->input != nullptr);
  ZEZE_CHECK(session_->output != nullptr);
  SSL_set_bio(session_->ssl.get(), session_->input, session_->output);
}

TlsStream::~TlsStream() = default;

std::unique_ptr<TlsStream> TlsStream::ForServer(TlsContextPtr context) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context), std::make_unique<Session>()));
  SSL_set_accept_state(stream->session_->ssl.get());
  return stream;
}

std::unique_ptr<TlsStream> TlsStream::ForClient(TlsContextPtr context,
                                                const std::string& server_name) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context), std::make_unique<Session>()));
  SSL* ssl = stream->session_->ssl.get();
  stream->session_->server_name = server_name;
  SSL_set_connect_state(ssl);
  if (NetAddress::FromText(server_name, 0).ok()) {
    ZEZE_CHECK(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server_name.c_str()) == 1);
  } else {
    ZEZE_CHECK(SSL_set1_host(ssl, server_name.c_str()) == 1);
    std::string name = server_name;  // The function takes a pointer to what could be changed.
    ZEZE_CHECK(
        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1);
  }
  return stream;
}

Error TlsStream::Failure(const char* what) const {
  const long verdict = SSL_get_verify_result(session_->ssl.get());
  std::array<char, 256> text = {};
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  std::string message = fmt::format("TLS: {}", what);
  if (code != 0) message += fmt::format(": {}", text.data());
  if (verdict != X509_V_OK) {
    message += fmt::format(": the peer's certificate is refused: {}",
                           X509_verify_cert_error_string(verdict));
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
      message += fmt::format(", it is not for \"{}\"", session_->server_name);
    }
  } else if (!ready() && IsNoTls(code)) {
    message += ": the peer does not speak TLS on this port";
  }
  return {ErrorCode::kCorrupt, std::move(message)};
}

Result<void> TlsStream::Start() {
  return Handshake();
}

Result<void> TlsStream::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_->ssl.get());
  if (done == 1) return {};
  const int why = SSL_get_error(session_->ssl.get(), done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return {};
  return Failure("the handshake failed");
}

Result<void> TlsStream::Read(std::string_view wire, std::string& plain) {
  SSL* ssl = session_->ssl.get();
  const int written = BIO_write(session_->input, wire.data(), static_cast<int>(wire.size()));
  ZEZE_CHECK(written == static_cast<int>(wire.size()));  // A memory BIO takes everything.
  if (!ready()) {
    if (Result<void> shaken = Handshake(); !shaken.ok()) return shaken;
    if (!ready()) return {};
  }
  while (true) {
    constexpr std::size_t kRecordBytesMax = 16384;
    const std::size_t before = plain.size();
    plain.resize(before + kRecordBytesMax);
    ERR_clear_error();
    const int count = SSL_read(ssl, plain.data() + before, static_cast<int>(kRecordBytesMax));
    plain.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count > 0) continue;
    const int why = SSL_get_error(ssl, count);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return {};
    if (why == SSL_ERROR_ZERO_RETURN) {
      session_->ended = true;
      return {};
    }
    return Failure("reading failed");
  }
}

Result<void> TlsStream::Write(std::string_view plain) {
  // Never before the handshake has ended; so it was the peer who broke the connection.
  if (!ready()) return Error(ErrorCode::kUnavailable, "TLS: the connection has failed before");
  if (plain.empty()) return {};
  ERR_clear_error();
  std::size_t written = 0;
  const int done = SSL_write_ex(session_->ssl.get(), plain.data(), plain.size(), &written);
  if (done == 1 && written == plain.size()) return {};
  return Failure("writing failed");
}

void TlsStream::TakeOutput(std::string& wire) {
  const std::size_t pending = BIO_ctrl_pending(session_->output);
  if (pending == 0) return;
  const std::size_t before = wire.size();
  wire.resize(before + pending);
  const int count = BIO_read(session_->output, wire.data() + before, static_cast<int>(pending));
  ZEZE_CHECK(count == static_cast<int>(pending));
}

bool TlsStream::ready() const {
  return SSL_is_init_finished(session_->ssl.get()) == 1;
}

std::string TlsStream::Binding() const {
  constexpr std::string_view kLabel = "EXPORTER-Channel-Binding";
  constexpr std::size_t kBytes = 32;
  std::string binding(kBytes, '\0');
  // With an empty context, which is not the same as none for TLS 1.2.
  const int exported = SSL_export_keying_material(
      session_->ssl.get(), reinterpret_cast<unsigned char*>(binding.data()), binding.size(),
      kLabel.data(), kLabel.size(), reinterpret_cast<const unsigned char*>(""), 0, 1);
  return exported == 1 ? binding : std::string();
}

bool TlsStream::ended() const {
  return session_->ended;
}

}  // namespace zeze::internal
