// ModuleBinds: which modules a server offers, and how gateways choose among those that offer one;
// from provider.module.binds.xml.
//
//   Result<ModuleBinds> binds = ModuleBinds::Load("provider.module.binds.xml");
//   ModuleBinds::Offer offer = binds.value().OfferOf(server_id, modules);

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Zeze/Builtin/Provider.h"
#include "zeze/base/result.h"

namespace zeze {
class Module;
namespace xml {
class Diagnostics;
class Document;
class Element;
}  // namespace xml
}  // namespace zeze

namespace zeze::arch {

class ModuleBinds {
 public:
  // Everything static, by the default choice.
  ModuleBinds() = default;

  // A file that is not there is an empty one. Errors name file, line and what was expected; notices
  // go to the log.
  static Result<ModuleBinds> Load(const std::string& path);
  static Result<ModuleBinds> Parse(std::string_view text, const std::string& path_for_messages);

  // What one server offers of the modules that it has, by module id.
  struct Offer {
    std::map<std::int32_t, Zeze::Builtin::Provider::BModule> static_modules = {};
    std::map<std::int32_t, Zeze::Builtin::Provider::BModule> dynamic_modules = {};
  };
  Offer OfferOf(std::int32_t server_id, std::span<Module* const> modules) const;

  // Listed, but none of these modules has that name: most likely a mistake.
  std::vector<std::string> UnknownNames(std::span<Module* const> modules) const;

 private:
  struct Bind {
    std::int32_t choice_type = 0;
    bool dynamic = false;
    std::set<std::int32_t> providers = {};  // Empty: all.
  };

  static Result<ModuleBinds> Read(const std::optional<xml::Document>& document,
                                  xml::Diagnostics& diagnostics);
  void ReadRoot(const xml::Element& root, xml::Diagnostics& diagnostics);
  void ReadNoDefaultModule(const xml::Element& element, xml::Diagnostics& diagnostics);
  void ReadModule(const xml::Element& element, xml::Diagnostics& diagnostics);

  std::map<std::string, Bind, std::less<>> modules_;
  std::int32_t default_choice_type_ = 0;
  std::set<std::int32_t> only_listed_;  // Servers that offer listed modules only.
  bool all_only_listed_ = false;        // All do.
};

}  // namespace zeze::arch
