#include "zeze/net/tls.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/internal/tls_context.h"

namespace zeze {
namespace {

using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Error Failure(const std::string& what) {
  std::array<char, 256> text = {};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return {ErrorCode::kInvalidArgument, fmt::format("TLS: {}: {}", what, text.data())};
}

Result<void> LoadCertificate(SSL_CTX* context, const TlsOptions& options) {
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1) {
    return Failure(
        fmt::format("the certificate file '{}' cannot be used", options.certificate_file));
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.private_key_file.c_str(), SSL_FILETYPE_PEM) !=
      1) {
    return Failure(fmt::format("the key file '{}' cannot be used", options.private_key_file));
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return Failure(fmt::format("the key in '{}' does not belong to the certificate in '{}'",
                               options.private_key_file, options.certificate_file));
  }
  return {};
}

Result<void> LoadAuthorities(SSL_CTX* context, const TlsOptions& options) {
  if (options.authorities_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) == 1) return {};
    return Failure("the authorities of the system cannot be loaded");
  }
  if (SSL_CTX_load_verify_locations(context, options.authorities_file.c_str(), nullptr) == 1) {
    return {};
  }
  return Failure(fmt::format("the authorities in '{}' cannot be used", options.authorities_file));
}

Result<ContextPtr> MakeContext(const SSL_METHOD* method, const TlsOptions& options) {
  ERR_clear_error();
  ContextPtr context(SSL_CTX_new(method), &SSL_CTX_free);
  ZEZE_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(),
                                options.allow_tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
  // Idle connections keep no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_max_early_data(context.get(), 0);
  return context;
}

}  // namespace

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TlsContext::~TlsContext() = default;

Result<TlsContextPtr> TlsContext::ForServer(const TlsOptions& options) {
  if (options.certificate_file.empty() || options.private_key_file.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "TLS: a server needs a certificate file and a key file");
  }
  if (!options.authorities_file.empty() && !options.require_client_certificate) {
    return Error(ErrorCode::kInvalidArgument,
                 "TLS: authorities are given to a server that requires no certificate of clients");
  }
  Result<ContextPtr> context = MakeContext(TLS_server_method(), options);
  if (!context.ok()) return context.error();
  SSL_CTX* raw = context.value().get();
  if (Result<void> loaded = LoadCertificate(raw, options); !loaded.ok()) return loaded.error();
  if (options.require_client_certificate) {
    if (Result<void> loaded = LoadAuthorities(raw, options); !loaded.ok()) return loaded.error();
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  constexpr std::array<unsigned char, 4> kSessionContext = {'z', 'e', 'z', 'e'};
  SSL_CTX_set_session_id_context(raw, kSessionContext.data(), kSessionContext.size());
  auto impl = std::make_unique<Impl>();
  impl->context = std::move(context).value();
  return TlsContextPtr(new TlsContext(std::move(impl)));
}

Result<TlsContextPtr> TlsContext::ForClient(const TlsOptions& options) {
  if (options.certificate_file.empty() != options.private_key_file.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "TLS: a client shows a certificate with both a certificate file and a key file");
  }
  Result<ContextPtr> context = MakeContext(TLS_client_method(), options);
  if (!context.ok()) return context.error();
  SSL_CTX* raw = context.value().get();
  if (!options.certificate_file.empty()) {
    if (Result<void> loaded = LoadCertificate(raw, options); !loaded.ok()) return loaded.error();
  }
  if (options.insecure_skip_verify) {
    SSL_CTX_set_verify(raw, SSL_VERIFY_NONE, nullptr);
  } else {
    if (Result<void> loaded = LoadAuthorities(raw, options); !loaded.ok()) return loaded.error();
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  }
  auto impl = std::make_unique<Impl>();
  impl->context = std::move(context).value();
  return TlsContextPtr(new TlsContext(std::move(impl)));
}

}  // namespace zeze
