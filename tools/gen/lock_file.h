// LockFile: the identities that a schema has given out, kept beside it and checked in with it.
//
// Beans, tables and protocols are known on the wire and in databases by numbers made of their
// names; variables by their ids. The lock file remembers all of them, so that a rename that would
// lose data, a variable whose stored type changed, and the second use of a deleted id are errors
// when code is generated, not surprises when a server starts.
//
// Plain text, one thing per line, sorted:
//
//   bean demo.Game.BRole 8412903112
//     1 long gold
//     2 string name
//     deleted 3 int level
//   table demo.Game.tRole -716529252 demo_Game_tRole
//   protocol demo.Game.Login 1340115327

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tools/gen/model.h"

namespace zeze::gen {

class LockFile {
 public:
  // Reports malformed lines.
  static LockFile Parse(std::string_view text, const std::string& file, Diagnostics& diagnostics);

  // What a model would be locked as.
  static LockFile Of(const Model& model);

  // Compares a model with what is locked and reports: errors for what breaks stored data, notes and
  // warnings for what looks like a rename. Returns the lock that goes with the model: everything it
  // has, and everything that was ever used.
  LockFile Advance(const Model& model, Diagnostics& diagnostics) const;

  std::string Format() const;

 private:
  struct LockedVariable {
    std::string type;
    std::string name;
    bool deleted = false;
  };
  struct LockedBean {
    std::int64_t type_id = 0;
    std::map<int, LockedVariable> variables;
    bool deleted = false;
  };
  struct LockedTable {
    std::int32_t id = 0;
    std::string storage_name;
    bool deleted = false;
  };
  struct LockedProtocol {
    std::int32_t id = 0;
    bool deleted = false;
  };

  void AdvanceBeans(const Model& model, Diagnostics& diagnostics, LockFile& next) const;
  void AdvanceVariables(const Bean& bean, const LockedBean& locked, LockedBean& next,
                        Diagnostics& diagnostics) const;
  void AdvanceTables(const Model& model, Diagnostics& diagnostics, LockFile& next) const;
  void AdvanceProtocols(const Model& model, Diagnostics& diagnostics, LockFile& next) const;

  std::map<std::string, LockedBean> beans_;
  std::map<std::string, LockedTable> tables_;
  std::map<std::string, LockedProtocol> protocols_;
};

}  // namespace zeze::gen
