// RsaPublicKey, RsaPrivateKey: key agreement by the server's RSA key.
//
//   Result<RsaSessionSecret> secret = RsaSessionSecret::Generate(server_key);     // Client.
//   Send(secret.value().encrypted());
//   Use(secret.value().keys());
//
//   Result<SessionKeys> keys = AcceptRsaSessionSecret(own_key, received);          // Server.

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/dh.h"

namespace zeze {

// A key of at least 2048 bits with the exponent 65537.
class RsaPublicKey {
 public:
  // The modulus as hexadecimal digits, as configurations hold it. Fails with kInvalidArgument.
  static Result<RsaPublicKey> FromModulusHex(std::string_view hex);

  ~RsaPublicKey();
  RsaPublicKey(RsaPublicKey&&) noexcept;
  RsaPublicKey& operator=(RsaPublicKey&&) noexcept;

  // PKCS#1 v1.5. Fails with kInvalidArgument if the data is too long for the key.
  Result<std::string> Encrypt(std::string_view data) const;

 private:
  struct Key;
  explicit RsaPublicKey(std::unique_ptr<Key> key);
  std::unique_ptr<Key> key_;
};

class RsaPrivateKey {
 public:
  // What a PKCS#8 file in DER form holds. Fails with kInvalidArgument.
  static Result<RsaPrivateKey> FromPkcs8(std::string_view der);

  // A new key of 2048 bits.
  static Result<RsaPrivateKey> Generate();

  ~RsaPrivateKey();
  RsaPrivateKey(RsaPrivateKey&&) noexcept;
  RsaPrivateKey& operator=(RsaPrivateKey&&) noexcept;

  std::string ModulusHex() const;
  std::string ToPkcs8() const;

 private:
  friend Result<SessionKeys> AcceptRsaSessionSecret(const RsaPrivateKey& key,
                                                    std::string_view encrypted);
  struct Key;
  explicit RsaPrivateKey(std::unique_ptr<Key> key);
  std::unique_ptr<Key> key_;
};

inline constexpr std::size_t kRsaSecretBytes = 64;

// What a client draws: 64 random bytes, of which the keys of both directions are parts.
class RsaSessionSecret {
 public:
  // Fails with kUnavailable if the system has no randomness.
  static Result<RsaSessionSecret> Generate(const RsaPublicKey& server_key);

  const std::string& encrypted() const { return encrypted_; }
  const SessionKeys& keys() const { return keys_; }

 private:
  std::string encrypted_;
  SessionKeys keys_;
};

// The keys that a client has drawn and encrypted. A block that cannot be decrypted gives random
// keys, not an error: with them the connection fails at its first frame, and an attacker who sends
// altered blocks learns nothing from when and how it fails. Fails with kUnavailable if the system
// has no randomness.
Result<SessionKeys> AcceptRsaSessionSecret(const RsaPrivateKey& key, std::string_view encrypted);

}  // namespace zeze
