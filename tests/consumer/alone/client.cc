// A client that nobody answers: it says so.

#include "zeze/client/client.h"

#include <chrono>
#include <iostream>

#include "Zeze/Builtin/LinkdAuth.h"
#include "shop/Counter.h"
#include "zeze/base/result_code.h"

int main() {
  using Zeze::Builtin::LinkdAuth::Auth;
  zeze::IoThreads io({});
  zeze::Client client(
      io, {.gateways = {{"127.0.0.1", 1}},
           .authenticate = zeze::AuthenticateBy<Auth>([] { return Auth::Argument{}; })});
  if (!client.Start().ok()) return 1;
  const auto reply = client.CallAndWait<shop::Counter::Buy>({.price = 3});
  if (reply.ok() && reply.value().result_code == zeze::result_code::kSuccess) return 1;
  std::cout << client.AwaitReady(std::chrono::milliseconds(100)).ok() << "\n";
  client.Stop();
  return 0;
}
