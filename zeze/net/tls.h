// TlsContext: certificate, key and trusted authorities of one side of encrypted connections.
//
//   Result<TlsContextPtr> tls = TlsContext::ForServer({.certificate_file = "server.pem",
//                                                      .private_key_file = "server.key"});
//   service.Listen({.port = 5004, .tls = tls.value()});
//
// This is the encryption to use: the handshake's own (see handshake.h) only keeps onlookers out.

#pragma once

#include <memory>
#include <string>

#include "zeze/base/result.h"

namespace zeze {

struct TlsOptions {
  // PEM: own certificate followed by intermediate ones, and its key. Servers need both; clients
  // that must show who they are, too.
  std::string certificate_file = {};
  std::string private_key_file = {};

  // PEM: who may sign the peer's certificate. Empty: the authorities of the system.
  std::string authorities_file = {};

  // Servers: require a certificate of the client. Clients always require the server's, unless
  // insecure_skip_verify says that anybody may pose as the server (tests only).
  bool require_client_certificate = false;
  bool insecure_skip_verify = false;

  // 1.3 unless peers are too old for it. 0-RTT is never used: it can be replayed.
  bool allow_tls_1_2 = false;
};

class TlsContext;
using TlsContextPtr = std::shared_ptr<const TlsContext>;

// Immutable, shared by any number of connections. Sessions are resumed where the peer can.
class TlsContext {
 public:
  // Fail with kInvalidArgument, naming the file, if something cannot be loaded or does not fit.
  static Result<TlsContextPtr> ForServer(const TlsOptions& options);
  static Result<TlsContextPtr> ForClient(const TlsOptions& options);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit TlsContext(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace zeze
