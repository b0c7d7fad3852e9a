// CheckModel: resolves every name of a model and checks every rule of the language. Reports all
// that is wrong; a model without errors can be emitted.

#pragma once

#include "tools/gen/model.h"
#include "tools/gen/symbols.h"

namespace zeze::gen {

void CheckModel(Model& model, Diagnostics& diagnostics);

// The parts, in the order in which CheckModel runs them. For the checker's own files.
struct CheckContext {
  Model& model;
  const Symbols& symbols;
  Diagnostics& diagnostics;
};
void CheckEnums(const CheckContext& context);
void CheckVariable(const CheckContext& context, Bean& bean, Variable& variable);
void CheckBeans(const CheckContext& context);
void CheckTables(const CheckContext& context);
void CheckProtocols(const CheckContext& context);
void CheckProjects(const CheckContext& context);

std::string ScopeOf(const Bean& bean);
// A constant as seen from a bean or module: its own, those of the modules around it, or dotted.
const Enum* FindConstant(const CheckContext& context, const Bean* bean, const Module* module,
                         const std::string& name);
// A type without parameters, as tables and containers use it. kUnknown after an error.
Type ResolveSimpleType(const CheckContext& context, std::string_view scope, const std::string& text,
                       const Location& location);

}  // namespace zeze::gen
