// Result codes are in zeze/base; modules that were written before still include them from here.

#pragma once

#include "zeze/base/result_code.h"  // IWYU pragma: export
