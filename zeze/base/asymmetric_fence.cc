#include "zeze/base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "zeze/base/check.h"

namespace zeze {

namespace {

bool Register() {
#if defined(__SANITIZE_THREAD__)
  return false;  // It watches what happens between threads; leave nothing to the kernel.
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

}  // namespace

const bool internal::heavy_fence_reaches_all = Register();

void HeavyFence() {
  internal::FullFence();
  if (!internal::heavy_fence_reaches_all) return;
  // Cannot fail once registered; going on without it could tear a checkpoint.
  ZEZE_CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

}  // namespace zeze
