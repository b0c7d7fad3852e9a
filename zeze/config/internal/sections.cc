#include "zeze/config/internal/sections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/text.h"
#include "zeze/config/config.h"
#include "zeze/config/known_names.h"
#include "zeze/config/section.h"
#include "zeze/config/setting.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"

namespace zeze::internal {

namespace {

constexpr ElementKind kRootChildren[] = {
    ElementKind::kProperty,       ElementKind::kGlobalCacheManagers,
    ElementKind::kServiceManager, ElementKind::kCustomize,
    ElementKind::kDatabase,       ElementKind::kTable,
    ElementKind::kService};
constexpr ElementKind kServiceChildren[] = {ElementKind::kAcceptor, ElementKind::kConnector,
                                            ElementKind::kWebsocket};
constexpr ElementKind kManagersChildren[] = {ElementKind::kHost};

// Which of the allowed elements this is; reports what it is not.
std::optional<ElementKind> Identify(const xml::Element& element,
                                    std::span<const ElementKind> allowed,
                                    xml::Diagnostics& diagnostics) {
  std::vector<std::string_view> names;
  for (const ElementKind kind : allowed) {
    names.push_back(ElementName(kind));
    if (element.name() == ElementName(kind)) return kind;
  }
  for (const ElementKind kind : allowed) {
    if (!EqualsIgnoreCase(element.name(), ElementName(kind))) continue;
    diagnostics.Warning(element.location(),
                        fmt::format("element <{}> has the wrong case", element.name()),
                        fmt::format("write <{}>", ElementName(kind)));
    return kind;
  }
  std::string suggestion = xml::DidYouMean(element.name(), names);
  for (const ElementKind kind : kServiceChildren) {
    if (element.name() == ElementName(kind)) suggestion = "it belongs inside a <ServiceConf>";
  }
  if (element.name() == "GlobalCacheManager" || element.name() == "ServiceManager") {
    suggestion = fmt::format(
        "its settings are in <CustomizeConf Name=\"{}\">",
        element.name() == "ServiceManager" ? "Zeze.Services.ServiceManager" : "GlobalCacheManager");
  }
  if (suggestion.empty()) suggestion = fmt::format("known elements: {}", fmt::join(names, ", "));
  diagnostics.Error(element.location(),
                    fmt::format("unknown element <{}> in <{}>", element.name(),
                                element.parent() != nullptr ? element.parent()->name() : ""),
                    suggestion);
  return std::nullopt;
}

// Elements that may have no children: the reference skips them, so do we, but not silently.
void WarnAboutChildren(const xml::Element& element, xml::Diagnostics& diagnostics) {
  for (const xml::Element* child : element.children()) {
    diagnostics.Warning(
        child->location(),
        fmt::format("element <{}> in <{}> has no effect", child->name(), element.name()),
        "settings are attributes of the element itself");
  }
}

void ReadService(const xml::Element& element, Sections& sections, xml::Diagnostics& diagnostics) {
  ConfigSection service = ConfigSection::Read(ElementKind::kService, element, diagnostics);
  for (const xml::Element* child : element.children()) {
    const std::optional<ElementKind> kind = Identify(*child, kServiceChildren, diagnostics);
    if (!kind) continue;
    service.children.push_back(ConfigSection::Read(*kind, *child, diagnostics));
    WarnAboutChildren(*child, diagnostics);
  }
  sections.services.push_back(std::move(service));
}

void ReadGlobalCacheManagers(const xml::Element& element, Sections& sections,
                             xml::Diagnostics& diagnostics) {
  ConfigSection::Read(ElementKind::kGlobalCacheManagers, element, diagnostics);
  if (!sections.hosts.empty()) {
    diagnostics.Error(element.location(), "there is a second <GlobalCacheManagersConf>",
                      "put all hosts into one");
  }
  for (const xml::Element* child : element.children()) {
    if (!Identify(*child, kManagersChildren, diagnostics)) continue;
    sections.hosts.push_back(ConfigSection::Read(ElementKind::kHost, *child, diagnostics));
  }
}

void ReadChild(ElementKind kind, const xml::Element& child, Sections& sections,
               xml::Diagnostics& diagnostics) {
  switch (kind) {
    case ElementKind::kService:
      ReadService(child, sections, diagnostics);
      return;
    case ElementKind::kGlobalCacheManagers:
      ReadGlobalCacheManagers(child, sections, diagnostics);
      return;
    case ElementKind::kCustomize:
      sections.customize.emplace_back(ConfigSection::Read(kind, child, diagnostics), &child);
      return;
    case ElementKind::kProperty:
      sections.properties.push_back(ConfigSection::Read(kind, child, diagnostics));
      break;
    case ElementKind::kServiceManager:
      sections.service_managers.push_back(ConfigSection::Read(kind, child, diagnostics));
      break;
    default:
      sections.Of(kind).push_back(ConfigSection::Read(kind, child, diagnostics));
      break;
  }
  WarnAboutChildren(child, diagnostics);
}

void ReportDuplicates(const std::vector<ConfigSection>& sections, xml::Diagnostics& diagnostics) {
  std::map<std::string, const ConfigSection*> seen;
  for (const ConfigSection& section : sections) {
    const auto [first, is_new] = seen.emplace(section.name(), &section);
    if (is_new) continue;
    diagnostics.Error(section.location(),
                      fmt::format("there is a second <{}> with the name \"{}\"; the first is at {}",
                                  ElementName(section.kind()), section.name(),
                                  first->second->location().ToString()),
                      "give it another name, or put both into one");
  }
}

// "table.Shop_Order_tOrder.CacheCapacity": which section, and which of its settings.
struct Target {
  ElementKind kind = ElementKind::kZeze;
  std::string_view name = {};
  const Setting* setting = nullptr;
  bool of_acceptor = false;  // The setting is one of the service's acceptor.
};

// Splits "[NAME<separator>]ATTRIBUTE".
std::optional<Target> ParseTarget(ElementKind kind, std::string_view text, char separator) {
  Target target{.kind = kind};
  const std::size_t last = text.rfind(separator);
  const std::string_view attribute = last == std::string_view::npos ? text : text.substr(last + 1);
  if (last != std::string_view::npos) target.name = text.substr(0, last);
  target.setting = MatchSetting(kind, attribute);
  if (target.setting == nullptr && kind == ElementKind::kService) {
    target.setting = MatchSetting(ElementKind::kAcceptor, attribute);
    target.of_acceptor = target.setting != nullptr;
  }
  if (target.setting == nullptr || target.setting->name == "Name") return std::nullopt;
  return target;
}

// Finds the section that a word without dots may mean: TABLE_SHOP_ORDER_TORDER, SERVICE_A_B for
// A.B.
bool SameName(std::string_view name, std::string_view word) {
  return std::equal(name.begin(), name.end(), word.begin(), word.end(), [](char a, char b) {
    const auto plain = [](char c) {
      if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
      const bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      return letter_or_digit ? c : '_';
    };
    return plain(a) == plain(b);
  });
}

// The service of zeze that the name means, or "".
std::string_view KnownService(std::string_view name) {
  for (const std::string_view known : known_names::kServices) {
    if (SameName(known, name)) return known;
  }
  return {};
}

// Whether a service is in the file, or one that a program of zeze reads without it. Others cannot
// be meant: nobody would read what an override says about them.
bool IsService(const std::vector<ConfigSection>& services, std::string_view name) {
  if (name.empty() || !KnownService(name).empty()) return true;
  for (const ConfigSection& service : services) {
    if (SameName(service.name(), name)) return true;
  }
  return false;
}

std::string SuggestService(const std::vector<ConfigSection>& services, std::string_view name) {
  std::vector<std::string> names(std::begin(known_names::kServices),
                                 std::end(known_names::kServices));
  for (const ConfigSection& service : services) names.push_back(service.name());
  std::string suggestion = xml::DidYouMean(name, {names.begin(), names.end()});
  if (!suggestion.empty()) return suggestion;
  return "if the application reads a service of this name, give the file a <ServiceConf> for it";
}

// Warns about a name that differs from a known one as much as a typing error does. A longer name
// that ends like one is meant to be another.
void WarnAboutName(const ConfigSection& section, std::span<const std::string_view> known,
                   xml::Diagnostics& diagnostics) {
  constexpr std::size_t kTypingErrors = 2;
  const std::string name = section.name();
  for (const std::string_view one : known) {
    if (name == one) return;
  }
  for (const std::string_view one : known) {
    if (name.ends_with(one) || xml::EditDistance(name, one, kTypingErrors) > kTypingErrors)
      continue;
    diagnostics.Warning(section.location(),
                        fmt::format("no program of zeze reads a <{}> with the name \"{}\"",
                                    ElementName(section.kind()), name),
                        fmt::format("did you mean '{}'?", one));
    return;
  }
}

ConfigSection& FindOrAdd(std::vector<ConfigSection>& sections, const Target& target,
                         ValueOrigin origin, const std::string& source,
                         xml::Diagnostics& diagnostics) {
  for (ConfigSection& section : sections) {
    if (section.name() == target.name) return section;
  }
  for (ConfigSection& section : sections) {
    if (SameName(section.name(), target.name)) return section;
  }
  ConfigSection added(target.kind);
  if (!target.name.empty()) {
    const std::string_view known =
        target.kind == ElementKind::kService ? KnownService(target.name) : std::string_view();
    added.Set(*FindSetting(target.kind, "Name"), known.empty() ? target.name : known, origin,
              source, {}, diagnostics);
    // One value for one table must not take away what the file says about all tables.
    if (const Setting* inherit = FindSetting(target.kind, "Inherit")) {
      added.Set(*inherit, "true", origin, source, {}, diagnostics);
    }
  }
  return sections.emplace_back(std::move(added));
}

bool IsUnknownService(const Target& target, const Sections& sections) {
  return target.kind == ElementKind::kService && !IsService(sections.services, target.name);
}

void SetTarget(const Target& target, std::string_view value, ValueOrigin origin,
               const std::string& source, Sections& sections, xml::Diagnostics& diagnostics) {
  if (target.kind == ElementKind::kZeze) {
    sections.root.Set(*target.setting, value, origin, source, {}, diagnostics);
    return;
  }
  ConfigSection& section = FindOrAdd(sections.Of(target.kind), target, origin, source, diagnostics);
  if (!target.of_acceptor) {
    section.Set(*target.setting, value, origin, source, {}, diagnostics);
    return;
  }
  std::vector<ConfigSection*> acceptors;
  for (ConfigSection& child : section.children) {
    if (child.kind() == ElementKind::kAcceptor) acceptors.push_back(&child);
  }
  if (acceptors.size() > 1) {
    diagnostics.Error({},
                      fmt::format("{}: service \"{}\" has {} acceptors, so it is not clear which "
                                  "one is meant",
                                  source, section.name(), acceptors.size()),
                      "edit the file instead");
    return;
  }
  if (acceptors.empty()) {
    acceptors.push_back(&section.children.emplace_back(ElementKind::kAcceptor));
  }
  acceptors.front()->Set(*target.setting, value, origin, source, {}, diagnostics);
}

constexpr std::pair<std::string_view, ElementKind> kPrefixes[] = {
    {"table", ElementKind::kTable},
    {"database", ElementKind::kDatabase},
    {"service", ElementKind::kService}};

// `separator` is '_' in the environment, '.' on the command line.
std::optional<Target> FindTarget(std::string_view path, char separator) {
  if (const Setting* setting = MatchSetting(ElementKind::kZeze, path)) {
    return Target{.kind = ElementKind::kZeze, .setting = setting};
  }
  for (const auto& [prefix, kind] : kPrefixes) {
    if (path.size() <= prefix.size() + 1 || path[prefix.size()] != separator) continue;
    if (!EqualsIgnoreCase(path.substr(0, prefix.size()), prefix)) continue;
    return ParseTarget(kind, path.substr(prefix.size() + 1), separator);
  }
  return std::nullopt;
}

std::string SuggestPath(std::string_view path, char separator) {
  ElementKind kind = ElementKind::kZeze;
  std::string_view attribute = path;
  for (const auto& [prefix, prefix_kind] : kPrefixes) {
    if (path.size() > prefix.size() && path[prefix.size()] == separator &&
        EqualsIgnoreCase(path.substr(0, prefix.size()), prefix)) {
      kind = prefix_kind;
      attribute = path.substr(path.rfind(separator) + 1);
    }
  }
  std::vector<std::string_view> names;
  for (const Setting& setting : SettingsOf(kind)) names.push_back(setting.name);
  return xml::DidYouMean(attribute, names);
}

// Variables that others read.
bool IsForeign(std::string_view name) {
  return name == "ZEZE_LOG_LEVEL" || name == "ZEZE_CONFIG" || name == "ZEZE_HASH_SEED" ||
         name == "ZEZE_LIVENESS_FD" || name == "ZEZE_INCARNATION" || name == "ZEZE_ENDED" ||
         name.starts_with("ZEZE_TEST_");
}

ConfigSection* FindByName(std::vector<ConfigSection>& sections, std::string_view name) {
  for (ConfigSection& section : sections) {
    if (section.name() == name) return &section;
  }
  return nullptr;
}

// Gives every section what it inherits, bases before those that use them.
class Inheritance {
 public:
  Inheritance(std::vector<ConfigSection>& sections, xml::Diagnostics& diagnostics)
      : sections_(sections), diagnostics_(diagnostics) {}

