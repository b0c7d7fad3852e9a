// A server behind a gateway whose requests are transactions, as a process of its own. See serve.h.

#pragma once

#include <cstdint>

namespace zeze::bench {

// Connects to the gateway whose port for servers is given. Its module is in solution.xml.
int ServeCounter(std::uint16_t port);

}  // namespace zeze::bench
