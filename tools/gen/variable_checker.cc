// Variables and their types.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/checker.h"
#include "tools/gen/literal.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

// The parts of a variable's type, from brackets or attributes.
struct TypeParts {
  std::string name;
  std::vector<std::string> parameters;
  bool good = true;
};

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    parts.emplace_back(Trim(text.substr(0, comma)));
    if (more) text.remove_prefix(comma + 1);
  }
  return parts;
}

class VariableChecker {
 public:
  VariableChecker(const CheckContext& context, Bean& bean, Variable& variable)
      : context_(context), bean_(bean), variable_(variable), scope_(ScopeOf(bean)) {}

  void Check() {
    if (!variable_.type_text.empty()) ResolveType();
    if (variable_.type.kind == TypeKind::kUnknown) return;
    CheckKeyOfBean();
    CheckDynamic();
    CheckDefault();
    CheckEnumGroup();
  }

 private:
  void Error(std::string message, std::string hint = {}) {
    context_.diagnostics.Error(variable_.type_location,
                               fmt::format("variable '{}': {}", variable_.name, message),
                               std::move(hint));
  }

  TypeParts SplitType() {
    TypeParts parts;
    const std::string& text = variable_.type_text;
    const std::size_t open = text.find('[');
    parts.name = std::string(Trim(std::string_view(text).substr(0, open)));
    if (open == std::string::npos) {
      if (text.find(']') != std::string::npos) {
        Error(fmt::format("']' without '[' in '{}'", text));
        parts.good = false;
      }
      return parts;
    }
    if (text.find('[', open + 1) != std::string::npos) {
      Error(fmt::format("containers cannot be nested in '{}'", text),
            "put the inner container into a <bean> and use that bean here");
      parts.good = false;
    } else if (text.back() != ']' || text.find(']') != text.size() - 1) {
      Error(fmt::format("malformed brackets in '{}'", text), "write for example map[int,string]");
      parts.good = false;
    } else {
      parts.parameters = Split(std::string_view(text).substr(open + 1, text.size() - open - 2));
      if (parts.parameters.size() > 3) {
        Error(fmt::format("too many types in the brackets of '{}'", text),
              "list[value], map[key,value] or gtable[row,column,value]");
        parts.good = false;
      }
    }
    return parts;
  }

  // Adds the parameters that stand in the attributes key and value.
  void AddAttributeParameters(TypeParts& parts) {
    if (!parts.parameters.empty()) {
      if (!variable_.key_text.empty() || !variable_.value_text.empty()) {
        Error("the types in the brackets are given once more by the attributes key and value",
              "keep one of the two forms");
        parts.good = false;
      }
      return;
    }
    if (!variable_.key_text.empty()) parts.parameters = Split(variable_.key_text);
    if (!variable_.value_text.empty()) parts.parameters.push_back(variable_.value_text);
    for (const std::string& parameter : parts.parameters) {
      if (parameter.find('[') != std::string::npos) {
        Error(fmt::format("containers cannot be nested: '{}' in a {}", parameter, parts.name),
              "put the inner container into a <bean> and use that bean here");
        parts.good = false;
      }
    }
  }

  void ResolveType() {
    TypeParts parts = SplitType();
    if (!parts.good) return;
    AddAttributeParameters(parts);
    if (!parts.good) return;
    const std::optional<TypeKind> builtin = FindBuiltinType(parts.name);
    if (builtin && IsContainer(*builtin)) {
      ResolveContainer(*builtin, parts);
      return;
    }
    if (builtin == TypeKind::kString && parts.parameters.size() == 1 &&
        (parts.parameters[0] == "JSON_OBJECT" || parts.parameters[0] == "JSON_ARRAY")) {
      context_.diagnostics.NoteOnce(variable_.type_location,
                                    "value=\"JSON_...\" of a string has no meaning in C++ and is "
                                    "ignored: the variable is a plain string");
    } else if (builtin == TypeKind::kDynamic && variable_.key_text.empty() &&
               !variable_.value_text.empty()) {
      // An older form: the first bean of the dynamic as an attribute.
      const std::size_t colon = variable_.value_text.find(':');
      DynamicChoice choice;
      choice.bean_text = std::string(Trim(variable_.value_text.substr(0, colon)));
      if (colon != std::string::npos) {
        choice.id_text = std::string(Trim(variable_.value_text.substr(colon + 1)));
      }
      choice.location = variable_.type_location;
      variable_.choices.insert(variable_.choices.begin(), std::move(choice));
    } else if (!parts.parameters.empty()) {
      Error(fmt::format("a {} has no key or value type", parts.name),
            "only list, array, set, map, sortedmap and gtable have");
      return;
    }
    variable_.type = ResolveElement(parts.name);
  }

  // How many types a container takes, and what to write.
  static std::pair<std::size_t, std::string_view> Shape(TypeKind kind) {
    if (kind == TypeKind::kGtable) return {3, "gtable[row,column,value]"};
    if (kind == TypeKind::kMap) return {2, "map[key,value]"};
    if (kind == TypeKind::kSortedMap) return {2, "sortedmap[key,value]"};
    return {1, kind == TypeKind::kSet ? "set[value]" : "list[value]"};
  }

