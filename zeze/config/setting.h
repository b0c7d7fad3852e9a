// Setting: one attribute that zeze.xml may have: its type, default, and what it does.
//
//   for (const Setting& s : SettingsOf(ElementKind::kTable)) Print(s.name, s.help);
//
// These tables are the only place where attributes are declared: reading, checking, "did you mean",
// overriding and printing all follow them.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze {

enum class ElementKind : std::uint8_t {
  kZeze,
  kDatabase,
  kTable,
  kService,
  kAcceptor,
  kConnector,
  kWebsocket,
  kServiceManager,
  kGlobalCacheManagers,
  kHost,
  kProperty,
  kCustomize,
};

// As it is written in the file: "zeze", "DatabaseConf", "TableConf" ...
std::string_view ElementName(ElementKind kind);

enum class SettingKind : std::uint8_t {
  kText,
  kSecret,  // Text that is not printed.
  kBool,
  kInteger,   // Within [min, max].
  kNumber,    // With a fraction, not negative.
  kSize,      // See ParseSize; within [min, max].
  kDuration,  // See ParseDuration; plain numbers count in `unit`; within [min, max] of it.
  kChoice,    // One of `choices`.
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which it is read.
struct Setting {
  std::string_view name = {};
  SettingKind kind = SettingKind::kText;

  // As it would be written in the file. Empty where being absent means something of its own.
  std::string_view default_value = {};

  std::string_view help = {};

  // False: read and checked, so that files written for other programs load, but without effect in
  // this version.
  bool used = true;

  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;
  std::chrono::nanoseconds unit = std::chrono::milliseconds(1);
  std::string_view choices = {};  // Separated by blanks, in their right spelling.
};

// In the order in which they are documented and printed.
std::span<const Setting> SettingsOf(ElementKind kind);

// By its exact name, or null.
const Setting* FindSetting(ElementKind kind, std::string_view name);

// Whether the text may be given to this setting; an error says what would be right. Choices must
// match exactly here.
Result<void> CheckSetting(const Setting& setting, std::string_view text);

}  // namespace zeze
