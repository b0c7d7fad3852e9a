#include "zeze/transaction/procedure_name.h"

#include <string>
#include <string_view>
#include <unordered_set>

#include "zeze/base/mutex.h"

namespace zeze {

ProcedureName ProcedureName::Intern(std::string_view text) {
  // Leaked on purpose: names are used until the last thread has ended.
  static auto* mutex = new Mutex;
  static auto* names = new std::unordered_set<std::string>;
  const MutexLock lock(*mutex);
  return {Interned{}, names->emplace(text).first->c_str()};
}

}  // namespace zeze