  void ResolveContainer(TypeKind kind, const TypeParts& parts) {
    const auto [count, shape] = Shape(kind);
    const bool empty = std::any_of(parts.parameters.begin(), parts.parameters.end(),
                                   [](const std::string& part) { return part.empty(); });
    if (parts.parameters.size() != count || empty) {
      Error(fmt::format("a {} needs {} type{}, found {}", parts.name, count, count == 1 ? "" : "s",
                        empty ? "an empty one" : std::to_string(parts.parameters.size())),
            fmt::format("write {}", shape));
      return;
    }
    Type type{kind, nullptr, {}};
    for (std::size_t index = 0; index < count; ++index) {
      Type element = ResolveElement(parts.parameters[index]);
      if (element.kind == TypeKind::kUnknown) return;
      const bool is_key = index + 1 < count || kind == TypeKind::kSet;
      if (!CheckElement(parts.name, element, is_key)) return;
      type.parameters.push_back(std::move(element));
    }
    variable_.type = std::move(type);
  }

  bool CheckElement(const std::string& container, const Type& element, bool is_key) {
    if (IsContainer(element.kind)) {
      Error(
          fmt::format("containers cannot be nested: {} in a {}", ToString(element.kind), container),
          "put the inner container into a <bean> and use that bean here");
      return false;
    }
    if (element.kind == TypeKind::kDecimal) {
      Error(fmt::format("a decimal cannot be an element of a {}", container),
            "put the decimal into a <bean> or <beankey>");
      return false;
    }
    if (is_key && !IsKeyable(element)) {
      Error(fmt::format("a {} cannot be {} of a {}", ToString(element),
                        container == "set" ? "an element" : "a key", container),
            "use a whole number, bool, string, binary or a beankey");
      return false;
    }
    if (is_key && IsVector(element.kind)) {
      context_.diagnostics.Warning(
          variable_.type_location,
          fmt::format("variable '{}': a {} as a key compares floating point numbers exactly",
                      variable_.name, ToString(element)),
          "use a beankey of whole numbers");
    }
    return true;
  }

