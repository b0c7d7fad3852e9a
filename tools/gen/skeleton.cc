#include "tools/gen/skeleton.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/gen/emitter.h"
#include "tools/gen/names.h"

namespace zeze::gen {
namespace {

std::string UserClass(const Module& module) {
  return "Module" + UpperFirst(module.name);
}

std::string NamespaceName(const Module& module) {
  return CxxQualifiedName(module.full_name).substr(2);
}

// Below the solution: modules of different parents may have the same name.
std::string UserPath(const Module& module) {
  const std::size_t dot = module.full_name.find('.');
  const std::string inside = dot == std::string::npos ? "" : module.full_name.substr(dot + 1);
  const std::size_t last = inside.rfind('.');
  const std::string folder = last == std::string::npos ? "" : PathOf(inside.substr(0, last)) + "/";
  return folder + UserClass(module);
}

std::string ModuleHeader(const Plan& plan, const Module& module) {
  std::string text = fmt::format(
      "// {0}: {1}\n\n"
      "#pragma once\n\n"
      "#include \"{2}.module.h\"\n\n"
      "namespace {3} {{\n\n"
      "class {0} final : public {4} {{\n"
      " public:\n"
      "  zeze::Result<void> Start(zeze::Application& application) override;\n"
      "  void Stop(zeze::Application& application) override;\n",
      UserClass(module),
      module.comment.empty() ? fmt::format("the module {}.", module.full_name) : module.comment,
      PathOf(module.full_name), NamespaceName(module), ModuleBaseName(module));
  for (const Protocol* protocol : HandledProtocols(plan, module)) {
    text += fmt::format("\n  std::int64_t Process{}({}) override;\n", UpperFirst(protocol->name),
                        HandlerParameters(*protocol, module.full_name, true));
  }
  return text + fmt::format("}};\n\n}}  // namespace {}\n", NamespaceName(module));
}

std::string ModuleSource(const Plan& plan, const Module& module) {
  const std::string name = UserClass(module);
  std::string text = fmt::format(
      "#include \"{0}.h\"\n\n"
      "#include \"zeze/transaction/result_code.h\"\n\n"
      "namespace {1} {{\n\n"
      "zeze::Result<void> {2}::Start(zeze::Application&) {{ return {{}}; }}\n\n"
      "void {2}::Stop(zeze::Application&) {{}}\n",
      UserPath(module), NamespaceName(module), name);
  for (const Protocol* protocol : HandledProtocols(plan, module)) {
    // Names of parameters come back when the body uses them.
    text += fmt::format(
        "\nstd::int64_t {}::Process{}({}) {{\n"
        "  return zeze::result_code::kNotImplement;\n"
        "}}\n",
        name, UpperFirst(protocol->name), HandlerParameters(*protocol, module.full_name, false));
  }
  return text + fmt::format("\n}}  // namespace {}\n", NamespaceName(module));
}

std::string Main(const std::vector<const Module*>& modules) {
  std::string includes;
  std::string members;
  std::string adds;
  std::vector<std::string> paths;
  for (const Module* module : modules) paths.push_back(UserPath(*module));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) includes += fmt::format("#include \"{}.h\"\n", path);
  for (const Module* module : modules) {
    std::string variable = ToLower(module->name);
    for (const Module* other : modules) {
      if (other != module && ToLower(other->name) == variable)
        variable = ToLower(module->full_name);
    }
    std::replace(variable.begin(), variable.end(), '.', '_');
    members += fmt::format("  {}::{} {}_module;\n", CxxQualifiedName(module->full_name),
                           UserClass(*module), variable);
    adds += fmt::format("  application.AddModule({}_module);\n", variable);
  }
  return fmt::format(
      "#include <cstdio>\n\n"
      "#include \"zeze/app/application.h\"\n\n"
      "{0}\n"
      "int main(int argc, char** argv) {{\n"
      "{1}"
      "  zeze::Application application;\n"
      "{2}"
      "  return application.Main(argc, argv);\n"
      "}}\n",
      includes, members, adds);
}

}  // namespace

std::map<std::string, std::string> SkeletonFiles(const Plan& plan) {
  std::map<std::string, std::string> files;
  for (const Module* module : plan.modules) {
    files[UserPath(*module) + ".h"] = ModuleHeader(plan, *module);
    files[UserPath(*module) + ".cc"] = ModuleSource(plan, *module);
  }
  files["main.cc"] = Main(plan.modules);
  return files;
}

}  // namespace zeze::gen
