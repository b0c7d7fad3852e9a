#include "tools/gen/reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/comments.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "zeze/xml/document.h"

namespace zeze::gen {
namespace {

namespace fs = std::filesystem;
using xml::Element;

// What a module hands down to what is inside it.
struct Defaults {
  bool keep_unknown_fields = false;
  bool strict_handlers = false;
  bool one_by_one = false;
  Level level = Level::kSerializable;
  HandleFlags handle;
  std::string dispatch_mode = "Normal";
  std::int64_t timeout_ms = 0;
  std::string web_path;
};

class Reader {
 public:
  Reader(Diagnostics& diagnostics, Model& model) : diagnostics_(diagnostics), model_(model) {}

  void LoadFile(const std::string& path, bool made);

 private:
  void ReadImport(const Element& element, const std::string& importing_file);
  void ReadRanges(AttributeReader& attributes, Solution& solution);
  void ReadSolution(const Element& root, Solution& solution);
  std::unique_ptr<Module> ReadModule(const Element& element, Solution& solution, Module* parent,
                                     const Defaults& outer);
  void ReadModuleChild(const Element& child, Module& module, const Defaults& defaults);
  std::unique_ptr<Bean> ReadBean(const Element& element, Solution& solution, Module* module,
                                 bool keep_unknown_fields);
  std::unique_ptr<Bean> ReadExternal(const Element& element, Solution& solution, Module* module);
  std::unique_ptr<Variable> ReadVariable(const Element& element);
  void ReadChoices(const Element& element, Variable& variable);
  std::unique_ptr<Enum> ReadEnum(const Element& element);
  std::unique_ptr<Protocol> ReadProtocol(const Element& element, Module& module,
                                         const Defaults& defaults);
  int ReadCriticalLevel(AttributeReader& attributes);
  void ReadProtocolRef(const Element& element, Module& module);
  std::unique_ptr<Table> ReadTable(const Element& element, Module& module);
  std::unique_ptr<Servlet> ReadServlet(const Element& element, Module& module,
                                       const Defaults& defaults);
  std::unique_ptr<Project> ReadProject(const Element& element, Solution& solution);
  std::unique_ptr<Service> ReadService(const Element& element, bool in_component);
  void ReadStartOrder(const Element& element, Project& project);

  void Fill(const Element& element, AttributeReader& attributes, const std::string& scope,
            Item& item) {
    item.name = attributes.Name();
    item.full_name = scope.empty() ? item.name : scope + "." + item.name;
    item.location = element.location();
    item.comment = CommentOf(element);
  }
  Reference ReadReference(const Element& element, std::string_view kind) {
    AttributeReader attributes(element, kind, diagnostics_);
    return {attributes.RequiredText("ref"), attributes.At("ref")};
  }

