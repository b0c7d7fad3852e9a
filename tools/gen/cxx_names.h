// The C++ names of what a schema defines, and the check that no two of them are the same.
//
// A name keeps the schema's spelling, unless the generated struct or class needs it for itself;
// then it gets a '_' (no name in a schema ends in one). Two names in the schema that would become
// the same in C++ are an error: a table tX and a constant ktX, or a variable c with an enum and a
// variable c_enum.

#pragma once

#include <string>
#include <string_view>

#include "tools/gen/checker.h"
#include "tools/gen/model.h"

namespace zeze::gen {

// Inside the struct of a bean: a variable or constant; a group of constants; the type of a dynamic
// variable, for example ExtraDynamic.
std::string CxxMemberName(const Bean& bean, std::string_view name);
std::string CxxGroupName(const Bean& bean, std::string_view group);
std::string CxxDynamicName(const Variable& variable);
// Whether the plain name of a type would mean something else inside the struct.
bool IsHiddenIn(const Bean& bean, std::string_view type_name);

// A constant, or a group of them, inside the struct of a protocol.
std::string CxxConstantName(const Protocol& protocol, std::string_view name);
bool IsHiddenIn(const Protocol& protocol, std::string_view type_name);

// A table as member of its module's class, and the constant that describes it.
std::string CxxTableName(const Table& table);
std::string CxxDescriptorName(const Table& table);
// Whether the plain name of a type would mean something else inside the module's class.
bool IsHiddenIn(const Module& module, std::string_view type_name);

void CheckCxxNames(const CheckContext& context);

}  // namespace zeze::gen
