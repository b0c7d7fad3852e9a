#include "tools/gen/lock_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/gen/attribute_reader.h"
#include "tools/gen/model.h"
#include "zeze/serialize/type_widening.h"

namespace zeze::gen {
namespace {

// As locked: beans without their names, which may change without any effect on stored data.
std::string LockText(const Type& type) {
  if (type.bean != nullptr) return type.kind == TypeKind::kBeanKey ? "beankey" : "bean";
  std::string text(ToString(type.kind));
  if (type.parameters.empty()) return text;
  text += '[';
  for (const Type& parameter : type.parameters) {
    if (!text.ends_with('[')) text += ',';
    text += LockText(parameter);
  }
  return text + ']';
}

// The next name of a locked type and the bracket or comma after it.
std::string_view TakeName(std::string_view& type) {
  const std::size_t end = std::min(type.find_first_of("[],"), type.size());
  const std::string_view name = type.substr(0, std::min(end + 1, type.size()));
  type.remove_prefix(name.size());
  return name;
}

// Whether stored values of the one type can be read as the other: the rule of the check at start.
bool CanRead(std::string_view stored, std::string_view now) {
  while (!stored.empty() && !now.empty()) {
    std::string_view from = TakeName(stored);
    std::string_view to = TakeName(now);
    const auto is_mark = [](char c) { return c == '[' || c == ']' || c == ','; };
    if ((is_mark(from.back()) ? from.back() : ' ') != (is_mark(to.back()) ? to.back() : ' ')) {
      return false;
    }
    if (is_mark(from.back())) from.remove_suffix(1);
    if (is_mark(to.back())) to.remove_suffix(1);
    // A beankey is stored as a bean, whose variables are locked by themselves.
    const bool both_beans = from.starts_with("bean") && to.starts_with("bean");
    if (!both_beans && !CanWiden(from, to)) return false;
  }
  return stored.empty() && now.empty();
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

LockFile LockFile::Of(const Model& model) {
  LockFile lock;
  for (const Bean* bean : model.AllBeans()) {
    if (bean->is_external) continue;
    LockedBean& locked = lock.beans_[bean->full_name];
    locked.type_id = bean->type_id;
    for (const auto& variable : bean->variables) {
      locked.variables[variable->id] = {LockText(variable->type), variable->name, false};
    }
  }
  for (const Module* module : model.AllModules()) {
    for (const auto& table : module->tables) {
      lock.tables_[table->full_name] = {table->id, table->storage_name, false};
    }
    for (const auto& protocol : module->protocols) {
      lock.protocols_[protocol->full_name] = {protocol->id, false};
    }
  }
  return lock;
}

LockFile LockFile::Parse(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  LockFile lock;
  std::istringstream in{std::string(text)};
  LockedBean* bean = nullptr;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::vector<std::string> words = Words(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    const bool deleted = words[0] == "deleted";
    if (deleted) words.erase(words.begin());
    bool good = words.size() == 3 || (words.size() == 4 && words[0] == "table");
    if (good && words[0] == "bean" && ParseInteger(words[2])) {
      bean = &lock.beans_[words[1]];
      bean->type_id = *ParseInteger(words[2]);
      bean->deleted = deleted;
    } else if (good && words[0] == "table" && words.size() == 4 && ParseInteger(words[2])) {
      lock.tables_[words[1]] = {static_cast<std::int32_t>(*ParseInteger(words[2])), words[3],
                                deleted};
    } else if (good && words[0] == "protocol" && ParseInteger(words[2])) {
      lock.protocols_[words[1]] = {static_cast<std::int32_t>(*ParseInteger(words[2])), deleted};
    } else if (good && bean != nullptr && ParseInteger(words[0])) {
      bean->variables[static_cast<int>(*ParseInteger(words[0]))] = {words[1], words[2], deleted};
    } else {
      good = false;
    }
    if (!good) {
      diagnostics.Error({file, number, 1}, fmt::format("'{}' is no line of a lock file", line),
                        "restore the file from version control; it is not edited by hand");
    }
  }
  return lock;
}

std::string LockFile::Format() const {
  std::string text =
      "# Identities that the schema beside this file has given out. Written by zeze gen; check it "
      "in.\n";
  const auto mark = [](bool deleted) { return deleted ? "deleted " : ""; };
  for (const auto& [name, bean] : beans_) {
    text += fmt::format("{}bean {} {}\n", mark(bean.deleted), name, bean.type_id);
    for (const auto& [id, variable] : bean.variables) {
      text +=
          fmt::format("  {}{} {} {}\n", mark(variable.deleted), id, variable.type, variable.name);
    }
  }
  for (const auto& [name, table] : tables_) {
    text +=
        fmt::format("{}table {} {} {}\n", mark(table.deleted), name, table.id, table.storage_name);
  }
  for (const auto& [name, protocol] : protocols_) {
    text += fmt::format("{}protocol {} {}\n", mark(protocol.deleted), name, protocol.id);
  }
  return text;
}

void LockFile::AdvanceVariables(const Bean& bean, const LockedBean& locked, LockedBean& next,
                                Diagnostics& diagnostics) const {
  int free_id = 1;
  for (const LockedBean* known : {&locked, static_cast<const LockedBean*>(&next)}) {
    if (!known->variables.empty()) {
      free_id = std::max(free_id, known->variables.rbegin()->first + 1);
    }
  }
  for (const auto& variable : bean.variables) {
    const auto at = locked.variables.find(variable->id);
    if (at == locked.variables.end()) continue;
    const LockedVariable& old = at->second;
    const LockedVariable& now = next.variables[variable->id];
    if (old.deleted && old.name != now.name) {
      diagnostics.Error(
          variable->location,
          fmt::format("variable '{}' of '{}' uses id {}, which belonged to the deleted '{}' ({})",
                      now.name, bean.full_name, variable->id, old.name, old.type),
          fmt::format("records may still hold the old value; the next free id is {}", free_id));
    } else if (!CanRead(old.type, now.type)) {
      diagnostics.Error(
          variable->location,
          fmt::format(
              "variable {} '{}' of '{}' was {} and is {} now, which cannot hold every stored value",
              variable->id, now.name, bean.full_name, old.type, now.type),
          fmt::format("give it the new id {} and delete the old variable", free_id));
    } else if (old.name != now.name) {
      diagnostics.Note(
          variable->location,
          fmt::format("variable {} of '{}' was '{}' and is '{}' now: taken as a rename",
                      variable->id, bean.full_name, old.name, now.name));
    }
  }
  for (const auto& [id, old] : locked.variables) {
    if (next.variables.contains(id)) continue;
    next.variables[id] = old;
    next.variables[id].deleted = true;
  }
}

void LockFile::AdvanceBeans(const Model& model, Diagnostics& diagnostics, LockFile& next) const {
  for (const Bean* bean : model.AllBeans()) {
    if (bean->is_external) continue;
    const auto at = beans_.find(bean->full_name);
    if (at == beans_.end()) continue;
    if (at->second.type_id != bean->type_id) {
      diagnostics.Error(bean->location,
                        fmt::format("the TypeId of '{}' was {} and is {} now: stored and sent "
                                    "dynamics would not be understood",
                                    bean->full_name, at->second.type_id, bean->type_id),
                        fmt::format("write TypeId=\"{}\"", at->second.type_id));
    }
    AdvanceVariables(*bean, at->second, next.beans_[bean->full_name], diagnostics);
  }
  for (const auto& [name, old] : beans_) {
    if (next.beans_.contains(name)) continue;
    next.beans_[name] = old;
    next.beans_[name].deleted = true;
  }
}

void LockFile::AdvanceTables(const Model& model, Diagnostics& diagnostics, LockFile& next) const {
  const auto module_of = [](const std::string& full_name) {
    return full_name.substr(0, full_name.rfind('.'));
  };
  for (const Module* module : model.AllModules()) {
    for (const auto& table : module->tables) {
      const auto at = tables_.find(table->full_name);
      if (at != tables_.end()) {
        if (at->second.storage_name != table->storage_name || at->second.id != table->id) {
          diagnostics.Error(
              table->location,
              fmt::format("table '{}' was stored as '{}' with id {}, and would be '{}' with id {} "
                          "now: its records would be lost",
                          table->full_name, at->second.storage_name, at->second.id,
                          table->storage_name, table->id),
              "undo the change of suffix, id or formerName");
        }
        continue;
      }
      // A new table where one has gone: a rename, unless it says where its records are.
      for (const auto& [name, old] : tables_) {
        if (old.deleted || next.tables_.contains(name)) continue;
        if (old.storage_name == table->storage_name) break;
        if (module_of(name) != module->full_name) continue;
        diagnostics.Warning(
            table->location,
            fmt::format("table '{}' is new and '{}' is gone", table->full_name, name),
            fmt::format("if it was renamed, add formerName=\"{}\" to keep its records",
                        name.substr(name.rfind('.') + 1)));
        break;
      }
    }
  }
  for (const auto& [name, old] : tables_) {
    if (next.tables_.contains(name)) continue;
    next.tables_[name] = old;
    next.tables_[name].deleted = true;
  }
}

void LockFile::AdvanceProtocols(const Model& model, Diagnostics& diagnostics,
                                LockFile& next) const {
  for (const Module* module : model.AllModules()) {
    for (const auto& protocol : module->protocols) {
      const auto at = protocols_.find(protocol->full_name);
      if (at == protocols_.end()) {
        for (const auto& [name, old] : protocols_) {
          const bool same_module = name.substr(0, name.rfind('.')) == module->full_name;
          if (old.deleted || next.protocols_.contains(name) || !same_module ||
              old.id == protocol->id) {
            continue;
          }
          diagnostics.Note(
              protocol->location,
              fmt::format("protocol '{}' is new and '{}' is gone", protocol->full_name, name),
              fmt::format("if it was renamed, add id=\"{}\" so that older clients still "
                          "reach it",
                          old.id));
          break;
        }
      } else if (at->second.id != protocol->id) {
        diagnostics.Warning(protocol->location,
                            fmt::format("the id of '{}' was {} and is {} now: older clients do not "
                                        "reach it",
                                        protocol->full_name, at->second.id, protocol->id),
                            fmt::format("write id=\"{}\"", at->second.id));
      }
    }
  }
  for (const auto& [name, old] : protocols_) {
    if (next.protocols_.contains(name)) continue;
    next.protocols_[name] = old;
    next.protocols_[name].deleted = true;
  }
}

LockFile LockFile::Advance(const Model& model, Diagnostics& diagnostics) const {
  LockFile next = Of(model);
  AdvanceBeans(model, diagnostics, next);
  AdvanceTables(model, diagnostics, next);
  AdvanceProtocols(model, diagnostics, next);
  return next;
}

}  // namespace zeze::gen
