// A gateway with an authenticator of its own: it starts and stops.

#include "zeze/arch/linkd/linkd.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "zeze/base/thread_pool.h"

namespace {

class Everybody : public zeze::arch::Authenticator {
 public:
  zeze::Result<zeze::arch::ClientIdentity> Authenticate(
      const zeze::arch::Credentials& given) override {
    return zeze::arch::ClientIdentity{.account = std::string(given.token)};
  }
};

}  // namespace

int main() {
  zeze::ThreadPool workers({.name = "linkd", .thread_count = 1});
  zeze::IoThreads io({.name = "linkd-io", .thread_count = 1});
  zeze::arch::LinkdOptions options;
  options.client_acceptors = {{.ip = "127.0.0.1", .port = 0}};
  options.provider_acceptors = {{.ip = "127.0.0.1", .port = 0}};
  options.authenticator = std::make_shared<Everybody>();
  zeze::arch::Linkd linkd(io, workers, std::move(options));
  if (const auto started = linkd.Start(); !started.ok()) {
    std::cerr << started.error().message() << "\n";
    return 1;
  }
  linkd.Stop();
  return 0;
}
