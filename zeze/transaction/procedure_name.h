// ProcedureName: a name that lives as long as the process, so that a watchdog, a log line or a
// profile can name what runs without copying it.
//
//   engine.Call("transfer", ...);                               // A literal costs nothing.
//   static const auto name = ProcedureName::Intern(plugin.name());  // Others are kept for ever.

#pragma once

#include <string_view>

namespace zeze {

class ProcedureName {
 public:
  consteval ProcedureName(const char* literal) : text_(literal) {}  // NOLINT: implicit

  // The same text gives the same name. Never freed: for names from a bounded set.
  static ProcedureName Intern(std::string_view text);

  const char* c_str() const { return text_; }
  std::string_view view() const { return text_; }

 private:
  struct Interned {};
  ProcedureName(Interned, const char* text) : text_(text) {}

  const char* text_;
};

}  // namespace zeze
