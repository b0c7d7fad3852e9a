// FakeCoherence: grants every right at once, and calls the test in the middle of a commit.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>

#include "zeze/base/function_ref.h"
#include "zeze/base/result.h"
#include "zeze/transaction/coherence.h"

namespace zeze::testing {

// Set the hooks before the engine starts; they run on the thread that asks.
class FakeCoherence final : public Coherence {
 public:
  Result<void> Acquire(std::string_view key, Right wanted, FreshRights& /*fresh*/,
                       FunctionRef<void(Right)> install) override {
    ++acquires;
    if (on_acquire) on_acquire(key, wanted);
    if (!grants) return Error(ErrorCode::kUnavailable, "no right to be had");
    install(wanted);
    return {};
  }

  void Used(FreshRights& /*fresh*/) override {}

  void Release(std::string_view key) override {
    ++releases;
    if (on_release) on_release(key);
  }

  // Called by commits with their records locked and their epoch announced, before they install.
  bool LeaseValid() override {
    if (on_lease) on_lease();
    return lease;
  }

  std::function<void(std::string_view key, Right wanted)> on_acquire;
  std::function<void(std::string_view key)> on_release;
  std::function<void()> on_lease;
  std::atomic<bool> grants = true;
  std::atomic<bool> lease = true;
  std::atomic<std::size_t> acquires = 0;
  std::atomic<std::size_t> releases = 0;
};

}  // namespace zeze::testing