  Type ResolveElement(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
      return ResolveSimpleType(context_, scope_, text, variable_.type_location);
    }
    const std::string name(Trim(std::string_view(text).substr(0, colon)));
    const std::string base(Trim(std::string_view(text).substr(colon + 1)));
    if (name != "dynamic" || base.empty() || !variable_.dynamic_base_text.empty()) {
      Error(fmt::format("'{}' is not a type", text),
            "only dynamic may have a base, once: dynamic:BBase");
      return {};
    }
    variable_.dynamic_base_text = base;
    variable_.dynamic_base = context_.symbols.FindBean(scope_, base, variable_.type_location,
                                                       "bean", context_.diagnostics);
    return variable_.dynamic_base == nullptr ? Type{} : Type{TypeKind::kDynamic, nullptr, {}};
  }

  void CheckKeyOfBean() {
    if (!bean_.is_key) return;
    if (!IsKeyable(variable_.type)) {
      Error(fmt::format("a {} cannot be part of the beankey '{}'", ToString(variable_.type),
                        bean_.name),
            "keys are made of whole numbers, bool, string, binary and other beankeys");
    }
  }

  bool IsDynamic() const {
    return variable_.type.kind == TypeKind::kDynamic ||
           (!variable_.type.parameters.empty() &&
            variable_.type.parameters.back().kind == TypeKind::kDynamic);
  }

  void CheckDynamic() {
    if (!IsDynamic()) {
      if (!variable_.choices.empty()) {
        Error("<value> children are only for a dynamic", "remove them or change the type");
      }
      return;
    }
    std::size_t with_id = 0;
    for (DynamicChoice& choice : variable_.choices) {
      CheckChoice(choice);
      if (!choice.id_text.empty()) ++with_id;
    }
    if (with_id != 0 && with_id != variable_.choices.size()) {
      Error("some beans of the dynamic have a type id and some have not",
            "give all of them one, or none");
    }
    if (variable_.choices.empty() && variable_.dynamic_base != nullptr) {
      AddDerived(*variable_.dynamic_base);
    }
    std::map<std::int64_t, const DynamicChoice*> ids;
    for (const DynamicChoice& choice : variable_.choices) {
      if (choice.bean == nullptr || choice.type_id == 0) continue;
      const auto [other, added] = ids.try_emplace(choice.type_id, &choice);
      if (!added) {
        context_.diagnostics.Error(
            choice.location,
            fmt::format("variable '{}': type id {} of '{}' is that of '{}'", variable_.name,
                        choice.type_id, choice.bean->full_name, other->second->bean->full_name),
            "give each bean an id of its own");
      }
    }
  }

  void CheckChoice(DynamicChoice& choice) {
    choice.bean = context_.symbols.FindBean(scope_, choice.bean_text, choice.location, "bean",
                                            context_.diagnostics);
    if (choice.bean != nullptr && choice.bean->is_key) {
      context_.diagnostics.Error(
          choice.location,
          fmt::format("variable '{}': '{}' is a beankey", variable_.name, choice.bean->full_name),
          "a dynamic holds ordinary beans");
    }
    if (choice.id_text.empty()) {
      if (choice.bean != nullptr) choice.type_id = choice.bean->type_id;
      return;
    }
    const auto id = ParseInteger(choice.id_text);
    if (id && *id > 0) {
      choice.type_id = *id;
      return;
    }
    context_.diagnostics.Error(choice.location,
                               fmt::format("variable '{}': type id '{}' of '{}' is not allowed",
                                           variable_.name, choice.id_text, choice.bean_text),
                               "write a whole number above 0");
  }

  void AddDerived(Bean& bean) {
    DynamicChoice choice;
    choice.bean_text = bean.full_name;
    choice.location = variable_.type_location;
    choice.bean = &bean;
    choice.type_id = bean.type_id;
    variable_.choices.push_back(std::move(choice));
    for (Bean* derived : bean.derived) AddDerived(*derived);
  }

  void CheckDefault() {
    if (!variable_.has_default) return;
    const ConstantLookup constants = [this](const std::string& name) {
      const Enum* constant = FindConstant(context_, &bean_, bean_.module, name);
      return constant == nullptr ? std::nullopt : constant->integer;
    };
    const Literal literal = ParseLiteral(variable_.type.kind, variable_.default_text, constants);
    variable_.cxx_default = literal.cxx;
    variable_.typescript_default = literal.typescript;
    if (literal.error.empty()) return;
    context_.diagnostics.Error(
        variable_.default_location,
        fmt::format("default '{}' of variable '{}' ({}): {}", variable_.default_text,
                    variable_.name, ToString(variable_.type), literal.error),
        IsContainer(variable_.type.kind) || variable_.type.bean != nullptr ||
                variable_.type.kind == TypeKind::kBinary ||
                variable_.type.kind == TypeKind::kDynamic
            ? "remove the default and set the value where the bean is created"
            : "write a literal of that type");
  }

  void CheckEnumGroup() {
    if (variable_.enum_text.empty()) return;
    const std::string& text = variable_.enum_text;
    if (!IsInteger(variable_.type.kind)) {
      Error(
          fmt::format("enum=\"{}\" needs a whole number, not a {}", text, ToString(variable_.type)),
          "use type=\"int\"");
      return;
    }
    const auto in = [&](const std::vector<std::unique_ptr<Enum>>& enums, const std::string& group) {
      for (const auto& constant : enums) {
        if (constant->group == group) variable_.enum_group = constant.get();
        if (variable_.enum_group != nullptr) return;
      }
    };
    const std::size_t dot = text.rfind('.');
    if (dot != std::string::npos) {
      const Bean* owner = context_.symbols.FindBeanQuietly(scope_, text.substr(0, dot));
      if (owner != nullptr) in(owner->enums, text.substr(dot + 1));
    } else {
      in(bean_.enums, text);
      for (const Module* at = bean_.module; at != nullptr && variable_.enum_group == nullptr;
           at = at->parent) {
        in(at->enums, text);
      }
    }
    if (variable_.enum_group == nullptr) {
      Error(fmt::format("there is no enum group '{}'", text),
            "give the constants group=\"" + text + "\"");
    } else if (variable_.enum_group->kind != variable_.type.kind) {
      Error(fmt::format("the constants of '{}' are {}, the variable is {}", text,
                        ToString(variable_.enum_group->kind), ToString(variable_.type)),
            "use the same type for both");
    }
  }

  const CheckContext& context_;
  Bean& bean_;
  Variable& variable_;
  const std::string scope_;
};

}  // namespace

Type ResolveSimpleType(const CheckContext& context, std::string_view scope, const std::string& text,
                       const Location& location) {
  if (const std::optional<TypeKind> builtin = FindBuiltinType(text)) {
    return {*builtin, nullptr, {}};
  }
  if (Bean* bean = context.symbols.FindBeanQuietly(scope, text)) {
    return {bean->is_key ? TypeKind::kBeanKey : TypeKind::kBean, bean, {}};
  }
  const std::string_view nearest = xml::Nearest(text, BuiltinTypeNames());
  if (text.find('.') == std::string::npos && !nearest.empty() &&
      xml::EditDistance(text, nearest) <= 1) {
    context.diagnostics.Error(location, fmt::format("there is no type '{}'", text),
                              fmt::format("did you mean '{}'?", nearest));
    return {};
  }
  context.symbols.FindBean(scope, text, location, "type", context.diagnostics);
  return {};
}

void CheckVariable(const CheckContext& context, Bean& bean, Variable& variable) {
  VariableChecker(context, bean, variable).Check();
}

}  // namespace zeze::gen
