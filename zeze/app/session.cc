#include "zeze/app/session.h"

#include <cstdint>
#include <string_view>

#include "zeze/base/log.h"
#include "zeze/base/result.h"

namespace zeze {

Session::~Session() = default;

void Session::LogIfLost(const Result<void>& sent) const {
  // A client may go at any time: that is not worth more.
  if (!sent.ok()) ZEZE_LOG_DEBUG("{}: not sent: {}", Describe(), sent.error().message());
}

Result<void> LocalSession::SendFrame(std::string_view) {
  return Error(ErrorCode::kUnavailable, "a local call has no client to send to");
}

void LocalSession::Kick(std::int32_t, std::string_view) {}

}  // namespace zeze
