// Checks of the vectors of connections: frames, handshake, key agreement, encryption, compression.

#include <gtest/gtest.h>

#include "tests/compatibility/core_vectors.h"
#include "zeze/net/aes_cfb.h"
#include "zeze/net/dh.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/mppc.h"
#include "zeze/net/zstd_stream.h"
#include "zeze/serialize/byte_reader.h"

namespace zeze::compatibility {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20;

FrameFamily ToFamily(std::string_view kind) {
  static const std::map<std::string, FrameFamily, std::less<>> families = {
      {"protocol", FrameFamily::kOneWay},
      {"request", FrameFamily::kRequest},
      {"response", FrameFamily::kResponse},
      {"raftRequest", FrameFamily::kRaftRequest},
      {"raftResponse", FrameFamily::kRaftResponse}};
  const auto found = families.find(kind);
  if (found == families.end()) ADD_FAILURE() << "no family for " << kind;
  return found == families.end() ? FrameFamily::kOneWay : found->second;
}

void CheckFrame(const Vector& vector) {
  const Json& value = vector.value;
  const std::string payload = FromHex(value["bodyHex"].text);
  const FrameFamily family = ToFamily(value["kind"].text);
  const bool raft = value["kind"].text.starts_with("raft");
  const std::string& about = value["about"].text;
  const bool has_time = about.find("createTime=") != std::string::npos;
  const Frame frame{
      .module_id = static_cast<std::int32_t>(ToInt(value["moduleId"].text)),
      .protocol_id = static_cast<std::int32_t>(ToInt(value["protocolId"].text)),
      .family = family,
      .result_code = ToInt(value["resultCode"].text),
      .session_id = value.Has("sessionId") ? ToInt(value["sessionId"].text) : 0,
      .client_id = raft ? "cid" : "",
      .request_id = raft ? 9 : 0,
      .create_time = has_time ? NumberAfter(about, "createTime=") : 0,
      .payload = payload,
  };
  ByteWriter out;
  EncodeFrame(frame, out);
  EXPECT_EQ(ToHex(out.view()), vector.hex);

  const std::string bytes = vector.bytes();
  std::string_view stream = bytes;
  Result<std::optional<RawFrame>> raw = TakeFrame(stream, kBytesMax);
  ASSERT_TRUE(raw.ok()) << raw.error().message();
  ASSERT_TRUE(raw.value().has_value());
  EXPECT_EQ(stream.size(), 0U);
  Result<Frame> parsed = ParseFrame(*raw.value());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  const Frame& read = parsed.value();
  EXPECT_EQ(read.module_id, frame.module_id);
  EXPECT_EQ(read.protocol_id, frame.protocol_id);
  EXPECT_EQ(read.family, frame.family);
  EXPECT_EQ(read.result_code, frame.result_code);
  EXPECT_EQ(read.session_id, frame.session_id);
  EXPECT_EQ(read.client_id, frame.client_id);
  EXPECT_EQ(read.request_id, frame.request_id);
  EXPECT_EQ(read.create_time, frame.create_time);
  EXPECT_EQ(ToHex(read.payload), value["bodyHex"].text);
}

// Arguments of peers from before compression could be negotiated.
void CheckOldHandshake(const Vector& vector) {
  const std::string bytes = vector.bytes();
  ByteReader in(bytes);
  if (vector.text().starts_with("BSHandshake0Argument")) {
    ServerHello hello;
    hello.Decode(in);
    EXPECT_EQ(hello, (ServerHello{.encrypt = EncryptType::kAesWithIp,
                                  .supported_encrypt = {},
                                  .compress_to_client = CompressType::kMppc,
                                  .compress_to_server = CompressType::kMppc,
                                  .supported_compress = {}}));
  } else if (vector.text().starts_with("BCHandshakeArgument")) {
    ClientChoice choice;
    choice.Decode(in);
    EXPECT_EQ(choice, (ClientChoice{.encrypt = EncryptType::kAesWithIp,
                                    .encrypt_parameter = "ab",
                                    .compress_to_client = CompressType::kMppc,
                                    .compress_to_server = CompressType::kMppc}));
  } else {
    ASSERT_TRUE(vector.text().starts_with("BSHandshakeArgument"));
    ServerChoice choice;
    choice.Decode(in);
    EXPECT_EQ(choice, (ServerChoice{.encrypt_parameter = "ab",
                                    .compress_to_client = CompressType::kMppc,
                                    .compress_to_server = CompressType::kMppc,
                                    .encrypt = EncryptType::kAesWithIp}));
  }
  EXPECT_TRUE(in.ok()) << in.error_message();
  EXPECT_EQ(in.remaining(), 0U);
}

// "dh/case0/material" belongs to "dh/case0/clientRandom".
DiffieHellman Party(const Vector& vector, std::string_view random) {
  const std::string group = vector.name.substr(0, vector.name.find('/', 3) + 1);
  const Vector& exponent = CoreVectors::Load().Named(group + std::string(random));
  return std::move(DiffieHellman::FromExponent(exponent.bytes()).value());
}

std::string Material(const Vector& vector) {
  const DiffieHellman client = Party(vector, "clientRandom");
  const DiffieHellman server = Party(vector, "serverRandom");
  const std::string material = client.SharedMaterial(server.PublicValue()).value();
  EXPECT_EQ(server.SharedMaterial(client.PublicValue()).value(), material);
  return material;
}

void CheckExponent(const Vector& vector) {
  // The public value it leads to is another vector.
  const bool client = vector.name.ends_with("clientRandom");
  const std::string group = vector.name.substr(0, vector.name.rfind('/') + 1);
  Result<DiffieHellman> party = DiffieHellman::FromExponent(vector.bytes());
  ASSERT_TRUE(party.ok()) << party.error().message();
  const Vector& expected =
      CoreVectors::Load().Named(group + (client ? "clientPublic" : "serverPublic"));
  EXPECT_EQ(ToHex(party.value().PublicValue()), expected.hex);
}

void CheckPublicValue(const Vector& vector) {
  const bool client = vector.name.ends_with("clientPublic");
  EXPECT_EQ(ToHex(Party(vector, client ? "clientRandom" : "serverRandom").PublicValue()),
            vector.hex);
}

std::string ToText(const AesBlock& block) {
  return std::string(block.begin(), block.end());
}

void CheckSecret(const Vector& vector) {
  const std::string address = FromHex("7f000001");
  const SessionSecrets secrets = DeriveSessionSecrets(Material(vector), address);
  const bool first = vector.type.find("first half") != std::string::npos;
  EXPECT_EQ(ToHex(first ? secrets.to_server : secrets.to_client), vector.hex);
}

void CheckSessionKey(const Vector& vector) {
  const std::string address = FromHex("7f000001");
  const bool with_address = vector.name.find("/type1/") != std::string::npos;
  const SessionKeys keys =
      DeriveSessionKeys(Material(vector), with_address ? std::optional(address) : std::nullopt);
  const bool to_server = vector.type.ends_with("client to server");
  const AesKey& key = to_server ? keys.to_server : keys.to_client;
  EXPECT_EQ(ToHex(ToText(key.key)), vector.hex);
  EXPECT_EQ(ToHex(ToText(key.iv)), vector.hex);
}

void CheckAes(const Vector& vector) {
  AesKey key;
  for (std::size_t i = 0; i < key.key.size(); ++i) {
    key.key[i] = static_cast<std::uint8_t>(i);
    key.iv[i] = static_cast<std::uint8_t>(0xF0 + i);
  }
  const std::string plain = FromHex(vector.text());
  // In pieces of every size: the position is kept between calls.
  for (std::size_t piece = 1; piece <= plain.size() + 1; ++piece) {
    std::string bytes = plain;
    AesCfb encrypt(AesCfb::Mode::kEncrypt, key);
    AesCfb decrypt(AesCfb::Mode::kDecrypt, key);
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      encrypt.Apply(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i)));
    }
    EXPECT_EQ(ToHex(bytes), vector.hex);
    std::string decrypted = vector.bytes();
    for (std::size_t i = 0; i < decrypted.size(); i += piece) {
      decrypt.Apply(std::span(decrypted).subspan(i, std::min(piece, decrypted.size() - i)));
    }
    EXPECT_EQ(ToHex(decrypted), vector.text());
  }
}

