// Authenticator: decides who a client is. Derive from it to ask one's own account service.
//
//   class MyAuthenticator : public arch::Authenticator {
//     Result<arch::ClientIdentity> Authenticate(const arch::Credentials& given) override { ... }
//   };

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/net_address.h"

namespace zeze::arch {

// What a client shows.
struct Credentials {
  std::string_view token = {};
  std::int64_t app_version = 0;
  NetAddress address = {};
  std::string_view tls_binding = {};  // Of the connection: Connection::TlsBinding.
};

struct ClientIdentity {
  std::string account = {};
  std::int64_t app_version = 0;  // Servers of its main part only; 0: any.
  std::string context = {};      // Its first user state; usually empty until a server sets it.
};

// Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // On a worker: it may wait. Errors go to the log, the client hears that it was refused, nothing
  // more. By their codes they are counted: kCorrupt, the signature is wrong; kNotFound, the token
  // has expired; kConflict, it was used before; kInUse, it belongs to another connection;
  // kOverloaded, no more can be checked now; others, it is none.
  virtual Result<ClientIdentity> Authenticate(const Credentials& given) = 0;
};

}  // namespace zeze::arch
