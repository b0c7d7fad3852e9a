#include "zeze/transaction/internal/value.h"

#include <exception>
#include <string>

#include "zeze/base/function_ref.h"
#include "zeze/base/log.h"

namespace zeze::internal {

void CallListener(const std::string& table, FunctionRef<void()> call) {
  try {
    call();
  } catch (const std::exception& e) {
    ZEZE_LOG_ERROR("a change listener of table {} threw: {}", table, e.what());
  } catch (...) {
    ZEZE_LOG_ERROR("a change listener of table {} threw", table);
  }
}

}  // namespace zeze::internal
