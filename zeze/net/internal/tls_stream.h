// TlsStream: one TLS connection without its socket: bytes in, bytes out.
//
//   stream.Start();                                         // A client speaks first.
//   Result<void> read = stream.Read(received, plain);       // Appends what was decrypted.
//   Result<void> written = stream.Write(frames);
//   stream.TakeOutput(wire);                                // What is to be sent now.
//
// Being free of I/O it stands in the same place as the codecs of the handshake, and the connection
// is the same with and without it.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/net/tls.h"

namespace zeze::internal {

class TlsStream {
 public:
  static std::unique_ptr<TlsStream> ForServer(TlsContextPtr context);

  // The server's certificate must be for this name, or address.
  static std::unique_ptr<TlsStream> ForClient(TlsContextPtr context,
                                              const std::string& server_name);

  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Result<void> Start();

  // Fail with kCorrupt if the peer does not speak TLS, or its certificate is refused. There may be
  // output even then: the alert that says why. Write fails with kUnavailable after that.
  Result<void> Read(std::string_view wire, std::string& plain);
  Result<void> Write(std::string_view plain);

  // Appends, and forgets.
  void TakeOutput(std::string& wire);

  // Both sides know each other; Write may be called.
  bool ready() const;

  // When it is ready: 32 bytes that both sides of this session know, and nobody else (RFC 9266).
  std::string Binding() const;

  // The peer has ended the stream in the proper way.
  bool ended() const;

 private:
  struct Session;
  TlsStream(TlsContextPtr context, std::unique_ptr<Session> session);
  Result<void> Handshake();
  Error Failure(const char* what) const;

  const TlsContextPtr context_;
  const std::unique_ptr<Session> session_;
};

}  // namespace zeze::internal
