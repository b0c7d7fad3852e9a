// DiffieHellman: the key agreement of encrypted connections, and the keys made from it.
//
//   Result<DiffieHellman> own = DiffieHellman::Generate();
//   Send(own.value().PublicValue());
//   Result<std::string> material = own.value().SharedMaterial(peer_public_value);
//   SessionKeys keys = DeriveSessionKeys(material.value(), std::nullopt);
//
// The group is the 768-bit one that all peers use. It hides traffic from onlookers of its time; it
// does not stop an attacker who can alter traffic or spend serious computing power.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/aes_cfb.h"

namespace zeze {

// Numbers are exchanged as peers write them: two's complement, most significant byte first, in as
// few bytes as possible; so a leading 00 stands exactly where the top bit would be set.
class DiffieHellman {
 public:
  // Draws a secret exponent of 128 bits. Fails with kUnavailable if the system has no randomness.
  static Result<DiffieHellman> Generate();

  // With a known exponent, for tests. Fails with kInvalidArgument if it is negative.
  static Result<DiffieHellman> FromExponent(std::string_view exponent);

  ~DiffieHellman();
  DiffieHellman(DiffieHellman&&) noexcept;
  DiffieHellman& operator=(DiffieHellman&&) noexcept;

  // What the peer needs.
  const std::string& PublicValue() const { return public_value_; }

  // What both sides then know. Fails with kCorrupt on a value that no honest peer sends: not
  // between 2 and p - 2, or longer than the group allows. Such values would make the key
  // predictable.
  Result<std::string> SharedMaterial(std::string_view peer_public_value) const;

 private:
  struct Secret;
  explicit DiffieHellman(std::unique_ptr<Secret> secret);

  std::unique_ptr<Secret> secret_;
  std::string public_value_;
};

// What the keys of the two directions are made from.
struct SessionSecrets {
  std::string to_server;
  std::string to_client;
};

// Halves of the material; each an HMAC-MD5 keyed by the server's address (its 4 or 16 bytes), if
// one is given.
SessionSecrets DeriveSessionSecrets(std::string_view material,
                                    std::optional<std::string_view> server_address);

// Key and initial vector are both the MD5 of a secret.
struct SessionKeys {
  AesKey to_server;
  AesKey to_client;
};
SessionKeys DeriveSessionKeys(std::string_view material,
                              std::optional<std::string_view> server_address);

AesBlock Md5(std::string_view data);
AesBlock HmacMd5(std::string_view key, std::string_view data);

}  // namespace zeze
