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
  // more. Their codes say how they are counted:
  //   kCorrupt          the signature is wrong         the client's address gets a strike
  //   kInvalidArgument  it is not a token at all       the client's address gets a strike
  //   kNotFound         it has expired
  //   kConflict         it was used before
  //   kInUse            it belongs to another connection
  //   kIncompatible     it is genuine, but not for this gateway as it is now
  //   kOverloaded       no more can be checked now     the client is told to come again (kBusy)
  //   others            the check failed, not the client     likewise
  // Only those that no honest client can show count against an address: after a crash of the
  // gateway hundreds of players behind one address show tokens that are not good any more.
  virtual Result<ClientIdentity> Authenticate(const Credentials& given) = 0;
};

}  // namespace zeze::arch