// Parts are separated by flushes: after each, everything before it must have arrived. Which copies
// an encoder finds is its own affair, as long as it does not do worse.
template <typename Encoder, typename Decoder>
void CheckCompression(const Vector& vector) {
  const std::vector<std::string> parts = Split(vector.text(), '|');
  const std::vector<std::string> theirs = Split(vector.hex, '|');
  ASSERT_EQ(parts.size(), theirs.size());
  Encoder encoder;
  Decoder decoder_of_theirs, decoder_of_ours;
  std::size_t our_bytes = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string decoded;
    Result<void> result = decoder_of_theirs.Write(FromHex(theirs[i]), kBytesMax, decoded);
    EXPECT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(ToHex(decoded), parts[i]);

    std::string ours;
    encoder.Write(FromHex(parts[i]), ours);
    encoder.Flush(ours);
    our_bytes += ours.size();
    decoded.clear();
    result = decoder_of_ours.Write(ours, kBytesMax, decoded);
    EXPECT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(ToHex(decoded), parts[i]);
  }
  EXPECT_LE(our_bytes, (vector.hex.size() - parts.size() + 1) / 2);
}

}  // namespace

void AddNetCheckers(Checkers& checkers) {
  checkers["frame"] = CheckFrame;
  checkers["decode"] = CheckOldHandshake;
  checkers["bigint"] = CheckExponent;
  checkers["encryptParam of *"] = CheckPublicValue;
  checkers["shared material *"] = [](const Vector& vector) {
    EXPECT_EQ(ToHex(Material(vector)), vector.hex);
  };
  checkers["HMAC-MD5(*"] = CheckSecret;
  checkers["AES key and IV*"] = CheckSessionKey;
  checkers["AES-128-CFB128 key 00..0f iv f0..ff"] = CheckAes;
  checkers["mppc (| = flush)"] = [](const Vector& vector) {
    CheckCompression<MppcEncoder, MppcDecoder>(vector);
  };
  checkers["zstd stream*"] = [](const Vector& vector) {
    CheckCompression<ZstdEncoder, ZstdDecoder>(vector);
  };
}

}  // namespace zeze::compatibility