  void Apply() {
    for (ConfigSection& section : sections_) Apply(section);
  }

 private:
  enum class State : std::uint8_t { kNew, kInProgress, kDone };

  void Apply(ConfigSection& section) {
    State& state = states_[&section];
    if (state == State::kDone) return;
    if (state == State::kInProgress) {
      diagnostics_.Error(section.location(),
                         fmt::format("<{}> \"{}\" inherits from itself in a circle",
                                     ElementName(section.kind()), section.name()),
                         "take the Base out of one of them");
      return;
    }
    state = State::kInProgress;
    if (ConfigSection* base = FindBase(section)) {
      Apply(*base);
      section.InheritFrom(*base);
    }
    states_[&section] = State::kDone;
  }

  ConfigSection* FindBase(const ConfigSection& section) {
    const bool inherit = section.Bool("Inherit");
    if (!section.IsSet("Base")) {
      if (!inherit || section.name().empty()) return nullptr;
      return FindByName(sections_, "");  // None: the defaults are the defaults.
    }
    const std::string& name = section.Text("Base");
    if (ConfigSection* base = FindByName(sections_, name)) return base;
    std::vector<std::string> names;
    names.reserve(sections_.size());
    for (const ConfigSection& other : sections_) names.push_back(other.name());
    diagnostics_.Error(
        section.location(),
        fmt::format("Base of <{}> \"{}\": there is no <{}> with the name \"{}\"",
                    ElementName(section.kind()), section.name(), ElementName(section.kind()), name),
        xml::DidYouMean(name, {names.begin(), names.end()}));
    return nullptr;
  }

