// PatientCall: a procedure that a server needs before it can begin.
//
//   const std::int64_t code = PatientCall(engine, "open", [&](Transaction& tx) { ... });
//
// What an earlier life of this server, or another one that died, held may not be free before its
// lease is over. Until then procedures fail; this one is run again.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "zeze/base/clock.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/procedure_name.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// The result code of the last run.
inline std::int64_t PatientCall(Engine& engine, ProcedureName name, ProcedureBody body,
                                std::chrono::nanoseconds patience = std::chrono::seconds(60)) {
  constexpr std::chrono::milliseconds kPauseMax(1000);
  std::chrono::milliseconds pause(100);
  Clock& clock = *engine.options().clock;
  const auto until = clock.Now() + patience;
  while (true) {
    const std::int64_t code = engine.CallApart(name, body);
    const bool not_now = code == result_code::kAbortException || code == result_code::kTimeout;
    if (!not_now || clock.Now() >= until) return code;
    clock.SleepFor(pause);
    pause = std::min(2 * pause, kPauseMax);
  }
}

}  // namespace zeze
