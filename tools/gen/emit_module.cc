// Module bases: tables, typed virtual handlers, and the table that joins protocols with them.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/code_writer.h"
#include "tools/gen/cxx_names.h"
#include "tools/gen/emitter.h"
#include "tools/gen/literal.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "tools/gen/plan.h"

namespace zeze::gen {
namespace {

std::set<std::string> SourceOf(const Module& module) {
  const std::size_t slash = module.location.file.find_last_of('/');
  return {slash == std::string::npos ? module.location.file
                                     : module.location.file.substr(slash + 1)};
}

// A bean, written inside the class of a module.
std::string BeanNameInside(const Module& module, const Bean& bean) {
  return CxxBeanName(bean, IsHiddenIn(module, bean.name) ? std::string_view() : module.full_name);
}

class ModuleEmitter {
 public:
  ModuleEmitter(const Plan& plan, const Module& module)
      : plan_(plan),
        module_(module),
        name_(ModuleBaseName(module)),
        tables_(SelectedTables(plan, module)),
        handled_(HandledProtocols(plan, module)) {}

  std::string EmitHeader() {
    CodeWriter out;
    out.Line("#pragma once\n");
    out.Line("#include <concepts>\n#include <cstdint>\n#include <span>\n#include <string_view>");
    out.Line("#include <vector>\n");
    out.Line("#include \"zeze/app/module.h\"\n#include \"zeze/base/result_code.h\"");
    if (!tables_.empty()) {
      out.Line("#include \"zeze/transaction/table.h\"");
      out.Line("#include \"zeze/transaction/table_descriptor.h\"");
    }
    out.Blank();
    for (const std::string& path : Includes()) out.Line("#include \"{}\"", path);
    out.Blank();
    out.Namespace(module_.full_name);
    for (const Table* table : tables_) EmitDescriptor(out, *table);
    EmitClass(out);
    return Finish(std::move(out));
  }

  std::string EmitSource() {
    CodeWriter out;
    out.Line("#include \"{}.module.h\"\n", PathOf(module_.full_name));
    out.Line("#include \"zeze/app/protocol_call.h\"\n#include \"zeze/base/result_code.h\"");
    if (!handled_.empty()) {
      out.Line("#include \"zeze/app/session.h\"");
      out.Line("#include \"zeze/transaction/transaction.h\"");
    }
    out.Blank();
    out.Namespace(module_.full_name);
    if (!handled_.empty()) {
      out.Line("namespace {{\n");
      out.Line("constexpr zeze::ProtocolHandler kHandlers_[] = {{");
      for (const Protocol* protocol : handled_) {
        const std::string type = ProtocolName(*protocol);
        out.Line("    {{&{}::kDescriptor,", type);
        out.Line("     &zeze::DecodeCall<{0}, {1}, &{0}::Process{2}>}},", name_, type,
                 UpperFirst(protocol->name));
      }
      out.Line("}};\n\n}}  // namespace\n");
    }
    out.Line("{0}::{0}() = default;\n{0}::~{0}() = default;", name_);
    out.Blank();
    EmitTables(out);
    out.Line("std::span<const zeze::ProtocolHandler> {}::Handlers() const {{ return {}; }}", name_,
             handled_.empty() ? "{}" : "kHandlers_");
    for (const Protocol* protocol : handled_) EmitDefault(out, *protocol);
    return Finish(std::move(out));
  }