  std::vector<ConfigSection>& sections_;
  xml::Diagnostics& diagnostics_;
  std::map<const ConfigSection*, State> states_;
};

}  // namespace

void ReadSections(const xml::Element& root, Sections& sections, xml::Diagnostics& diagnostics) {
  if (!EqualsIgnoreCase(root.name(), ElementName(ElementKind::kZeze))) {
    diagnostics.Error(root.location(),
                      fmt::format("the root element is <{}>, not <zeze>", root.name()),
                      root.name() == "solution" ? "this is a schema: use \"zeze gen\""
                                                : "wrap everything in <zeze>...</zeze>");
    return;
  }
  sections.root = ConfigSection::Read(ElementKind::kZeze, root, diagnostics);
  for (const xml::Element* child : root.children()) {
    const std::optional<ElementKind> kind = Identify(*child, kRootChildren, diagnostics);
    if (kind) ReadChild(*kind, *child, sections, diagnostics);
  }
  ReportDuplicates(sections.databases, diagnostics);
  ReportDuplicates(sections.tables, diagnostics);
  ReportDuplicates(sections.services, diagnostics);
  std::vector<ConfigSection> customize;
  customize.reserve(sections.customize.size());
  for (const auto& [section, element] : sections.customize) customize.push_back(section);
  ReportDuplicates(customize, diagnostics);
  for (const ConfigSection& section : sections.services) {
    WarnAboutName(section, known_names::kServices, diagnostics);
  }
  for (const ConfigSection& section : customize) {
    WarnAboutName(section, known_names::kCustomizes, diagnostics);
  }
}

void ApplyOverrides(const ConfigVariables& environment, const std::vector<std::string>& overrides,
                    Sections& sections, xml::Diagnostics& diagnostics) {
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("ZEZE_") || IsForeign(name)) continue;
    const std::string_view path = std::string_view(name).substr(5);
    const std::optional<Target> target = FindTarget(path, '_');
    if (target && IsUnknownService(*target, sections)) {
      diagnostics.Warning({},
                          fmt::format("the environment variable {} names no service and has no "
                                      "effect: there is no \"{}\"",
                                      name, target->name),
                          SuggestService(sections.services, target->name));
    } else if (target) {
      SetTarget(*target, value, ValueOrigin::kEnvironment, "environment " + name, sections,
                diagnostics);
    } else {
      diagnostics.Warning(
          {}, fmt::format("the environment variable {} names no setting and has no effect", name),
          SuggestPath(path, '_'));
    }
  }
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    const std::string_view path = Trim(std::string_view(text).substr(0, equals));
    if (equals == std::string::npos) {
      diagnostics.Error({}, fmt::format("--set {}: there is no value", text),
                        "write NAME=VALUE, for example ServerId=3");
      continue;
    }
    const std::optional<Target> target = FindTarget(path, '.');
    if (target && IsUnknownService(*target, sections)) {
      diagnostics.Error({}, fmt::format("--set {}: there is no service \"{}\"", path, target->name),
                        SuggestService(sections.services, target->name));
    } else if (target) {
      SetTarget(*target, std::string_view(text).substr(equals + 1), ValueOrigin::kCommandLine,
                fmt::format("--set {}", path), sections, diagnostics);
    } else {
      diagnostics.Error({}, fmt::format("--set {}: there is no such setting", path),
                        SuggestPath(path, '.'));
    }
  }
}

void ApplyInheritance(Sections& sections, xml::Diagnostics& diagnostics) {
  Inheritance(sections.tables, diagnostics).Apply();
  Inheritance(sections.services, diagnostics).Apply();
}

}  // namespace zeze::internal
