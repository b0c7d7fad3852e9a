#include "zeze/app/module.h"

#include <cstdint>

#include "zeze/base/result.h"

namespace zeze {

Module::~Module() = default;

Result<void> Module::Start(Application&) {
  return {};
}

void Module::Stop(Application&) {}

const ProtocolHandler* Module::FindHandler(std::int64_t type_id) const {
  for (const ProtocolHandler& handler : Handlers()) {
    if (handler.protocol->type_id() == type_id) return &handler;
  }
  return nullptr;
}

}  // namespace zeze
