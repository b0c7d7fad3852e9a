// TlsSettings: the TLS settings of one listening or connecting side, as a user wrote them.
//
//   Result<TlsContextPtr> tls = ServerTls({.certificate = {"--tls-certificate", certificate},
//                                          .key = {"--tls-key", key}});
//
// Whether a connection is encrypted is decided here, for files and command lines alike. A set that
// is incomplete is refused: it would otherwise mean plaintext, which nobody who sets one of them
// wants.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/tls.h"

namespace zeze {

struct TlsSettings {
  struct One {
    std::string_view name = {};  // As the user knows it, for messages: "TlsKeyFile", "--tls-key".
    std::string value = {};      // Empty: not set.
  };

  One certificate = {};
  One key = {};

  // Servers: clients must show a certificate signed by one of these. Clients: who may sign the
  // server's certificate; "system" means the authorities of the system.
  One authorities = {};

  // Clients only: the name in the server's certificate.
  One peer_name = {};
};

// Null if nothing is set: the connection is not encrypted. Fail with kInvalidArgument and name the
// missing setting, or the file that cannot be used.
Result<TlsContextPtr> ServerTls(const TlsSettings& settings);
Result<TlsContextPtr> ClientTls(const TlsSettings& settings);

// What ClientTls makes its context of, for programs that make it later. The files are not read.
Result<std::optional<TlsOptions>> ClientTlsOptions(const TlsSettings& settings);

}  // namespace zeze