 private:
  std::string Finish(CodeWriter out) const {
    std::string text = Banner(SourceOf(module_)) + "\n" + out.Release();
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

  std::string ProtocolName(const Protocol& protocol) const {
    return protocol.module == &module_ ? CxxName(protocol.name)
                                       : CxxQualifiedName(protocol.full_name);
  }

  std::set<std::string> Includes() const {
    std::set<std::string> paths;
    const auto add = [&](const Bean* bean) {
      if (bean == nullptr) return;
      if (!bean->is_external) {
        paths.insert(plan_.UnitOf(*bean).path() + ".h");
      } else if (!bean->header.empty()) {
        paths.insert(bean->header);
      }
    };
    for (const Table* table : tables_) {
      add(table->key.bean);
      add(table->value);
    }
    for (const Protocol* protocol : handled_) {
      paths.insert(plan_.UnitOf(*protocol).path() + ".h");
      add(protocol->argument);
      add(protocol->result);
    }
    const auto own = plan_.unit_of_namespace.find(module_.full_name);
    if (own != plan_.unit_of_namespace.end()) paths.insert(own->second->path() + ".h");
    return paths;
  }

  void EmitDescriptor(CodeWriter& out, const Table& table) const {
    out.Line("inline constexpr zeze::TableDescriptor {}{{", CxxDescriptorName(table));
    out.Line("    .id = {},", table.id);
    out.Line("    .name = {},", QuoteCxx(table.storage_name));
    out.Line("    .full_name = {},", QuoteCxx(table.full_name));
    out.Line("    .memory = {},", table.memory);
    out.Line("    .version = {},", table.version);
    out.Line("    .no_schema = {},", table.no_schema);
    out.Line("    .auto_key = {},", QuoteCxx(table.auto_key));
    out.Line("    .suffix = {},", QuoteCxx(table.storage_suffix));
    out.Line("}};");
    out.Blank();
  }

  void EmitClass(CodeWriter& out) const {
    out.Comment("", module_.comment.empty() ? fmt::format("Module {}.", module_.full_name)
                                            : module_.comment);
    out.Line("class {} : public zeze::Module {{", name_);
    out.Line(" public:");
    out.Line("  static constexpr std::int32_t kModuleId = {};", module_.id);
    out.Line("  static constexpr std::string_view kFullName = {};", QuoteCxx(module_.full_name));
    out.Blank();
    out.Line("  {}();", name_);
    out.Line("  ~{}() override;", name_);
    out.Blank();
    out.Line("  std::int32_t id() const override {{ return kModuleId; }}");
    out.Line("  std::string_view name() const override {{ return kFullName; }}");
    out.Line("  std::vector<zeze::TableBase*> Tables() override;");
    out.Line("  std::span<const zeze::ProtocolHandler> Handlers() const override;");
    out.Blank();
    out.Line("  // A result code of this module, unique in the solution.");
    out.Line("  static constexpr std::int64_t ErrorCode(std::int32_t code) {{");
    out.Line("    return zeze::ModuleErrorCode(kModuleId, code);");
    out.Line("  }}");
    for (const Protocol* protocol : handled_) EmitHandler(out, *protocol);
    EmitMissing(out);
    if (!tables_.empty()) out.Blank();
    for (const Table* table : tables_) {
      out.Comment("  ", table->comment);
      const std::string key = table->key.bean != nullptr
                                  ? BeanNameInside(module_, *table->key.bean)
                                  : CxxSimpleType(table->key, module_.full_name);
      out.Line("  zeze::Table<{}, {}> {}{{{}}};", key, BeanNameInside(module_, *table->value),
               CxxTableName(*table), CxxDescriptorName(*table));
    }
    out.Line("}};");
  }

  void EmitHandler(CodeWriter& out, const Protocol& protocol) const {
    out.Blank();
    out.Comment("  ", fmt::format("Handles {} {}.{}{}", protocol.is_rpc ? "rpc" : "protocol",
                                  protocol.full_name, protocol.comment.empty() ? "" : " ",
                                  protocol.comment));
    out.Line("  virtual std::int64_t Process{}({}){};", UpperFirst(protocol.name),
             HandlerParameters(protocol, module_, true), protocol.strict_handler ? " = 0" : "");
  }

  void EmitMissing(CodeWriter& out) const {
    out.Blank();
    out.Line(
        "  // Handlers that Derived, your class, does not override: they answer NotImplement.");
    out.Line("  template <typename Derived>");
    out.Line("  static std::vector<std::string_view> MissingHandlers() {{");
    out.Line("    std::vector<std::string_view> missing;");
    for (const Protocol* protocol : handled_) {
      const std::string process = "Process" + UpperFirst(protocol->name);
      out.Line("    if constexpr (requires {{");
      out.Line("                    {{");
      out.Line("                      &Derived::{}", process);
      out.Line("                    }} -> std::same_as<decltype(&{}::{})>;", name_, process);
      out.Line("                  }}) {{");
      out.Line("      missing.emplace_back(\"{}\");", process);
      out.Line("    }}");
    }
    out.Line("    return missing;");
    out.Line("  }}");
  }

  void EmitTables(CodeWriter& out) const {
    std::string list;
    for (const Table* table : tables_) {
      list += fmt::format("{}&{}", list.empty() ? "" : ", ", CxxTableName(*table));
    }
    out.Line("std::vector<zeze::TableBase*> {}::Tables() {{", name_);
    out.Line("  return {{{}}};", list);
    out.Line("}}");
    out.Blank();
  }

  void EmitDefault(CodeWriter& out, const Protocol& protocol) const {
    if (protocol.strict_handler) return;
    out.Blank();
    out.Line("std::int64_t {}::Process{}({}) {{", name_, UpperFirst(protocol.name),
             HandlerParameters(protocol, module_, false));
    out.Line("  return zeze::result_code::kNotImplement;");
    out.Line("}}");
  }

  const Plan& plan_;
  const Module& module_;
  const std::string name_;
  const std::vector<const Table*> tables_;
  const std::vector<const Protocol*> handled_;
};

}  // namespace

std::string ModuleBaseName(const Module& module) {
  return "Module" + UpperFirst(module.name) + "Base";
}

std::string HandlerParameters(const Protocol& protocol, const Module& module, bool with_names) {
  std::vector<std::string> parameters;
  const auto add = [&](std::string type, std::string_view name) {
    parameters.push_back(with_names ? fmt::format("{} {}", type, name) : std::move(type));
  };
  if (protocol.level != Level::kNone) add("zeze::Transaction&", "tx");
  add("zeze::Session&", "session");
  if (protocol.argument != nullptr) {
    add(fmt::format("const {}&", BeanNameInside(module, *protocol.argument)), "argument");
  }
  if (protocol.result != nullptr) {
    add(fmt::format("{}&", BeanNameInside(module, *protocol.result)), "result");
  }
  return fmt::format("{}", fmt::join(parameters, ", "));
}

void EmitModule(const Plan& plan, const Module& module, GeneratedFiles& files) {
  ModuleEmitter emitter(plan, module);
  files[PathOf(module.full_name) + ".module.h"] = emitter.EmitHeader();
  files[PathOf(module.full_name) + ".module.cc"] = emitter.EmitSource();
}

}  // namespace zeze::gen
