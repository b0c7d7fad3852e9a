// Way: how a process of a test reaches a server that listens here, and what can go wrong on it.
//
//   Way way(database_port);
//   Start(UrlOver(way, url));
//   Cut(way, Fault::kSilent);
//   Heal(way);

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "tests/cluster/test_host.h"
#include "zeze/base/check.h"
#include "zeze/storage/testing/loopback_proxy.h"

namespace zeze::cluster {

enum class Fault : std::uint8_t {
  kClosed,   // Connections are closed and refused.
  kSilent,   // Nothing gets through; what was sent meanwhile arrives afterwards.
  kLost,     // Packets are lost, on cables only;
  kLostOut,  // those from the process,
  kLostIn,   // or those to it.
};

// Not thread-safe.
class Way {
 public:
  // What the process finds at our end of the cable: the server itself, or a proxy, because the
  // server listens on 127.0.0.1 only.
  enum class AtOurEnd : std::uint8_t { kServer, kProxy };

  // On the same host, through a proxy.
  explicit Way(int port) : port_(port) {
    proxy_.emplace(port);
    port_ = proxy_->port();
  }
  // Over a cable with this name.
  Way(TestHost& host, const std::string& name, int port, AtOurEnd at_our_end) : port_(port) {
    cable_.emplace(host, name);
    host_ = cable_->near_address();
    if (at_our_end == AtOurEnd::kServer) return;
    proxy_.emplace(port, host_);
    port_ = proxy_->port();
  }

  // Where the process finds the server.
  std::string address() const { return fmt::format("{}:{}", host_, port_); }

  Cable& cable() {
    ZEZE_CHECK(cable_.has_value());
    return *cable_;
  }
  LoopbackProxy& proxy() {
    ZEZE_CHECK(proxy_.has_value());
    return *proxy_;
  }
  bool on_cable() const { return cable_.has_value(); }

 private:
  std::string host_ = "127.0.0.1";
  int port_;
  std::optional<Cable> cable_;
  std::optional<LoopbackProxy> proxy_;
};

inline void Cut(Way& way, Fault fault = Fault::kClosed) {
  switch (fault) {
    case Fault::kClosed:
      way.proxy().Refuse(true);
      way.proxy().CutAll();
      break;
    case Fault::kSilent:
      way.proxy().Silence(true);
      break;
    case Fault::kLost:
      way.cable().Drop(Cable::Direction::kBoth);
      break;
    case Fault::kLostOut:
      way.cable().Drop(Cable::Direction::kOut);
      break;
    case Fault::kLostIn:
      way.cable().Drop(Cable::Direction::kIn);
      break;
  }
}

inline void Heal(Way& way) {
  if (way.on_cable()) {
    way.cable().Heal();
  } else {
    way.proxy().Refuse(false);
    way.proxy().Silence(false);
  }
}

// The port in an address like "postgresql://zeze@127.0.0.1:5543/t1".
inline int PortInUrl(const std::string& url) {
  return std::stoi(url.substr(url.rfind(':') + 1));
}
// The same database, found at the end of the way.
inline std::string UrlOver(const Way& way, const std::string& url) {
  const std::size_t host = url.find('@') + 1;
  return url.substr(0, host) + way.address() + url.substr(url.find('/', host));
}

}  // namespace zeze::cluster
