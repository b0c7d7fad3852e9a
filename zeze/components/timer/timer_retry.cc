#include "zeze/components/timer/timer_retry.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/function_ref.h"
#include "zeze/base/result_code.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPutOffMin(50);
constexpr milliseconds kPutOffMax(5000);

}  // namespace

bool IsPassing(std::int64_t code) {
  switch (code) {
    case result_code::kBusy:
    case result_code::kTimeout:
    case result_code::kTooManyTry:
    case result_code::kAbortException:
    case result_code::kRedoAndRelease:
    case result_code::kRaftRetry:
    case result_code::kUnknown:
    case result_code::kClosed:
    case result_code::kCancelException:
    case result_code::kProviderNotExist:
    case result_code::kErrorSendFail:
      return true;
    default:
      return false;
  }
}

milliseconds PutOffDelay(int attempts) {
  return std::min(kPutOffMin * (1 << std::clamp(attempts, 0, 10)), kPutOffMax);
}

milliseconds RetryDelay(std::int32_t failed_times, milliseconds first, milliseconds longest) {
  const int doublings = std::clamp(failed_times - 1, 0, 30);
  return std::min(first * (std::int64_t{1} << doublings), longest);
}

std::int64_t CallTimerHandler(const char* kind, std::string_view id, std::string_view handler,
                              FunctionRef<std::int64_t()> call) {
  const auto named = [&](const char* what) {
    return std::runtime_error(fmt::format("{} {}, handler \"{}\": {}", kind, id, handler, what));
  };
  try {
    return call();
  } catch (const TransactionAborted&) {
    throw;
  } catch (const std::exception& error) {
    throw named(error.what());
  } catch (...) {
    throw named("something that is not a std::exception");
  }
}

}  // namespace zeze
