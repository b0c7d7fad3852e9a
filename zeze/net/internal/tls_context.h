// TlsContext::Impl: OpenSSL's side of a TlsContext.

#pragma once

#include <memory>

#include <openssl/ssl.h>

#include "zeze/net/tls.h"

namespace zeze {

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{nullptr, &SSL_CTX_free};
};

}  // namespace zeze
