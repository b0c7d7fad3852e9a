#include "bench/serve_gateway.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/arch/linkd/authenticator.h"
#include "zeze/arch/linkd/linkd.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/process_resources.h"
#include "zeze/base/thread_pool.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/testing/certificates.h"
#include "zeze/net/tls.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze::bench {

namespace {

namespace provider = Zeze::Builtin::Provider;

class Trusting final : public arch::Authenticator {
 public:
  Result<arch::ClientIdentity> Authenticate(const arch::Credentials& given) override {
    return arch::ClientIdentity{.account = std::string(given.token)};
  }
};

// What a server reads of a Dispatch.
struct Dispatched {
  std::int64_t sid = 0;
  std::int64_t type = 0;
  std::string_view account = {};
  std::string_view body = {};
};

Dispatched ReadDispatch(std::string_view payload) {
  Dispatched got;
  ByteReader in(payload);
  int last_id = 0;
  for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
    if (tag.id == 1) {
      got.sid = in.ReadIntegerAs<std::int64_t>(tag.type);
    } else if (tag.id == 2) {
      got.account = in.ReadBytesAs(tag.type);
    } else if (tag.id == 3) {
      got.type = in.ReadIntegerAs<std::int64_t>(tag.type);
    } else if (tag.id == 4) {
      got.body = in.ReadBytesAs(tag.type);
    } else {
      in.Skip(tag);
    }
  }
  return got;
}

// The fields of BSend.
void WriteSend(const Dispatched& got, std::string_view frame, ByteWriter& out) {
  int last_id = 0;
  out.WriteTag(last_id, 1, TypeCode::kList);
  out.WriteListHeader(1, TypeCode::kInteger);
  out.WriteLong(got.sid);
  out.WriteTag(last_id, 2, TypeCode::kInteger);
  out.WriteLong(got.type);
  out.WriteTag(last_id, 3, TypeCode::kBytes);
  out.WriteBytes(frame);
  out.WriteEnd();
}

Result<void> AnswerDispatch(Connection& connection, const Frame& dispatch, ByteWriter& answer) {
  const Dispatched got = ReadDispatch(dispatch.payload);
  const RawFrame raw{.module_id = static_cast<std::int32_t>(got.type >> 32),
                     .protocol_id = static_cast<std::int32_t>(got.type),
                     .body = got.body};
  Result<Frame> request = ParseFrame(raw);
  if (!request.ok()) return request.error();
  request.value().family = FrameFamily::kResponse;
  answer.Clear();
  EncodeFrame(request.value(), answer);
  return connection.SendRequest(
      provider::Send::kDescriptor, {}, [&](ByteWriter& out) { WriteSend(got, answer.view(), out); },
      [](const RawReply&) { return true; });
}

}  // namespace

int ServeLinkd(bool tls) {
  zeze::testing::RaiseOpenFiles();
  arch::LinkdOptions options;
  options.client_acceptors = {{.ip = "127.0.0.1"}};
  options.provider_acceptors = {{.ip = "127.0.0.1"}};
  if (tls) {
    const zeze::testing::Certificates& certificates = zeze::testing::Certificates::Get();
    Result<TlsContextPtr> context =
        TlsContext::ForServer({.certificate_file = certificates.server_certificate,
                               .private_key_file = certificates.server_key});
    if (!context.ok()) return 1;
    options.client_acceptors.front().tls = std::move(context).value();
  }
  options.authenticator = std::make_shared<Trusting>();
  // All limits are looked at, and none is reached: as in a game, but faster.
  constexpr arch::RateLimit kPlenty{.per_second = 1e9, .burst = 1e9};
  options.limits.session_messages = kPlenty;
  options.limits.session_bytes = {.per_second = 1e12, .burst = 1e12};
  options.limits.account_messages = kPlenty;
  options.limits.address.messages = kPlenty;
  options.limits.address.attempts = {};
  options.limits.address.connections_max = 0;
  options.limits.ramp.last = 0;
  ThreadPool workers({.name = "linkd", .thread_count = 1});
  IoThreads io({.name = "linkd-io"});
  arch::Linkd linkd(io, workers, std::move(options));
  if (Result<void> started = linkd.Start(); !started.ok()) {
    fmt::print("{}\n", started.error().message());
    return 1;
  }
  fmt::print("{}{}\nlistening on port {}\n", kProviderPort, linkd.provider_address().port(),
             linkd.client_address().port());
  std::fflush(stdout);
  while (true) ::pause();
}

int ServeProvider(std::uint16_t port) {
  IoThreads io({.name = "provider-io"});
  ServiceOptions options{.name = "provider", .handshake = HandshakeOptions{}};
  options.output_bytes_max = 64 << 20;
  options.calls_max = 1 << 20;
  Service service(io, options);
  auto answer = std::make_shared<ByteWriter>();
  service.HandleRaw(provider::Dispatch::kDescriptor,
                    [answer](Connection& connection, const Frame& frame) {
                      return AnswerDispatch(connection, frame, *answer);
                    });
  service.Handle<provider::LinkBroken>([](const Message<provider::LinkBroken>&) {});
  Result<ConnectionPtr> ready =
      service.Connect({.host = "127.0.0.1", .port = port})->WaitReady(std::chrono::seconds(10));
  if (!ready.ok()) return 1;
  Connection& connection = *ready.value();
  provider::BBind bind;
  bind.modules.Put(kGatewayModule, {});
  const bool bound = connection
                         .Send<provider::AnnounceProviderInfo>(
                             {.ServiceNamePrefix = "Bench.Module#", .ServiceIdentity = "1"})
                         .ok() &&
                     connection.CallAndWait<provider::Bind>(bind).ok();
  if (!bound) return 1;
  fmt::print("listening on port {}\n", port);
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace zeze::bench
