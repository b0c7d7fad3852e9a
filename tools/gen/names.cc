#include "tools/gen/names.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace zeze::gen {
namespace {

using Words = std::unordered_set<std::string_view>;

const Words& CxxWords() {
  static const Words words = {"alignas",       "alignof",     "and",
                              "and_eq",        "asm",         "auto",
                              "bitand",        "bitor",       "bool",
                              "break",         "case",        "catch",
                              "char",          "char8_t",     "char16_t",
                              "char32_t",      "class",       "compl",
                              "concept",       "const",       "consteval",
                              "constexpr",     "constinit",   "const_cast",
                              "continue",      "co_await",    "co_return",
                              "co_yield",      "decltype",    "default",
                              "delete",        "do",          "double",
                              "dynamic_cast",  "else",        "enum",
                              "explicit",      "export",      "extern",
                              "false",         "float",       "for",
                              "friend",        "goto",        "if",
                              "inline",        "int",         "long",
                              "mutable",       "namespace",   "new",
                              "noexcept",      "not",         "not_eq",
                              "nullptr",       "operator",    "or",
                              "or_eq",         "private",     "protected",
                              "public",        "register",    "reinterpret_cast",
                              "requires",      "return",      "short",
                              "signed",        "sizeof",      "static",
                              "static_assert", "static_cast", "struct",
                              "switch",        "template",    "this",
                              "thread_local",  "throw",       "true",
                              "try",           "typedef",     "typeid",
                              "typename",      "union",       "unsigned",
                              "using",         "virtual",     "void",
                              "volatile",      "wchar_t",     "while",
                              "xor",           "xor_eq"};
  return words;
}

// Not reserved by the language, but unusable in a program that includes our headers.
const Words& CxxTakenWords() {
  static const Words words = {"std",     "zeze",   "errno",    "assert",   "NULL", "EOF",   "stdin",
                              "stdout",  "stderr", "offsetof", "linux",    "unix", "major", "minor",
                              "signals", "slots",  "BUFSIZ",   "INFINITY", "NAN",  "main"};
  return words;
}

// Names of schemas are no reserved words of TypeScript; these are the others that cannot be used.
const Words& TypeScriptTakenWords() {
  static const Words words = {"any",        "arguments", "bigint",  "boolean",   "eval",
                              "never",      "number",    "symbol",  "undefined", "unknown",
                              "zeze",       "Map",       "Object",  "Set",       "Uint8Array",
                              "implements", "interface", "package", "private",   "protected",
                              "public",     "static"};
  return words;
}

const Words& OtherWords() {
  static const Words words = {
      // Java
      "abstract", "boolean", "byte", "extends", "final", "finally", "implements", "import",
      "instanceof", "interface", "native", "null", "package", "strictfp", "super", "synchronized",
      "throws", "transient", "assert",
      // C#
      "as", "base", "checked", "decimal", "delegate", "event", "fixed", "foreach", "implicit", "in",
      "internal", "is", "lock", "object", "out", "override", "params", "readonly", "ref", "sbyte",
      "sealed", "stackalloc", "string", "typeof", "uint", "ulong", "unchecked", "unsafe", "ushort",
      // JavaScript, TypeScript
      "await", "debugger", "function", "let", "var", "with", "yield",
      // Lua
      "elseif", "end", "local", "nil", "repeat", "then", "until"};
  return words;
}

}  // namespace

std::string WhyNotAName(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.front() == '_') return "it starts with '_'";
  if (name.back() == '_') return "it ends with '_'";
  if (std::isdigit(static_cast<unsigned char>(name.front())) != 0) return "it starts with a digit";
  for (char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x80 && std::isalnum(u) == 0 && c != '_') {
      return "it has the character '" + std::string(1, c) + "'";
    }
  }
  return {};
}

bool IsDottedName(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!WhyNotAName(text.substr(0, dot)).empty()) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsReservedWord(std::string_view name) {
  if (name == "friend") return false;  // Too good a name for a game to give up.
  return CxxWords().contains(name) || OtherWords().contains(name);
}

std::string CxxName(std::string_view name) {
  std::string text(name);
  if (CxxWords().contains(name) || CxxTakenWords().contains(name)) text += '_';
  return text;
}

std::string TypeScriptName(std::string_view name) {
  std::string text(name);
  if (TypeScriptTakenWords().contains(name)) text += '_';
  return text;
}

std::string CxxQualifiedName(std::string_view full_name) {
  std::string text;
  while (!full_name.empty()) {
    const std::size_t dot = std::min(full_name.find('.'), full_name.size());
    text += "::" + CxxName(full_name.substr(0, dot));
    full_name.remove_prefix(std::min(dot + 1, full_name.size()));
  }
  return text;
}

std::string UpperFirst(std::string_view name) {
  std::string text(name);
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace zeze::gen
