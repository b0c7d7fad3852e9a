// What servers note about their timers, each in the transaction that it is about.

#pragma once

#include "Zeze/Builtin/AutoKey.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::timers_test {

using BCount = Zeze::Builtin::AutoKey::BSeed;

// Timer id to how often it is to run, and to how often it has run.
inline constexpr TableDescriptor kExpected{.id = 101, .name = "timer_expected"};
inline constexpr TableDescriptor kEffects{.id = 102, .name = "timer_effects"};

}  // namespace zeze::timers_test
