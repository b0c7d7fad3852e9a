#include "zeze/net/internal/handshake_machine.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/net/aes_cfb.h"
#include "zeze/net/dh.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/internal/codec_chain.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rsa.h"
#include "zeze/net/service_options.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

namespace {

template <typename Argument>
std::string OneWay(std::int32_t protocol_id, const Argument& argument) {
  ByteWriter payload;
  argument.Encode(payload);
  ByteWriter out;
  EncodeFrame({.module_id = 0, .protocol_id = protocol_id, .payload = payload.view()}, out);
  return out.Release();
}

struct Nothing {
  static void Encode(ByteWriter& out) { out.WriteEnd(); }
};

template <typename Argument>
Result<Argument> Read(const Frame& frame, std::string_view what) {
  ByteReader in(frame.payload);
  Argument argument;
  argument.Decode(in);
  if (!in.ok()) return in.ToError(what);
  return argument;
}

bool Is(const Frame& frame, std::int32_t protocol_id) {
  return frame.module_id == 0 && frame.protocol_id == protocol_id &&
         frame.family == FrameFamily::kOneWay;
}

Error Unexpected(const Frame& frame, std::string_view state) {
  return {ErrorCode::kCorrupt,
          fmt::format("a {} message of module {} protocol {} came {}", ToString(frame.family),
                      frame.module_id, frame.protocol_id, state)};
}

bool IsKnown(CompressType type) {
  return type == CompressType::kNone || type == CompressType::kMppc || type == CompressType::kZstd;
}

// What the server uses for a direction: the client's wish, unless it is unknown or drops a
// compression that the server asked for.
CompressType Decide(CompressType wish, CompressType configured) {
  if (!IsKnown(wish)) return CompressType::kMppc;
  if (wish == CompressType::kNone && configured != CompressType::kNone) return CompressType::kMppc;
  return wish;
}

// Diffie-Hellman keeps onlookers out; RSA also proves that the peer has the server's key.
int StrengthOf(EncryptType type) {
  switch (type) {
    case EncryptType::kNone:
      return 0;
    case EncryptType::kAesWithIp:
    case EncryptType::kAes:
      return 1;
    case EncryptType::kRsaAes:
      return 2;
  }
  return 0;
}

std::optional<AesKey> KeyOf(const std::optional<SessionKeys>& keys, AesKey SessionKeys::* member) {
  if (!keys.has_value()) return std::nullopt;
  return (*keys).*member;
}

std::optional<std::string_view> AddressFor(EncryptType encrypt, const NetAddress& address) {
  if (encrypt != EncryptType::kAesWithIp) return std::nullopt;
  return address.bytes();
}

}  // namespace

ServerHandshake::ServerHandshake(const HandshakeOptions& options, const NetAddress& server_address)
    : options_(options), server_address_(options.secure_ip.value_or(server_address)) {}

std::string ServerHandshake::Start() const {
  ServerHello hello;
  hello.encrypt = options_.encrypt;
  hello.compress_to_client = options_.compress_to_client;
  hello.compress_to_server = options_.compress_to_server;
  return OneWay(kServerHelloId, hello);
}

Result<HandshakeStep> ServerHandshake::OnFrame(const Frame& frame) {
  if (Is(frame, kClientChoiceId) && !chosen_) {
    Result<ClientChoice> choice = Read<ClientChoice>(frame, "CHandshake");
    if (!choice.ok()) return choice.error();
    return OnChoice(choice.value());
  }
  if (!Is(frame, kClientDoneId)) return Unexpected(frame, "before the end of the handshake");
  if (options_.encrypt != EncryptType::kNone && options_.require_encryption && !encrypted_) {
    return Error(ErrorCode::kCorrupt,
                 "the client wants no encryption, but this server requires it");
  }
  HandshakeStep step;
  step.ready = true;
  return step;
}

Result<HandshakeStep> ServerHandshake::OnChoice(const ClientChoice& choice) {
  chosen_ = true;
  ServerChoice own;
  Result<std::optional<SessionKeys>> keys = AgreeOnKeys(choice, own.encrypt_parameter);
  if (!keys.ok()) return keys.error();
  encrypted_ = keys.value().has_value();
  own.encrypt = choice.encrypt;
  own.compress_to_client = Decide(choice.compress_to_client, options_.compress_to_client);
  own.compress_to_server = Decide(choice.compress_to_server, options_.compress_to_server);
  HandshakeStep step;
  step.before = OneWay(kServerChoiceId, own);
  step.output = std::make_unique<OutputCodec>(own.compress_to_client,
                                              KeyOf(keys.value(), &SessionKeys::to_client));
  step.input = std::make_unique<InputCodec>(own.compress_to_server,
                                            KeyOf(keys.value(), &SessionKeys::to_server));
  return step;
}

