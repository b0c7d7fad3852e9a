// Types, variables, constants and beans.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/checker.h"
#include "tools/gen/literal.h"
#include "tools/gen/names.h"
#include "zeze/base/name_hash.h"

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
    if (variable_.choices.empty() && !variable_.has_dynamic_functions) {
      context_.diagnostics.Warning(
          variable_.type_location,
          fmt::format("variable '{}': nothing says which beans this dynamic may hold",
                      variable_.name),
          "add <value bean=\"...\"/> children or write dynamic:Base; until then it can only be "
          "empty");
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

void CheckTypeIds(const CheckContext& context) {
  std::map<std::int64_t, const Bean*> owners;
  for (Bean* bean : context.model.AllBeans()) {
    if (bean->name.empty()) continue;
    bean->type_id = HashName64(bean->full_name);
    if (!bean->type_id_text.empty()) {
      const auto id = ParseInteger(bean->type_id_text);
      if (!id) {
        context.diagnostics.Error(
            bean->type_id_location,
            fmt::format("TypeId '{}' of '{}' is not a number", bean->type_id_text, bean->full_name),
            "write a whole number or leave it out");
        continue;
      }
      bean->type_id = *id;
    }
    if (bean->type_id == 0) {
      context.diagnostics.Error(
          bean->type_id_location,
          fmt::format("the TypeId of '{}' is 0, which means the empty bean", bean->full_name),
          "choose another one");
      continue;
    }
    const auto [owner, added] = owners.try_emplace(bean->type_id, bean);
    if (!added && owner->second->full_name != bean->full_name) {
      context.diagnostics.Error(
          bean->type_id_location,
          fmt::format("TypeId {} of '{}' is that of '{}' at {}", bean->type_id, bean->full_name,
                      owner->second->full_name, owner->second->location.ToString()),
          "give one of them an explicit TypeId");
    }
  }
}

void ResolveBases(const CheckContext& context) {
  for (Bean* bean : context.model.AllBeans()) {
    if (bean->base_text.empty()) continue;
    Bean* base = context.symbols.FindBean(ScopeOf(*bean), bean->base_text, bean->base_location,
                                          "bean", context.diagnostics);
    if (base == nullptr) continue;
    if (base->is_key) {
      context.diagnostics.Error(
          bean->base_location,
          fmt::format("the base '{}' of '{}' is a beankey", base->full_name, bean->full_name),
          "only a <bean> can be a base");
      continue;
    }
    bool circle = false;
    for (const Bean* at = base; at != nullptr; at = at->base) circle = circle || at == bean;
    if (circle) {
      context.diagnostics.Error(bean->base_location,
                                fmt::format("'{}' would be its own base", bean->full_name),
                                "break the circle");
      continue;
    }
    bean->base = base;
    base->derived.push_back(bean);
  }
}

void CheckUniqueInBean(const CheckContext& context, const Bean& bean) {
  std::map<int, const Variable*> ids;
  std::map<std::string, Location> names;
  int free_id = 1;
  for (const auto& variable : bean.variables) free_id = std::max(free_id, variable->id + 1);
  for (const auto& variable : bean.variables) {
    if (variable->id != 0) {
      const auto [other, added] = ids.try_emplace(variable->id, variable.get());
      if (!added) {
        context.diagnostics.Error(
            variable->location,
            fmt::format("variable id {} of '{}' is used by '{}' at line {}", variable->id,
                        variable->name, other->second->name, other->second->location.line),
            free_id <= 4095 ? fmt::format("the next free id in '{}' is {}", bean.name, free_id)
                            : "");
      }
    }
    if (variable->name.empty()) continue;
    const auto [other, added] = names.try_emplace(variable->name, variable->location);
    if (!added) {
      context.diagnostics.Error(variable->location,
                                fmt::format("'{}' has two variables '{}', the other at line {}",
                                            bean.name, variable->name, other->second.line),
                                "rename one of them");
    }
  }
  for (const auto& constant : bean.enums) {
    if (constant->name.empty()) continue;
    const auto [other, added] = names.try_emplace(constant->name, constant->location);
    if (!added) {
      context.diagnostics.Error(constant->location,
                                fmt::format("'{}' has another '{}' at line {}", bean.name,
                                            constant->name, other->second.line),
                                "rename one of them");
    }
  }
}

void CheckVersion(const CheckContext& context, Bean& bean) {
  if (bean.version_text.empty()) return;
  for (const auto& variable : bean.variables) {
    if (variable->name != bean.version_text) continue;
    if (variable->type.kind == TypeKind::kLong) {
      bean.version = variable.get();
    } else {
      context.diagnostics.Error(
          bean.version_location,
          fmt::format("the version variable '{}' of '{}' is a {}", variable->name, bean.full_name,
                      ToString(variable->type)),
          "make it a long");
    }
    return;
  }
  context.diagnostics.Error(
      bean.version_location,
      fmt::format("'{}' has no variable '{}' to hold its version", bean.full_name,
                  bean.version_text),
      fmt::format("add <variable id=\"...\" name=\"{}\" type=\"long\"/>", bean.version_text));
}

// A struct cannot contain itself; through containers and dynamic it can.
class CircleFinder {
 public:
  explicit CircleFinder(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void Visit(const Bean& bean) {
    if (done_.contains(&bean)) return;
    path_.push_back(&bean);
    if (bean.base != nullptr) Enter(*bean.base, bean.location);
    for (const auto& variable : bean.variables) {
      if (variable->type.bean != nullptr) Enter(*variable->type.bean, variable->location);
    }
    path_.pop_back();
    done_.insert(&bean);
  }

 private:
  void Enter(const Bean& inner, const Location& location) {
    const auto at = std::find(path_.begin(), path_.end(), &inner);
    if (at == path_.end()) {
      Visit(inner);
      return;
    }
    std::string circle;
    for (auto step = at; step != path_.end(); ++step) circle += (*step)->name + " -> ";
    diagnostics_.Error(
        location, fmt::format("'{}' contains itself: {}{}", inner.full_name, circle, inner.name),
        "hold it in a list, a map or a dynamic");
  }

  Diagnostics& diagnostics_;
  std::vector<const Bean*> path_;
  std::set<const Bean*> done_;
};

void CheckVersionedBeansAreValues(const CheckContext& context) {
  std::set<const Bean*> values;
  for (const Module* module : context.model.AllModules()) {
    for (const auto& table : module->tables) {
      values.insert(context.symbols.FindBeanQuietly(module->full_name, table->value_text));
    }
  }
  for (const Bean* bean : context.model.AllBeans()) {
    if (bean->version == nullptr || values.contains(bean)) continue;
    context.diagnostics.Warning(
        bean->version_location,
        fmt::format("'{}' has a version but is not the value of any table", bean->full_name),
        "the framework counts versions of table values only");
  }
}

void EvaluateEnum(const CheckContext& context, const Bean* bean, const Module* module,
                  Enum& constant, bool report) {
  if (!constant.cxx_value.empty() || constant.value_text.empty()) return;
  const std::optional<TypeKind> kind = FindBuiltinType(constant.type_text);
  const bool simple = kind && !IsContainer(*kind) && *kind != TypeKind::kDynamic &&
                      *kind != TypeKind::kBinary && !IsVector(*kind) && *kind != TypeKind::kDecimal;
  if (!simple) {
    if (report) {
      context.diagnostics.Error(
          constant.location,
          fmt::format("enum '{}' cannot be of type '{}'", constant.name, constant.type_text),
          "use bool, byte, short, int, long, float, double or string");
    }
    return;
  }
  constant.kind = *kind;
  std::string text = constant.value_text;
  if (*kind == TypeKind::kString && text.size() >= 2 && text.starts_with('"') &&
      text.ends_with('"')) {
    text = text.substr(1, text.size() - 2);  // Written as a literal of another language.
  }
  const ConstantLookup constants = [&](const std::string& name) {
    const Enum* other = FindConstant(context, bean, module, name);
    return other == nullptr || other == &constant ? std::nullopt : other->integer;
  };
  const Literal literal = ParseLiteral(*kind, text, constants);
  if (!literal.error.empty()) {
    if (report) {
      context.diagnostics.Error(constant.value_location,
                                fmt::format("value '{}' of enum '{}' ({}): {}", constant.value_text,
                                            constant.name, constant.type_text, literal.error),
                                "write a literal of that type");
    }
    return;
  }
  constant.integer = literal.integer;
  constant.cxx_value = !literal.cxx.empty()         ? literal.cxx
                       : *kind == TypeKind::kBool   ? "false"
                       : *kind == TypeKind::kString ? "\"\""
                       : *kind == TypeKind::kFloat  ? "0.0F"
                       : *kind == TypeKind::kDouble ? "0.0"
                                                    : "0";
}

void CheckGroups(const CheckContext& context, const std::vector<std::unique_ptr<Enum>>& enums) {
  std::map<std::string, TypeKind> groups;
  for (const auto& constant : enums) {
    if (constant->group.empty()) continue;
    const std::string why = WhyNotAName(constant->group);
    if (!why.empty() || IsReservedWord(constant->group)) {
      context.diagnostics.Error(constant->location,
                                fmt::format("'{}' cannot be the name of an enum group{}{}",
                                            constant->group, why.empty() ? "" : ": ", why),
                                "use a plain word");
      continue;
    }
    const auto [group, added] = groups.try_emplace(constant->group, constant->kind);
    if (!IsInteger(constant->kind) || group->second != constant->kind) {
      context.diagnostics.Error(
          constant->location,
          fmt::format("constants of the enum group '{}' must be whole numbers of one type",
                      constant->group),
          "use the same type for all of them");
    }
    const bool taken = std::any_of(enums.begin(), enums.end(), [&](const auto& other) {
      return other->name == constant->group;
    });
    if (taken && added) {
      context.diagnostics.Error(
          constant->location,
          fmt::format("the enum group '{}' has the name of a constant", constant->group),
          "rename the group");
    }
  }
}

void ForEachEnumScope(const CheckContext& context,
                      const std::function<void(const Bean*, const Module*,
                                               std::vector<std::unique_ptr<Enum>>&)>& visit) {
  for (Module* module : context.model.AllModules()) {
    visit(nullptr, module, module->enums);
    for (const auto& protocol : module->protocols) visit(nullptr, module, protocol->enums);
  }
  for (Bean* bean : context.model.AllBeans()) visit(bean, bean->module, bean->enums);
}

const Enum* FindIn(const std::vector<std::unique_ptr<Enum>>& enums, std::string_view name) {
  for (const auto& constant : enums) {
    if (constant->name == name) return constant.get();
  }
  return nullptr;
}

}  // namespace

const Enum* FindConstant(const CheckContext& context, const Bean* bean, const Module* module,
                         const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const std::string owner = name.substr(0, dot);
    const std::string scope = module != nullptr ? module->full_name
                              : bean != nullptr ? bean->solution->name
                                                : std::string();
    if (const Bean* other = context.symbols.FindBeanQuietly(scope, owner)) {
      return FindIn(other->enums, name.substr(dot + 1));
    }
    if (const Module* other = context.symbols.FindModuleQuietly(scope, owner)) {
      return FindIn(other->enums, name.substr(dot + 1));
    }
    return nullptr;
  }
  if (bean != nullptr) {
    if (const Enum* found = FindIn(bean->enums, name)) return found;
  }
  for (const Module* at = module; at != nullptr; at = at->parent) {
    if (const Enum* found = FindIn(at->enums, name)) return found;
  }
  return nullptr;
}

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

void CheckEnums(const CheckContext& context) {
  // Twice, so that a constant may use one that stands further down.
  for (const bool report : {false, true}) {
    ForEachEnumScope(context, [&](const Bean* bean, const Module* module, auto& enums) {
      for (const auto& constant : enums) EvaluateEnum(context, bean, module, *constant, report);
    });
  }
  ForEachEnumScope(context,
                   [&](const Bean*, const Module*, auto& enums) { CheckGroups(context, enums); });
}

void CheckBeans(const CheckContext& context) {
  CheckTypeIds(context);
  ResolveBases(context);
  for (Bean* bean : context.model.AllBeans()) {
    CheckUniqueInBean(context, *bean);
    for (const auto& variable : bean->variables) VariableChecker(context, *bean, *variable).Check();
    CheckVersion(context, *bean);
  }
  CircleFinder circles(context.diagnostics);
  for (const Bean* bean : context.model.AllBeans()) circles.Visit(*bean);
  CheckVersionedBeansAreValues(context);
}

}  // namespace zeze::gen
