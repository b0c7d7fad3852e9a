// Symbols: every name of a model, and how a name written in one module finds what it means.
//
// Lookup of a name used in module a.b.c: a name without dots is first looked for in a.b.c, a name
// with dots first as a full name (these two are all that older generators do); then outward, in
// a.b.c, a.b and a. Two hits on that way are an error, as neither is the obvious one.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gen/model.h"

namespace zeze::gen {

template <typename T>
struct Lookup {
  T* found = nullptr;
  std::vector<std::string> ambiguous;  // Full names, if more than one fits.
};

class Symbols {
 public:
  // Reports names that are taken twice (ignoring case).
  Symbols(const Model& model, Diagnostics& diagnostics);

  // `scope` is the full name of a module or solution. Report what is not found with an error that
  // suggests the nearest name; `what` is the word for it: "bean", "protocol"...
  Bean* FindBean(std::string_view scope, const std::string& name, const Location& location,
                 std::string_view what, Diagnostics& diagnostics) const;
  Protocol* FindProtocol(std::string_view scope, const std::string& name, const Location& location,
                         Diagnostics& diagnostics) const;
  Module* FindModule(std::string_view scope, const std::string& name, const Location& location,
                     Diagnostics& diagnostics) const;
  // Null, without a message, if there is none.
  Bean* FindBeanQuietly(std::string_view scope, const std::string& name) const;
  Module* FindModuleQuietly(std::string_view scope, const std::string& name) const;

 private:
  template <typename T>
  using Table = std::map<std::string, T*, std::less<>>;

  template <typename T>
  static Lookup<T> Find(const Table<T>& table, std::string_view scope, const std::string& name);
  template <typename T>
  static T* FindOrReport(const Table<T>& table, std::string_view scope, const std::string& name,
                         const Location& location, std::string_view what, Diagnostics& diagnostics);
  void Claim(const std::string& full_name, std::string_view what, const Location& location,
             Diagnostics& diagnostics);

  Table<Bean> beans_;
  Table<Protocol> protocols_;
  Table<Module> modules_;
  struct Owner {
    std::string full_name;
    std::string what;
    Location location;
  };
  std::map<std::string, Owner> owners_;  // By full name in lower case.
};

}  // namespace zeze::gen
