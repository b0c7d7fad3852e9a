#include "zeze/arch/provider/module_binds.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "Zeze/Builtin/Provider.h"
#include "zeze/app/module.h"
#include "zeze/base/log.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/xml/diagnostics.h"
#include "zeze/xml/document.h"
#include "zeze/xml/known_names.h"

namespace zeze::arch {

namespace {

using Zeze::Builtin::Provider::BModule;

constexpr std::string_view kRoot = "ProviderModuleBinds";
constexpr std::string_view kModule = "module";
constexpr std::string_view kDefaultModule = "defaultModule";
constexpr std::string_view kNoDefaultModule = "ProviderNoDefaultModule";

struct ChoiceName {
  std::string_view name;
  std::int32_t value;
};
constexpr std::array<ChoiceName, 8> kChoices = {{
    {"ChoiceTypeDefault", BModule::ChoiceTypeDefault},
    {"ChoiceTypeHashAccount", BModule::ChoiceTypeHashAccount},
    {"ChoiceTypeHashRoleId", BModule::ChoiceTypeHashRoleId},
    {"ChoiceTypeHashSourceAddress", BModule::ChoiceTypeHashSourceAddress},
    {"ChoiceTypeFeedFullOneByOne", BModule::ChoiceTypeFeedFullOneByOne},
    {"ChoiceTypeLoad", BModule::ChoiceTypeLoad},
    {"ChoiceTypeRequest", BModule::ChoiceTypeRequest},
    {"ChoiceTypeRoundRobin", BModule::ChoiceTypeRoundRobin},
}};

const xml::KnownNames& Names() {
  static const xml::KnownNames names =
      xml::KnownNames()
          .Add({.kind = std::string(kRoot),
                .children = {std::string(kModule), std::string(kDefaultModule),
                             std::string(kNoDefaultModule)}})
          .Add({.kind = std::string(kModule),
                .attributes = {"name", "providers", "dynamic", "ChoiceType", "ConfigType"}})
          .Add({.kind = std::string(kDefaultModule), .attributes = {"ChoiceType", "ConfigType"}})
          .AddDead(std::string(kDefaultModule), "name", "it stands for all modules not listed")
          .AddDead(std::string(kDefaultModule), "dynamic", "modules not listed are never dynamic")
          .AddDead(std::string(kDefaultModule), "providers",
                   "servers that offer listed modules only stand in <ProviderNoDefaultModule>")
          .Add({.kind = std::string(kNoDefaultModule), .attributes = {"providers"}});
  return names;
}

void RefuseConfigType(const xml::Element& element, xml::Diagnostics& diagnostics) {
  if (!element.HasAttribute("ConfigType")) return;
  diagnostics.Error(element.LocationOf("ConfigType"),
                    "ConfigType belongs to files of an older version and is not read any more",
                    element.GetAttribute("ConfigType") == "Dynamic"
                        ? "write dynamic=\"true\" instead"
                        : "remove it; for a dynamic module write dynamic=\"true\"");
}

std::int32_t ReadChoice(const xml::Element& element, xml::Diagnostics& diagnostics) {
  const std::string text = element.GetAttribute("ChoiceType");
  if (text.empty()) return BModule::ChoiceTypeDefault;
  std::vector<std::string_view> names;
  for (const ChoiceName& choice : kChoices) {
    if (text == choice.name) return choice.value;
    names.push_back(choice.name);
  }
  std::string suggestion = xml::DidYouMean(text, names);
  if (suggestion.empty()) suggestion = xml::DidYouMean("ChoiceType" + text, names);
  if (suggestion.empty()) suggestion = fmt::format("known ones: {}", fmt::join(names, ", "));
  diagnostics.Error(element.LocationOf("ChoiceType"),
                    fmt::format("there is no ChoiceType \"{}\"", text), std::move(suggestion));
  return BModule::ChoiceTypeDefault;
}

// Empty: all.
std::set<std::int32_t> ReadProviders(const xml::Element& element, xml::Diagnostics& diagnostics) {
  std::set<std::int32_t> servers;
  const std::string text = element.GetAttribute("providers");
  if (Trim(text).empty() || Trim(text) == "*") return servers;
  for (const std::string_view part : Split(text, ',')) {
    const Result<std::int64_t> id = ParseInteger(part, 0, std::numeric_limits<std::int32_t>::max());
    if (!id.ok()) {
      diagnostics.Error(element.LocationOf("providers"),
                        fmt::format("\"{}\" is no server id: {}", part, id.error().message()),
                        "expected server ids with commas between them, \"*\" or nothing for all");
    } else if (!servers.insert(static_cast<std::int32_t>(id.value())).second) {
      diagnostics.Warning(element.LocationOf("providers"),
                          fmt::format("server {} is listed twice", id.value()));
    }
  }
  return servers;
}

// What the first files looked like: name and empty providers, nothing else.
bool IsSeedForm(const xml::Element& element) {
  return element.HasAttribute("providers") && Trim(element.GetAttribute("providers")).empty() &&
         !element.HasAttribute("dynamic") && !element.HasAttribute("ChoiceType");
}

bool ReadDynamic(const xml::Element& element, xml::Diagnostics& diagnostics) {
  if (IsSeedForm(element)) {
    diagnostics.Note(element.LocationOf("providers"),
                     fmt::format("module {} has empty providers and nothing else: it is dynamic",
                                 element.GetAttribute("name")),
                     "say so with dynamic=\"true\"; for a static module of all servers leave "
                     "providers out, or write providers=\"*\"");
    return true;
  }
  if (!element.HasAttribute("dynamic")) return false;
  const Result<bool> dynamic = ParseBool(element.GetAttribute("dynamic"));
  if (dynamic.ok()) return dynamic.value();
  diagnostics.Error(element.LocationOf("dynamic"),
                    fmt::format("dynamic is \"{}\"", element.GetAttribute("dynamic")),
                    "expected true or false");
  return false;
}

}  // namespace

Result<ModuleBinds> ModuleBinds::Load(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return ModuleBinds();
  xml::Diagnostics diagnostics;
  return Read(xml::Document::ParseFile(path, diagnostics), diagnostics);
}

Result<ModuleBinds> ModuleBinds::Parse(std::string_view text,
                                       const std::string& path_for_messages) {
  xml::Diagnostics diagnostics;
  return Read(xml::Document::ParseText(text, path_for_messages, diagnostics), diagnostics);
}

Result<ModuleBinds> ModuleBinds::Read(const std::optional<xml::Document>& document,
                                      xml::Diagnostics& diagnostics) {
  ModuleBinds binds;
  if (document) {
    const xml::Element& root = document->root();
    if (root.name() != kRoot) {
      diagnostics.Error(root.location(), fmt::format("the root is <{}>", root.name()),
                        fmt::format("expected <{}>", kRoot));
    } else {
      binds.ReadRoot(root, diagnostics);
    }
  }
  if (diagnostics.has_errors()) {
    return Error(ErrorCode::kInvalidArgument, diagnostics.Format());
  }
  for (const xml::Diagnostic& one : diagnostics.all()) {
    if (one.severity == xml::Severity::kNote) {
      ZEZE_LOG_INFO("{}", one.ToString());
    } else {
      ZEZE_LOG_WARNING("{}", one.ToString());
    }
  }
  return binds;
}

void ModuleBinds::ReadRoot(const xml::Element& root, xml::Diagnostics& diagnostics) {
  Names().Check(root, diagnostics);
  const xml::Element* default_module = nullptr;
  for (const xml::Element* element : root.children()) {
    Names().Check(*element, diagnostics);
    if (element->name() == kModule) {
      ReadModule(*element, diagnostics);
    } else if (element->name() == kDefaultModule) {
      if (default_module != nullptr) {
        diagnostics.Error(
            element->location(),
            fmt::format("there is a <defaultModule> already, in line {}", default_module->line()),
            "keep one of them");
      }
      default_module = element;
      RefuseConfigType(*element, diagnostics);
      default_choice_type_ = ReadChoice(*element, diagnostics);
    } else if (element->name() == kNoDefaultModule) {
      ReadNoDefaultModule(*element, diagnostics);
    }
  }
}

void ModuleBinds::ReadNoDefaultModule(const xml::Element& element, xml::Diagnostics& diagnostics) {
  const std::string providers = element.GetAttribute("providers");
  if (Trim(providers).empty()) {
    diagnostics.Warning(element.location(), "<ProviderNoDefaultModule> names no server",
                        "expected providers=\"7,8\", or \"*\" for all");
    return;
  }
  if (Trim(providers) == "*") all_only_listed_ = true;
  only_listed_.merge(ReadProviders(element, diagnostics));
}

void ModuleBinds::ReadModule(const xml::Element& element, xml::Diagnostics& diagnostics) {
  RefuseConfigType(element, diagnostics);
  const std::string name = element.GetAttribute("name");
  if (name.empty()) {
    diagnostics.Error(element.location(), "a <module> without a name",
                      "expected the full name, such as name=\"Game.Map\"");
    return;
  }
  Bind bind{.choice_type = ReadChoice(element, diagnostics),
            .dynamic = ReadDynamic(element, diagnostics),
            .providers = ReadProviders(element, diagnostics)};
  if (!modules_.emplace(name, std::move(bind)).second) {
    diagnostics.Error(element.LocationOf("name"), fmt::format("module {} is listed twice", name),
                      "keep one of them");
  }
}

ModuleBinds::Offer ModuleBinds::OfferOf(std::int32_t server_id,
                                        std::span<Module* const> modules) const {
  Offer offer;
  for (const Module* module : modules) {
    const auto listed = modules_.find(module->name());
    if (listed == modules_.end()) {
      if (all_only_listed_ || only_listed_.contains(server_id)) continue;
      offer.static_modules[module->id()].ChoiceType = default_choice_type_;
      continue;
    }
    const Bind& bind = listed->second;
    if (!bind.providers.empty() && !bind.providers.contains(server_id)) continue;
    BModule& offered = (bind.dynamic ? offer.dynamic_modules : offer.static_modules)[module->id()];
    offered.ChoiceType = bind.choice_type;
    offered.Dynamic = bind.dynamic;
  }
  return offer;
}

std::vector<std::string> ModuleBinds::UnknownNames(std::span<Module* const> modules) const {
  std::set<std::string_view> known;
  for (const Module* module : modules) known.insert(module->name());
  std::vector<std::string> unknown;
  for (const auto& [name, bind] : modules_) {
    if (!known.contains(name)) unknown.push_back(name);
  }
  return unknown;
}

}  // namespace zeze::arch
