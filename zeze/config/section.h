// ConfigSection: one element of zeze.xml with the effective value of each of its settings, and
// where each value comes from.
//
//   section.Duration("CheckpointPeriod")             // std::chrono::nanoseconds
//   section.Find("CheckpointPeriod").source          // "zeze.xml:3:9", "environment ZEZE_..."

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/config/setting.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze {

enum class ValueOrigin : std::uint8_t { kDefault, kFile, kEnvironment, kCommandLine };

struct ConfigValue {
  const Setting* setting = nullptr;

  // Checked against the setting. As written, except that choices have their right spelling.
  std::string text = {};

  ValueOrigin origin = ValueOrigin::kDefault;

  // For people: "default", "zeze.xml:3:9", "environment ZEZE_SERVERID", "--set ServerId", followed
  // by "via TableConf X" if it was inherited.
  std::string source = "default";
};

class ConfigSection {
 public:
  // With every setting at its default.
  explicit ConfigSection(ElementKind kind, xml::Location location = {});

  // Reads the attributes of an element: unknown ones are warnings with a "did you mean", names and
  // choices in the wrong case are accepted with a warning, wrong values are errors.
  static ConfigSection Read(ElementKind kind, const xml::Element& element,
                            xml::Diagnostics& diagnostics);

  ElementKind kind() const { return kind_; }
  const xml::Location& location() const { return location_; }

  // The value of Name, for elements that have one.
  std::string name() const;

  const std::vector<ConfigValue>& values() const { return values_; }
  const ConfigValue& Find(std::string_view name) const;

  // True unless the value is the default.
  bool IsSet(std::string_view name) const { return Find(name).origin != ValueOrigin::kDefault; }

  // Of settings of that kind. Where the default is empty, ask for it with IsSet first.
  const std::string& Text(std::string_view name) const { return Find(name).text; }
  bool Bool(std::string_view name) const;
  std::int64_t Integer(std::string_view name) const;
  double Number(std::string_view name) const;
  std::int64_t Size(std::string_view name) const;
  std::chrono::nanoseconds Duration(std::string_view name) const;

  // Sets a value if it is right; says what is wrong otherwise (the location is where the value
  // came from, empty for the environment and the command line).
  void Set(const Setting& setting, std::string_view text, ValueOrigin origin, std::string source,
           const xml::Location& location, xml::Diagnostics& diagnostics);

  // Takes over every value that is set there and not here, except Name, Inherit and Base.
  void InheritFrom(const ConfigSection& base);

  // Acceptors, connectors and websockets of a service, in order.
  std::vector<ConfigSection> children;

 private:
  std::size_t IndexOf(std::string_view name) const;

  ElementKind kind_;
  xml::Location location_;
  std::vector<ConfigValue> values_;  // One for each setting of the kind, in the same order.
};

// The setting that is meant by this name, in whatever case; null if there is none. Exact matches
// win.
const Setting* MatchSetting(ElementKind kind, std::string_view name);

}  // namespace zeze
