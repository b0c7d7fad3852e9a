// Whether the options of an application contradict each other. Private to app: the start and what
// reads configuration files ask the same question.

#pragma once

#include "zeze/app/application.h"
#include "zeze/base/result.h"

namespace zeze::internal {

// Opens nothing. Fails with kInvalidArgument.
Result<void> CheckApplicationOptions(const ApplicationOptions& options);

}  // namespace zeze::internal
