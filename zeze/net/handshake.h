// Handshake: the arguments of the messages that open a connection.
//
//   ServerHello hello;             // Offer: no encryption, no compression.
//   hello.Encode(out);             // Payload of a one-way frame, module 0, kServerHelloId.
//
// They are plain sequences of numbers, not beans. Decoders accept the shorter sequences of old
// peers.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeze/base/name_hash.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

// Sent as numbers: append, never renumber.
enum class EncryptType : std::int32_t {
  kNone = 0,
  kAesWithIp = 1,  // Diffie-Hellman, the server's address is part of the key.
  kAes = 2,        // Diffie-Hellman.
  kRsaAes = 3,     // Keys encrypted with the server's public key.
};
enum class CompressType : std::int32_t { kNone = 0, kMppc = 1, kZstd = 2 };

inline constexpr std::int32_t kServerHelloId = HashName32("Zeze.Services.Handshake.SHandshake0");
inline constexpr std::int32_t kClientChoiceId = HashName32("Zeze.Services.Handshake.CHandshake");
inline constexpr std::int32_t kServerChoiceId = HashName32("Zeze.Services.Handshake.SHandshake");
inline constexpr std::int32_t kClientDoneId = HashName32("Zeze.Services.Handshake.CHandshakeDone");
inline constexpr std::int32_t kKeepAliveId = HashName32("Zeze.Services.Handshake.KeepAlive");
inline constexpr std::int32_t kKeyExchangeId = HashName32("Zeze.Services.Handshake.KeyExchange");

// Numbers that name no known type are kept: what to do with them is for the negotiation to say.

// SHandshake0, server to client, as soon as the connection stands.
struct ServerHello {
  EncryptType encrypt = EncryptType::kNone;
  std::vector<EncryptType> supported_encrypt = {EncryptType::kAesWithIp, EncryptType::kAes,
                                                EncryptType::kRsaAes};
  CompressType compress_to_client = CompressType::kNone;
  CompressType compress_to_server = CompressType::kNone;
  std::vector<CompressType> supported_compress = {CompressType::kZstd, CompressType::kMppc};

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const ServerHello&) const = default;
};

// CHandshake, client to server.
struct ClientChoice {
  EncryptType encrypt = EncryptType::kNone;
  std::string encrypt_parameter;  // The client's public value, or the keys encrypted by RSA.
  CompressType compress_to_client = CompressType::kNone;
  CompressType compress_to_server = CompressType::kNone;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const ClientChoice&) const = default;
};

// SHandshake, server to client: what both use from here on.
struct ServerChoice {
  std::string encrypt_parameter;  // The server's public value.
  CompressType compress_to_client = CompressType::kNone;
  CompressType compress_to_server = CompressType::kNone;
  EncryptType encrypt = EncryptType::kNone;

  void Encode(ByteWriter& out) const;
  void Decode(ByteReader& in);
  bool operator==(const ServerChoice&) const = default;
};

}  // namespace zeze
