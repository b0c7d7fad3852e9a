#include "zeze/arch/online/login.h"

#include "zeze/config/config.h"

namespace zeze::arch {

OnlineOptions OnlineOptionsFromConfig(const Config& config) {
  return {.logout_delay = config.section.Duration("OnlineLogoutDelay")};
}

}  // namespace zeze::arch
