// Names of a schema: which are allowed, and how they are spelled in the languages generated.

#pragma once

#include <string>
#include <string_view>

namespace zeze::gen {

// Why a text cannot be a name, or "" if it can: letters, digits and '_', first a letter, no '_' at
// either end. Letters beyond ASCII pass, as they do in C++.
std::string WhyNotAName(std::string_view name);

// One name or several with dots between them.
bool IsDottedName(std::string_view text);

// A word that one of the languages that schemas are made for reserves. Such a word may name a
// variable, nothing else.
bool IsReservedWord(std::string_view name);

// The name in C++: with '_' after it if C++, the standard library's macros or our own namespaces
// have taken it.
std::string CxxName(std::string_view name);

// The name of a class or constant in TypeScript: with '_' after it if it would hide what generated
// code uses, or is the name of a type of the language.
std::string TypeScriptName(std::string_view name);

// "Shop.Order.BItem" -> "::Shop::Order::BItem".
std::string CxxQualifiedName(std::string_view full_name);

std::string UpperFirst(std::string_view name);
std::string ToLower(std::string_view text);
std::string_view Trim(std::string_view text);

}  // namespace zeze::gen
