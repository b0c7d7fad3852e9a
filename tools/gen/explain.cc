#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/gen/model.h"
#include "tools/gen/plan.h"
#include "tools/gen/reports.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

std::string Words(const HandleFlags& flags) {
  std::vector<std::string_view> words;
  if (flags.server) words.emplace_back("server");
  if (flags.client) words.emplace_back("client");
  if (flags.server_script) words.emplace_back("serverscript");
  if (flags.client_script) words.emplace_back("clientscript");
  if (flags.servlet) words.emplace_back("servlet");
  return fmt::format("{}", fmt::join(words, ","));
}

// The other side of a connection.
std::string SenderOf(const HandleFlags& handle) {
  if ((handle.server || handle.server_script) && (handle.client || handle.client_script)) {
    return "either side";
  }
  return handle.server || handle.server_script ? "client" : "server";
}

std::string_view Name(Level level) {
  switch (level) {
    case Level::kNone:
      return "no transaction";
    case Level::kSerializable:
      return "serializable transaction";
    case Level::kAllowDirtyWhenAllRead:
      return "transaction, dirty when all read";
  }
  return "";
}

void ExplainProtocol(const Project& project, const Service* service, const Protocol& protocol,
                     bool handled_here, std::string& text) {
  text += fmt::format("    {} {}: sent by {}, ", protocol.is_rpc ? "rpc" : "protocol",
                      protocol.name, SenderOf(protocol.handle));
  if (handled_here) {
    text += fmt::format("handled here by Process{}, {}, {} pool\n", protocol.name,
                        Name(protocol.level), protocol.dispatch_mode);
  } else if (service == nullptr) {
    text += fmt::format("not registered: no service of '{}' has the module\n", project.name);
  } else {
    text += fmt::format(
        "not handled here: handle=\"{}\" against handle=\"{}\" of the service; the "
        "other side handles it\n",
        Words(protocol.handle), Words(service->handle));
  }
}

void ExplainModule(const Plan& plan, const Module& module, std::string& text) {
  const Project& project = *plan.project;
  const Service* service = project.ServiceOf(&module);
  text += fmt::format(
      "  module {} (id {}), {}\n", module.full_name, module.id,
      service == nullptr ? std::string("no service") : fmt::format("service '{}'", service->name));
  const std::vector<const Protocol*> handled = HandledProtocols(plan, module);
  const auto explain = [&](const Protocol& protocol) {
    const bool here = std::find(handled.begin(), handled.end(), &protocol) != handled.end();
    ExplainProtocol(project, service, protocol, here, text);
  };
  for (const auto& protocol : module.protocols) explain(*protocol);
  for (const ProtocolRef& reference : module.protocol_refs) {
    if (reference.protocol != nullptr && !reference.import_only) explain(*reference.protocol);
  }
  for (const Table* table : SelectedTables(plan, module)) {
    text += fmt::format(
        "    table {}: {} -> {}, id {}, stored as {}{}{}\n", table->full_name, ToString(table->key),
        table->value == nullptr ? "?" : table->value->full_name, table->id, table->storage_name,
        table->storage_suffix.empty() ? "" : " + ", table->storage_suffix);
  }
  for (const auto& servlet : module.servlets) {
    text += fmt::format("    servlet {}: {}\n", servlet->name, servlet->path);
  }
}

}  // namespace

std::string Explain(const Model& model, const std::string& name, Diagnostics& diagnostics) {
  std::string text;
  std::vector<std::string_view> names;
  for (const Project* project : model.MadeProjects()) {
    names.push_back(project->name);
    if (name != "*" && project->name != name) continue;
    Plan plan;
    plan.project = project;
    plan.modules.assign(project->modules.begin(), project->modules.end());
    text += fmt::format("project {} (platform {}), modules in start order:\n", project->name,
                        project->platform.empty() ? "java" : project->platform);
    for (const auto& service : project->services) {
      text += fmt::format("  service {} handles {}\n", service->name, Words(service->handle));
    }
    for (const Module* module : plan.modules) ExplainModule(plan, *module, text);
  }
  if (text.empty()) {
    std::string hint = xml::DidYouMean(name, names);
    if (hint.empty()) hint = fmt::format("projects in these files: {}", fmt::join(names, ", "));
    diagnostics.Error({}, fmt::format("there is no project '{}' to explain", name),
                      std::move(hint));
  }
  return text;
}

}  // namespace zeze::gen
