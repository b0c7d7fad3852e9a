// Greet: asks the Globals that a server is configured with who they are, before the server raises
// its epoch: one that lists them in another order, or whose database is another one, must not fence
// anybody. Rules 52 and 57 of docs/architecture.md.
//
//   Result<void> known = Greet(io, options, fence);
//   if (!known.ok()) return known;   // Names the Global and both sides.

#pragma once

#include "zeze/base/result.h"
#include "zeze/global/service/global_client.h"
#include "zeze/net/io_threads.h"
#include "zeze/storage/fence.h"

namespace zeze::global {

// Waits for all of them, as long as GlobalClientOptions::connect_timeout. A Global of Zeze 1.6 says
// nothing of itself; it is believed if the options allow one.
// Errors: kIncompatible (another order, or another database), kUnavailable (no answer).
Result<void> Greet(IoThreads& io, const GlobalClientOptions& options, Fence& fence);

}  // namespace zeze::global
