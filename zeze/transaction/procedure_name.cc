#include "zeze/transaction/procedure_name.h"

#include <string_view>

#include "zeze/base/activity.h"

namespace zeze {

ProcedureName ProcedureName::Intern(std::string_view text) {
  return {Interned{}, InternName(text)};
}

}  // namespace zeze
