// Text: reads the numbers, sizes and durations that people write in configuration files.
//
//   ParseSize("2.5m").value() == 2621440
//   ParseDuration("8s", std::chrono::milliseconds(1)).value() == std::chrono::seconds(8)
//   ParseDuration("500", std::chrono::milliseconds(1)).value() == std::chrono::milliseconds(500)
//
// Failures are of kInvalidArgument and say what was expected. Blanks around the text are ignored.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

std::string_view Trim(std::string_view text);  // Without the blanks around it.
std::string ToLower(std::string_view text);    // ASCII letters only.
bool EqualsIgnoreCase(std::string_view left, std::string_view right);

// The parts between separators, trimmed, empty ones left out.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Decimal, with an optional sign, within [min, max].
Result<std::int64_t> ParseInteger(std::string_view text, std::int64_t min = INT64_MIN,
                                  std::int64_t max = INT64_MAX);

Result<double> ParseNumber(std::string_view text);

// "true" or "false" in any case, as well as 1/0, yes/no, on/off.
Result<bool> ParseBool(std::string_view text);

// A count or a number of bytes. Suffixes k m g t p e (powers of 1024; "kb" and "kib" mean the
// same), fractions ("1.5g"), separators between digits (_ , ' and blank: "20_000"), "max" for the
// largest. A sign is allowed: several settings use negative values for "no limit".
Result<std::int64_t> ParseSize(std::string_view text);

// Units ns us ms s m h d, fractions, and sums: "1.5s", "1h30m". A plain number counts in `unit`.
// A sign is allowed: several settings use negative values for "off".
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text,
                                               std::chrono::nanoseconds unit);

// Short and exact, so that ParseDuration and ParseSize give the same value again: "1h30m", "2.5s"
// only if it is whole in the next unit ("2500ms"), "64k", "1000".
std::string FormatDuration(std::chrono::nanoseconds duration);
std::string FormatSize(std::int64_t size);

}  // namespace zeze