  Diagnostics& diagnostics_;
  Model& model_;
  std::set<std::string> loaded_;
};

std::string ScopeOf(const Solution& solution, const Module* module) {
  return module != nullptr ? module->full_name : solution.name;
}

void Reader::LoadFile(const std::string& path, bool made) {
  std::error_code code;
  const fs::path canonical = fs::weakly_canonical(path, code);
  const std::string identity = code ? path : canonical.string();
  if (!loaded_.insert(identity).second) {
    // A file that was imported before it was named is made as well.
    for (const auto& solution : model_.solutions) {
      if (made && solution->file == identity) solution->is_made = true;
    }
    return;
  }
  const std::optional<xml::Document> document = xml::Document::ParseFile(path, diagnostics_);
  if (!document) {
    model_.files.push_back(path);
    return;
  }
  for (const std::string& file : document->files()) model_.files.push_back(file);
  const Element& root = document->root();
  if (root.name() != "solution") {
    diagnostics_.Error(root.location(), fmt::format("the root is <{}>", root.name()),
                       "a schema file has the root <solution>");
    return;
  }
  auto solution = std::make_unique<Solution>();
  solution->file = identity;
  solution->is_made = made;
  Solution& target = *solution;
  model_.solutions.push_back(std::move(solution));
  ReadSolution(root, target);
}

void Reader::ReadSolution(const Element& root, Solution& solution) {
  AttributeReader attributes(root, "solution", diagnostics_);
  Fill(root, attributes, "", solution);
  ReadRanges(attributes, solution);
  Defaults defaults;
  defaults.keep_unknown_fields = attributes.Bool("keepUnknownFields");
  for (const Element* child : root.children()) {
    const std::string& name = child->name();
    if (name == "import") {
      ReadImport(*child, child->file());
    } else if (name == "bean" || name == "beankey") {
      solution.beans.push_back(ReadBean(*child, solution, nullptr, defaults.keep_unknown_fields));
    } else if (name == "external" || name == "externalkey") {
      solution.beans.push_back(ReadExternal(*child, solution, nullptr));
    } else if (name == "module") {
      solution.modules.push_back(ReadModule(*child, solution, nullptr, defaults));
    } else if (name == "project" || name == "component") {
      solution.projects.push_back(ReadProject(*child, solution));
    }
  }
}

void Reader::ReadImport(const Element& element, const std::string& importing_file) {
  AttributeReader attributes(element, "import", diagnostics_);
  const std::string file = attributes.RequiredText("file");
  if (file.empty()) return;
  const fs::path beside = (fs::path(importing_file).parent_path() / file).lexically_normal();
  std::error_code code;
  if (fs::exists(beside, code)) {
    LoadFile(beside.string(), false);
  } else if (fs::exists(file, code)) {
    LoadFile(file, false);
  } else {
    diagnostics_.Error(attributes.At("file"),
                       fmt::format("imported file '{}' does not exist", file),
                       fmt::format("looked for '{}', then for '{}' in the current directory",
                                   beside.string(), file));
  }
}

void Reader::ReadRanges(AttributeReader& attributes, Solution& solution) {
  solution.ranges_location = attributes.At("ModuleIdAllowRanges");
  const std::string text = attributes.Text("ModuleIdAllowRanges");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view range = Trim(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (range.empty()) continue;
    const std::size_t dash = range.find('-');
    const auto first = ParseInteger(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInteger(range.substr(dash + 1));
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!first || !last || *first < 0 || *first > *last || *last > kMost) {
      diagnostics_.Error(solution.ranges_location,
                         fmt::format("'{}' is not a range of module ids", range),
                         "write for example ModuleIdAllowRanges=\"1-99,200\"");
      continue;
    }
    solution.ranges.emplace_back(static_cast<std::int32_t>(*first),
                                 static_cast<std::int32_t>(*last));
  }
}

std::unique_ptr<Module> Reader::ReadModule(const Element& element, Solution& solution,
                                           Module* parent, const Defaults& outer) {
  auto module = std::make_unique<Module>();
  AttributeReader attributes(element, "module", diagnostics_);
  Fill(element, attributes, ScopeOf(solution, parent), *module);
  module->id_text = attributes.Text("id");
  module->id_location = attributes.At("id");
  module->parent = parent;
  module->solution = &solution;

  Defaults defaults;
  defaults.keep_unknown_fields = attributes.Bool("keepUnknownFields", outer.keep_unknown_fields);
  defaults.strict_handlers = attributes.Bool("strictHandlers");
  defaults.one_by_one = attributes.Bool("OneByOne");
  defaults.level = attributes.TransactionLevel("DefaultTransactionLevel", Level::kSerializable);
  defaults.handle = attributes.Handle("handle");
  defaults.dispatch_mode =
      attributes.Choice("DispatchMode", "Normal", {"Normal", "Critical", "Direct"});
  defaults.timeout_ms = attributes.Milliseconds("Timeout", 0);
  defaults.web_path = attributes.Text("WebPathBase");
  module->handle = defaults.handle;
  module->strict_handlers = defaults.strict_handlers;
  for (const Element* child : element.children()) ReadModuleChild(*child, *module, defaults);
  return module;
}

void Reader::ReadModuleChild(const Element& child, Module& module, const Defaults& defaults) {
  const std::string& name = child.name();
  Solution& solution = *module.solution;
  if (name == "enum") {
    module.enums.push_back(ReadEnum(child));
  } else if (name == "bean" || name == "beankey") {
    module.beans.push_back(ReadBean(child, solution, &module, defaults.keep_unknown_fields));
  } else if (name == "external" || name == "externalkey") {
    module.beans.push_back(ReadExternal(child, solution, &module));
  } else if (name == "module") {
    module.modules.push_back(ReadModule(child, solution, &module, defaults));
  } else if (name == "protocol" || name == "rpc") {
    module.protocols.push_back(ReadProtocol(child, module, defaults));
  } else if (name == "protocolref") {
    ReadProtocolRef(child, module);
  } else if (name == "table") {
    module.tables.push_back(ReadTable(child, module));
  } else if (name == "servlet" || name == "servletstream") {
    module.servlets.push_back(ReadServlet(child, module, defaults));
  }
}

std::unique_ptr<Bean> Reader::ReadBean(const Element& element, Solution& solution, Module* module,
                                       bool keep_unknown_fields) {
  auto bean = std::make_unique<Bean>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  Fill(element, attributes, ScopeOf(solution, module), *bean);
  bean->is_key = element.name() == "beankey";
  bean->solution = &solution;
  bean->module = module;
  bean->type_id_text = attributes.Text("TypeId");
  bean->type_id_location = attributes.At("TypeId");
  if (!bean->is_key) {
    bean->base_text = attributes.Text("base");
    bean->base_location = attributes.At("base");
    bean->version_text = attributes.Text("version");
    bean->version_location = attributes.At("version");
    bean->keep_unknown_fields = attributes.Bool("keepUnknownFields", keep_unknown_fields);
  }
  for (const Element* child : element.children()) {
    if (child->name() == "variable" || child->name() == "var") {
      bean->variables.push_back(ReadVariable(*child));
    } else if (child->name() == "enum") {
      bean->enums.push_back(ReadEnum(*child));
    }
  }
  return bean;
}

std::unique_ptr<Bean> Reader::ReadExternal(const Element& element, Solution& solution,
                                           Module* module) {
  auto bean = std::make_unique<Bean>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  bean->is_external = true;
  bean->is_key = element.name() == "externalkey";
  bean->full_name = attributes.RequiredText(bean->is_key ? "beankey" : "bean");
  if (!bean->full_name.empty() && !IsDottedName(bean->full_name)) {
    diagnostics_.Error(attributes.At(bean->is_key ? "beankey" : "bean"),
                       fmt::format("'{}' is not a full name", bean->full_name),
                       "write it with dots, as beans of other modules are written: my.game.BThing");
  }
  const std::size_t dot = bean->full_name.rfind('.');
  bean->name = dot == std::string::npos ? bean->full_name : bean->full_name.substr(dot + 1);
  bean->location = element.location();
  bean->comment = CommentOf(element);
  bean->header = attributes.Text("header");
  bean->solution = &solution;
  bean->module = module;
  return bean;
}

std::unique_ptr<Variable> Reader::ReadVariable(const Element& element) {
  auto variable = std::make_unique<Variable>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  variable->name = attributes.Name(true);
  variable->location = element.location();
  variable->comment = TrailingCommentOf(element);
  variable->type_text = attributes.RequiredText("type");
  variable->type_location = attributes.At("type");
  variable->key_text = attributes.Text("key");
  variable->value_text = attributes.Text("value");
  variable->has_default = attributes.Has("default") && !attributes.Text("default").empty();
  variable->default_text = element.GetAttribute("default");
  variable->default_location = attributes.At("default");
  variable->enum_text = attributes.Text("enum");
  variable->allow_negative = attributes.Bool("AllowNegative");
  variable->transient = attributes.Bool("transient");
  const std::string id = attributes.RequiredText("id");
  if (!id.empty()) {
    const auto parsed = ParseInteger(id);
    if (parsed && *parsed >= 1 && *parsed <= 4095) {
      variable->id = static_cast<int>(*parsed);
    } else {
      diagnostics_.Error(attributes.At("id"),
                         fmt::format("id '{}' of variable '{}' is not allowed", id, variable->name),
                         "write a whole number from 1 to 4095");
    }
  }
  ReadChoices(element, *variable);
  return variable;
}

void Reader::ReadChoices(const Element& element, Variable& variable) {
  for (const Element* child : element.children()) {
    if (child->name() == "value") {
      AttributeReader attributes(*child, "value", diagnostics_);
      const std::string text = attributes.RequiredText("bean");
      const std::size_t colon = text.find(':');
      DynamicChoice choice;
      choice.bean_text = std::string(Trim(text.substr(0, colon)));
      if (colon != std::string::npos) choice.id_text = std::string(Trim(text.substr(colon + 1)));
      choice.location = attributes.At("bean");
      if (!text.empty()) variable.choices.push_back(std::move(choice));
    } else if (child->name().find("SpecialTypeId") != std::string::npos) {
      const AttributeReader attributes(*child, child->name(), diagnostics_);
      diagnostics_.NoteOnce(child->location(),
                            fmt::format("<{}> has no meaning in C++ and is ignored: it names a "
                                        "function of another language",
                                        child->name()),
                            "list the beans of the dynamic with <value bean=\"...\"/>");
    }
  }
}

std::unique_ptr<Enum> Reader::ReadEnum(const Element& element) {
  auto constant = std::make_unique<Enum>();
  AttributeReader attributes(element, "enum", diagnostics_);
  constant->name = attributes.Name();
  constant->location = element.location();
  constant->comment = TrailingCommentOf(element);
  constant->value_text = element.GetAttribute("value");
  constant->value_location = attributes.At("value");
  constant->type_text = attributes.Text("type", "int");
  if (constant->type_text.empty()) constant->type_text = "int";
  constant->group = attributes.Text("group");
  if (!attributes.Has("value")) attributes.RequiredText("value");
  return constant;
}

std::unique_ptr<Protocol> Reader::ReadProtocol(const Element& element, Module& module,
                                               const Defaults& defaults) {
  auto protocol = std::make_unique<Protocol>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  Fill(element, attributes, module.full_name, *protocol);
  protocol->is_rpc = element.name() == "rpc";
  protocol->module = &module;
  protocol->id_text = attributes.Text("id");
  protocol->id_location = attributes.At("id");
  protocol->argument_text = attributes.Text("argument");
  protocol->argument_location = attributes.At("argument");
  if (protocol->is_rpc) {
    protocol->result_text = attributes.Text("result");
    protocol->result_location = attributes.At("result");
  }
  const std::size_t errors = diagnostics_.error_count();
  protocol->handle = attributes.Has("handle") ? attributes.Handle("handle") : defaults.handle;
  if (!protocol->handle.any() && diagnostics_.error_count() == errors) {
    diagnostics_.Error(attributes.At("handle"),
                       fmt::format("{} does not say who handles it", attributes.Describe()),
                       "add handle=\"server\" (or client), here or once on the module");
  }
  protocol->level = attributes.TransactionLevel("TransactionLevel", defaults.level);
  protocol->level = attributes.TransactionLevel("NoProcedure", protocol->level);
  protocol->critical_level = ReadCriticalLevel(attributes);
  protocol->dispatch_mode =
      attributes.Choice("DispatchMode", defaults.dispatch_mode, {"Normal", "Critical", "Direct"});
  protocol->timeout_ms = attributes.Milliseconds("Timeout", defaults.timeout_ms);
  protocol->one_by_one = attributes.Bool("OneByOne", defaults.one_by_one);
  protocol->strict_handler = attributes.Bool("strictHandlers", defaults.strict_handlers);
  if (protocol->dispatch_mode == "Direct" && protocol->level != Level::kNone) {
    diagnostics_.Warning(
        attributes.At("DispatchMode"),
        fmt::format("{} runs a transaction on a network thread", attributes.Describe()),
        "use TransactionLevel=\"None\" with DispatchMode=\"Direct\"");
  }
  for (const Element* child : element.children("enum")) {
    protocol->enums.push_back(ReadEnum(*child));
  }
  return protocol;
}

int Reader::ReadCriticalLevel(AttributeReader& attributes) {
  static constexpr std::string_view kLevels[] = {"CriticalPlus", "Critical", "Normal", "Sheddable"};
  const std::string text = attributes.Text("CriticalLevel");
  if (text.empty()) return 0;
  for (int level = 0; level < 4; ++level) {
    if (text == kLevels[level] || text == std::to_string(level)) return level;
  }
  diagnostics_.Error(attributes.At("CriticalLevel"),
                     fmt::format("unknown CriticalLevel '{}' of {}", text, attributes.Describe()),
                     "write CriticalPlus, Critical, Normal or Sheddable (0 to 3)");
  return 0;
}

void Reader::ReadProtocolRef(const Element& element, Module& module) {
  AttributeReader attributes(element, "protocolref", diagnostics_);
  const bool has_ref = attributes.Has("ref");
  if (has_ref == attributes.Has("import")) {
    diagnostics_.Error(element.location(), "<protocolref> needs either ref or import",
                       "ref=\"Full.Name\" handles the protocol here, import=\"Full.Name\" only "
                       "generates it");
    return;
  }
  const char* attribute = has_ref ? "ref" : "import";
  module.protocol_refs.push_back(
      {attributes.RequiredText(attribute), !has_ref, attributes.At(attribute), nullptr});
}

std::unique_ptr<Table> Reader::ReadTable(const Element& element, Module& module) {
  auto table = std::make_unique<Table>();
  AttributeReader attributes(element, "table", diagnostics_);
  Fill(element, attributes, module.full_name, *table);
  table->module = &module;
  table->key_text = attributes.RequiredText("key");
  table->key_location = attributes.At("key");
  table->value_text = attributes.RequiredText("value");
  table->value_location = attributes.At("value");
  table->id_text = attributes.Text("id");
  table->id_location = attributes.At("id");
  table->gen = attributes.Text("gen");
  table->auto_key = attributes.Text("autokey");
  if (table->auto_key != "true" && table->auto_key != "random" && table->auto_key != "false" &&
      !table->auto_key.empty()) {
    diagnostics_.Warning(attributes.At("autokey"),
                         fmt::format("autokey of {} is '{}' and has no effect",
                                     attributes.Describe(), table->auto_key),
                         "write true (long keys) or random (binary keys)");
  }
  if (table->auto_key != "true" && table->auto_key != "random") table->auto_key.clear();
  table->suffix = attributes.Text("suffix");
  table->suffix_location = attributes.At("suffix");
  table->suffix_style =
      attributes.Has("suffixStyle") ? attributes.Choice("suffixStyle", "v1", {"v1", "v2"}) : "v1";
  table->former_name = attributes.Text("formerName");
  table->former_location = attributes.At("formerName");
  table->memory = attributes.Bool("memory");
  table->no_schema = attributes.Bool("noSchema");
  table->version = static_cast<std::int32_t>(
      attributes.Int("version", 0, 0, std::numeric_limits<std::int32_t>::max()));
  return table;
}

std::unique_ptr<Servlet> Reader::ReadServlet(const Element& element, Module& module,
                                             const Defaults& defaults) {
  auto servlet = std::make_unique<Servlet>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  Fill(element, attributes, module.full_name, *servlet);
  servlet->is_stream = element.name() == "servletstream";
  if (!servlet->is_stream) {
    servlet->content_bytes_max =
        attributes.Int("MaxContentLength", 8192, 0, std::numeric_limits<std::int32_t>::max());
  }
  servlet->level = attributes.TransactionLevel("TransactionLevel", Level::kSerializable);
  if (defaults.web_path.empty()) {
    servlet->path = "/" + servlet->full_name;
    std::replace(servlet->path.begin(), servlet->path.end(), '.', '/');
  } else {
    servlet->path =
        defaults.web_path + (defaults.web_path.ends_with('/') ? "" : "/") + servlet->name;
  }
  diagnostics_.NoteOnce(element.location(),
                        "servlets are read and checked, but no C++ is generated for them yet");
  return servlet;
}

std::unique_ptr<Project> Reader::ReadProject(const Element& element, Solution& solution) {
  auto project = std::make_unique<Project>();
  AttributeReader attributes(element, element.name(), diagnostics_);
  project->platform = ToLower(attributes.Text("platform"));
  if (project->platform == "cxx" || project->platform == "zeze+cxx" || !attributes.Has("name")) {
    Fill(element, attributes, "", *project);
  } else {
    // Names of projects for other languages become nothing in C++: whatever they allow is fine.
    project->name = attributes.Text("name");
    project->location = element.location();
    project->comment = CommentOf(element);
  }
  project->solution = &solution;
  project->is_component = element.name() == "component";
  project->gen_tables = element.GetAttribute("GenTables");
  project->include_all_modules = attributes.Bool("IncludeAllModules");
  project->no_recursive_modules = attributes.Bool("NoRecursiveModule");
  project->client_script = attributes.Bool("ClientScript");
  for (const Element* child : element.children()) {
    const std::string& name = child->name();
    if (name == "module") {
      project->module_refs.push_back(ReadReference(*child, "module ref"));
    } else if (name == "service") {
      project->services.push_back(ReadService(*child, project->is_component));
    } else if (name == "ModuleStartOrder") {
      ReadStartOrder(*child, *project);
    } else if (name == "bean" || name == "beankey") {
      project->bean_refs.push_back(ReadReference(*child, name + " ref"));
    } else if (name == "FollowerApplyTables") {
      diagnostics_.NoteOnce(child->location(),
                            "<FollowerApplyTables> has no meaning in C++ and is "
                            "ignored: it is a C# client feature");
    }
  }
  return project;
}

std::unique_ptr<Service> Reader::ReadService(const Element& element, bool in_component) {
  auto service = std::make_unique<Service>();
  AttributeReader attributes(element, "service", diagnostics_);
  if (in_component && attributes.Text("name").empty()) {
    service->location = element.location();
  } else {
    Fill(element, attributes, "", *service);
  }
  const std::size_t errors = diagnostics_.error_count();
  service->handle = attributes.Handle("handle");
  if (!service->handle.any() && diagnostics_.error_count() == errors) {
    diagnostics_.Error(attributes.At("handle"),
                       fmt::format("{} does not say what it handles", attributes.Describe()),
                       "add handle=\"server\" or handle=\"client\"");
  }
  for (const Element* child : element.children("module")) {
    service->module_refs.push_back(ReadReference(*child, "module ref"));
  }
  return service;
}

void Reader::ReadStartOrder(const Element& element, Project& project) {
  const AttributeReader checked(element, "ModuleStartOrder", diagnostics_);
  for (const Element* child : element.children()) {
    if (child->name() != "start" && child->name() != "module") continue;
    const bool start = child->name() == "start";
    AttributeReader attributes(*child, start ? "start" : "module start", diagnostics_);
    const char* attribute = start || attributes.Has("module") ? "module" : "ref";
    project.start_order_refs.push_back(
        {attributes.RequiredText(attribute), attributes.At(attribute)});
  }
}

}  // namespace

void ReadModel(const std::vector<std::string>& files, Diagnostics& diagnostics, Model& model) {
  Reader reader(diagnostics, model);
  for (const std::string& file : files) reader.LoadFile(file, true);
}

}  // namespace zeze::gen