Result<std::optional<SessionKeys>> ServerHandshake::AgreeOnKeys(const ClientChoice& choice,
                                                                std::string& own_parameter) const {
  std::optional<SessionKeys> keys;
  switch (choice.encrypt) {
    case EncryptType::kNone:
      return keys;
    case EncryptType::kAesWithIp:
    case EncryptType::kAes: {
      Result<DiffieHellman> own = DiffieHellman::Generate();
      if (!own.ok()) return own.error();
      Result<std::string> material = own.value().SharedMaterial(choice.encrypt_parameter);
      if (!material.ok()) return material.error();
      own_parameter = own.value().PublicValue();
      keys = DeriveSessionKeys(material.value(), AddressFor(choice.encrypt, server_address_));
      return keys;
    }
    case EncryptType::kRsaAes: {
      if (options_.server_private_key == nullptr) {
        return Error(ErrorCode::kInvalidArgument,
                     "the client chose RSA, but this server has no key: set RsaPriKeyFile");
      }
      Result<SessionKeys> accepted =
          AcceptRsaSessionSecret(*options_.server_private_key, choice.encrypt_parameter);
      if (!accepted.ok()) return accepted.error();
      keys = accepted.value();
      return keys;
    }
  }
  return Error(ErrorCode::kCorrupt, fmt::format("the client chose encryption type {}, which does "
                                                "not exist",
                                                static_cast<std::int32_t>(choice.encrypt)));
}

ClientHandshake::ClientHandshake(const HandshakeOptions& options, const NetAddress& server_address)
    : options_(options), server_address_(server_address) {}

Result<HandshakeStep> ClientHandshake::OnFrame(const Frame& frame) {
  if (state_ == State::kWaitForHello && Is(frame, kServerHelloId)) {
    Result<ServerHello> hello = Read<ServerHello>(frame, "SHandshake0");
    if (!hello.ok()) return hello.error();
    return OnHello(hello.value());
  }
  if (state_ == State::kWaitForChoice && Is(frame, kServerChoiceId)) {
    Result<ServerChoice> choice = Read<ServerChoice>(frame, "SHandshake");
    if (!choice.ok()) return choice.error();
    return OnServerChoice(choice.value());
  }
  return Unexpected(frame, "during the handshake");
}

Result<HandshakeStep> ClientHandshake::OnHello(const ServerHello& hello) {
  // Anybody between the two can change the greeting, which is neither encrypted nor signed.
  if (options_.require_encryption && StrengthOf(hello.encrypt) < StrengthOf(options_.encrypt)) {
    return Error(ErrorCode::kIncompatible,
                 fmt::format("the server offers encryption type {}, but this client is configured "
                             "to require type {}",
                             static_cast<std::int32_t>(hello.encrypt),
                             static_cast<std::int32_t>(options_.encrypt)));
  }
  HandshakeStep step;
  if (hello.encrypt == EncryptType::kNone && hello.compress_to_client == CompressType::kNone &&
      hello.compress_to_server == CompressType::kNone) {
    state_ = State::kReady;
    step.after = OneWay(kClientDoneId, Nothing());
    step.ready = true;
    return step;
  }
  ClientChoice choice;
  const auto wish = [](CompressType recommended) {
    return IsKnown(recommended) ? recommended : CompressType::kMppc;
  };
  choice.compress_to_client = wish(hello.compress_to_client);
  choice.compress_to_server = wish(hello.compress_to_server);
  encrypt_ = hello.encrypt;
  if (encrypt_ < EncryptType::kNone || encrypt_ > EncryptType::kRsaAes)
    encrypt_ = EncryptType::kAes;
  choice.encrypt = encrypt_;
  if (encrypt_ == EncryptType::kAes || encrypt_ == EncryptType::kAesWithIp) {
    Result<DiffieHellman> own = DiffieHellman::Generate();
    if (!own.ok()) return own.error();
    choice.encrypt_parameter = own.value().PublicValue();
    diffie_hellman_.emplace(std::move(own).value());
  } else if (encrypt_ == EncryptType::kRsaAes) {
    if (options_.server_key_hex.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   "the server asks for RSA, but its public key is not known here: set RsaPubKey");
    }
    Result<RsaPublicKey> key = RsaPublicKey::FromModulusHex(options_.server_key_hex);
    if (!key.ok()) return key.error();
    Result<RsaSessionSecret> secret = RsaSessionSecret::Generate(key.value());
    if (!secret.ok()) return secret.error();
    choice.encrypt_parameter = secret.value().encrypted();
    rsa_secret_.emplace(std::move(secret).value());
  }
  state_ = State::kWaitForChoice;
  step.before = OneWay(kClientChoiceId, choice);
  return step;
}

Result<HandshakeStep> ClientHandshake::OnServerChoice(const ServerChoice& choice) {
  if (choice.encrypt != encrypt_) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the server answered with encryption type {} instead of {}",
                             static_cast<std::int32_t>(choice.encrypt),
                             static_cast<std::int32_t>(encrypt_)));
  }
  if (!IsKnown(choice.compress_to_client) || !IsKnown(choice.compress_to_server)) {
    return Error(ErrorCode::kCorrupt, "the server chose a compression that does not exist");
  }
  std::optional<SessionKeys> keys;
  if (rsa_secret_.has_value()) keys = rsa_secret_->keys();
  if (diffie_hellman_.has_value()) {
    Result<std::string> material = diffie_hellman_->SharedMaterial(choice.encrypt_parameter);
    if (!material.ok()) return material.error();
    keys = DeriveSessionKeys(material.value(), AddressFor(encrypt_, server_address_));
  }
  state_ = State::kReady;
  HandshakeStep step;
  step.output = std::make_unique<OutputCodec>(choice.compress_to_server,
                                              KeyOf(keys, &SessionKeys::to_server));
  step.input =
      std::make_unique<InputCodec>(choice.compress_to_client, KeyOf(keys, &SessionKeys::to_client));
  step.after = OneWay(kClientDoneId, Nothing());
  step.ready = true;
  return step;
}

}  // namespace zeze::internal
