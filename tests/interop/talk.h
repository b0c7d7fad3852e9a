// Say, Heard: what clients of the mixed cluster and their servers say to each other, as
// tests/interop/java/.../Say.java has it.

#pragma once

#include "Zeze/Builtin/Provider.h"
#include "zeze/net/protocol.h"

namespace zeze::interop {

using Words = Zeze::Builtin::Provider::BKick;

// A client asks its server to send words to a role: linksid is the role, code a number, desc the
// words. "kick me" ends the client's own connection instead. The answer says in control which
// server it was.
struct Say {
  using Argument = Words;
  using Result = Words;
  static constexpr ProtocolDescriptor kDescriptor{.module_id = 7,
                                                  .protocol_id = 1,
                                                  .full_name = "interop.Talk.Say",
                                                  .is_rpc = true,
                                                  .handled_by = {.server = true}};
};

// The words as they reach a role: linksid is the role that said them.
struct Heard {
  using Argument = Words;
  static constexpr ProtocolDescriptor kDescriptor{.module_id = 7,
                                                  .protocol_id = 2,
                                                  .full_name = "interop.Talk.Heard",
                                                  .handled_by = {.client = true}};
};

}  // namespace zeze::interop
