#include "tools/gen/skeleton.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/gen/emitter.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "tools/gen/plan.h"

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
                        HandlerParameters(*protocol, module, true));
  }
  return text + fmt::format("}};\n\n}}  // namespace {}\n", NamespaceName(module));
}

std::string ModuleSource(const Plan& plan, const Module& module) {
  const std::string name = UserClass(module);
  std::string text = fmt::format(
      "#include \"{0}.h\"\n\n"
      "#include \"zeze/base/result_code.h\"\n\n"
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
        name, UpperFirst(protocol->name), HandlerParameters(*protocol, module, false));
  }
  return text + fmt::format("\n}}  // namespace {}\n", NamespaceName(module));
}

std::string Replace(std::string text, std::string_view placeholder, std::string_view value) {
  for (std::size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + value.size())) {
    text.replace(at, placeholder.size(), value);
  }
  return text;
}

constexpr std::string_view kMain = R"(#include <iostream>
#include <string>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/base/stop_signals.h"
#include "zeze/config/config.h"

@INCLUDES@
namespace {

int Fail(const zeze::Error& error) {
  std::cerr << error.message() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  zeze::StopSignals signals;  // Before any thread starts.

  std::vector<std::string> arguments(argv, argv + argc);
  auto taken = zeze::TakeConfigArguments(arguments);
  if (!taken.ok()) return Fail(taken.error());
  auto config = zeze::Config::Load(taken.value().file, taken.value().options);
  if (!config.ok()) return Fail(config.error());
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return Fail(options.error());

  // Modules outlive the application.
@MEMBERS@
  auto opened = zeze::Application::Open("@NAME@", options.value());
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
@ADDS@
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());

  std::cout << "running; stop with ctrl-c\n" << std::flush;
  signals.Wait();
  if (auto stopped = application.Stop(); !stopped.ok()) return Fail(stopped.error());
  return 0;
}
)";

std::string Main(const Plan& plan) {
  std::string includes;
  std::string members;
  std::string adds;
  std::vector<std::string> paths;
  paths.reserve(plan.modules.size());
  for (const Module* module : plan.modules) paths.push_back(UserPath(*module));
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) includes += fmt::format("#include \"{}.h\"\n", path);
  // In start order.
  for (const Module* module : plan.modules) {
    std::string variable = ToLower(module->name);
    for (const Module* other : plan.modules) {
      if (other != module && ToLower(other->name) == variable)
        variable = ToLower(module->full_name);
    }
    std::replace(variable.begin(), variable.end(), '.', '_');
    members += fmt::format("  {}::{} {}_module;\n", CxxQualifiedName(module->full_name).substr(2),
                           UserClass(*module), variable);
    adds += fmt::format("  application.AddModule({}_module);\n", variable);
  }
  const auto chomp = [](std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    return text;
  };
  std::string text = Replace(std::string(kMain), "@INCLUDES@", includes);
  text = Replace(std::move(text), "@MEMBERS@", chomp(members));
  text = Replace(std::move(text), "@ADDS@", chomp(adds));
  return Replace(std::move(text), "@NAME@",
                 plan.project == nullptr ? "server" : plan.project->name);
}

}  // namespace

std::map<std::string, std::string> SkeletonFiles(const Plan& plan) {
  std::map<std::string, std::string> files;
  for (const Module* module : plan.modules) {
    files[UserPath(*module) + ".h"] = ModuleHeader(plan, *module);
    files[UserPath(*module) + ".cc"] = ModuleSource(plan, *module);
  }
  files["main.cc"] = Main(plan);
  return files;
}

}  // namespace zeze::gen
