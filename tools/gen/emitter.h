// Emit: a plan as C++ or TypeScript files.

#pragma once

#include <map>
#include <string>

#include "tools/gen/plan.h"

namespace zeze::gen {

// Path below the output directory -> content. Each starts with GeneratedMark().
using GeneratedFiles = std::map<std::string, std::string>;

// What our files begin with; files that do not are never touched.
std::string_view GeneratedMark();

// Messages, that is beans and protocols, need zeze::bean and zeze::net. The base classes of
// modules, with tables and handlers, need zeze::app and the messages, which may be in another
// library.
enum class Parts : unsigned char { kAll, kMessages, kModules };

struct EmitOptions {
  Parts parts = Parts::kAll;
  int shards = 1;  // Files to compile: each includes a share of the .cc files.
  // Files track_N.h that a build declares as outputs. Ninja looks at files that it does not know as
  // outputs only before it runs the generator, and the names of headers are known only after. So
  // each header includes one of these, whose content changes with the header's.
  int tracks = 0;
};

GeneratedFiles Emit(const Plan& plan, const EmitOptions& options);

// One file for each namespace, for the package in clients/typescript. They import its library from
// `runtime`; if that begins with a dot, it is relative to the output directory.
GeneratedFiles EmitTypeScript(const Plan& plan, const std::string& runtime);

// The parts. For the emitter's own files.
void EmitUnit(const Unit& unit, GeneratedFiles& files);
void EmitModule(const Plan& plan, const Module& module, GeneratedFiles& files);
void EmitProject(const Plan& plan, GeneratedFiles& files);
std::string Banner(const std::set<std::string>& sources);

// C++ of a variable's type; `scope` is the dotted namespace it is written in.
std::string CxxType(const Bean& bean, const Variable& variable, std::string_view scope);
// The type behind the name of a dynamic variable (CxxDynamicName).
std::string CxxDynamicType(const Bean& bean, const Variable& variable, std::string_view scope);
// A bean, written inside the struct of another.
std::string BeanNameInside(const Bean& inside, const Bean& bean, std::string_view scope);
std::string CxxSimpleType(const Type& type, std::string_view scope);
std::string CxxBeanName(const Bean& bean, std::string_view scope);
// The parameters of a protocol's handler, as they are declared in the class of a module.
std::string HandlerParameters(const Protocol& protocol, const Module& module, bool with_names);
// Name of the generated base of a module: ModuleGameBase.
std::string ModuleBaseName(const Module& module);

}  // namespace zeze::gen
