// ServerHandshake, ClientHandshake: the messages that open a connection, without the connection.
//
//   std::string hello = server.Start();
//   Result<HandshakeStep> step = client.OnFrame(frame);
//   Send(step.value().before); Switch(step.value()); Send(step.value().after);

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeze/base/result.h"
#include "zeze/net/dh.h"
#include "zeze/net/frame.h"
#include "zeze/net/handshake.h"
#include "zeze/net/internal/codec_chain.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rsa.h"
#include "zeze/net/service_options.h"

namespace zeze::internal {

// No argument of a handshake is longer, whatever the keys: who sends more is no peer.
inline constexpr std::size_t kHandshakeBytesMax = 4096;

// What to do after a message, in this order.
struct HandshakeStep {
  std::string before = {};              // To send with the codec of before.
  std::unique_ptr<OutputCodec> output;  // For everything sent later. Null: as before.
  std::unique_ptr<InputCodec> input;    // For everything received behind this message. The same.
  std::string after = {};               // To send with the codec of now.
  bool ready = false;
};

// Fails with kCorrupt on a message that does not belong here, and with kInvalidArgument if this
// side lacks what the peer asks for, such as a key.
class ServerHandshake {
 public:
  // `server_address` counts where the options name no other.
  ServerHandshake(const HandshakeOptions& options, const NetAddress& server_address);

  // What to send first.
  std::string Start() const;

  Result<HandshakeStep> OnFrame(const Frame& frame);

 private:
  Result<HandshakeStep> OnChoice(const ClientChoice& choice);
  Result<std::optional<SessionKeys>> AgreeOnKeys(const ClientChoice& choice,
                                                 std::string& own_parameter) const;

  const HandshakeOptions& options_;
  const NetAddress server_address_;
  bool chosen_ = false;
  bool encrypted_ = false;
};

class ClientHandshake {
 public:
  ClientHandshake(const HandshakeOptions& options, const NetAddress& server_address);

  Result<HandshakeStep> OnFrame(const Frame& frame);

 private:
  enum class State : std::uint8_t { kWaitForHello, kWaitForChoice, kReady };

  Result<HandshakeStep> OnHello(const ServerHello& hello);
  Result<HandshakeStep> OnServerChoice(const ServerChoice& choice);

  const HandshakeOptions& options_;
  const NetAddress server_address_;
  State state_ = State::kWaitForHello;
  EncryptType encrypt_ = EncryptType::kNone;
  std::optional<DiffieHellman> diffie_hellman_;
  std::optional<RsaSessionSecret> rsa_secret_;
};

}  // namespace zeze::internal
