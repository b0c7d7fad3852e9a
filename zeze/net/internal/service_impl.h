// Service::Impl: the state of a service that its connections, acceptors and connectors share.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "zeze/base/executor.h"
#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/net/connection.h"
#include "zeze/net/frame.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/protocol.h"
#include "zeze/net/rpc.h"
#include "zeze/net/service.h"
#include "zeze/net/service_options.h"

namespace zeze {

namespace internal {

class AcceptorImpl;
class ConnectionImpl;
class ConnectorImpl;

struct HandlerEntry {
  const ProtocolDescriptor* protocol = nullptr;
  RawHandler handler = {};
  Dispatch dispatch = Dispatch::kInline;
  Executor* executor = nullptr;  // Of kParallel.
};

}  // namespace internal

struct Service::Impl : std::enable_shared_from_this<Service::Impl> {
  Impl(Service& service_in, IoThreads& io_in, ServiceOptions options_in);

  // Null if there is none.
  internal::HandlerEntry* Find(std::int64_t type_id) {
    const auto found = handlers.find(type_id);
    return found == handlers.end() ? nullptr : found->second.get();
  }

  // Takes a place for one more accepted connection. False, with a log line, if there is none.
  // GiveUp returns a place that did not become a connection.
  bool Admit();
  // Throws UsageError once the service listens or connects.
  void RequireSetUp(const char* what) const;
  void GiveUp();

  // From creation until OnClose has run. Add is false when the service stops.
  bool Add(const std::shared_ptr<internal::ConnectionImpl>& connection);
  void SetReady(const internal::ConnectionImpl& connection);
  void Remove(const internal::ConnectionImpl& connection);

  // Of one that has ended by itself.
  void Forget(const internal::AcceptorImpl& acceptor);
  void Forget(const internal::ConnectorImpl& connector);

  // A line about what a peer did: at most some each second, or a hostile one fills the disk.
  void LogPeerError(std::string_view who, std::string_view what);

  Service& service;
  IoThreads& io;
  const ServiceOptions options;

  // Constant once there can be connections.
  boost::unordered_flat_map<std::int64_t, std::unique_ptr<internal::HandlerEntry>> handlers;
  Forwarder forwarder;  // Null: this service forwards nothing.
  std::function<void(const ConnectionPtr& connection)> on_open;
  std::function<void(const ConnectionPtr& connection, const Error& reason)> on_close;
  std::atomic<bool> frozen = false;

  struct Entry {
    std::shared_ptr<internal::ConnectionImpl> connection;
    bool ready = false;
  };

  mutable Mutex mutex;
  CondVar changed;
  bool stopping ZEZE_GUARDED_BY(mutex) = false;
  std::map<std::int64_t, Entry> connections ZEZE_GUARDED_BY(mutex);
  std::size_t accepted_count ZEZE_GUARDED_BY(mutex) = 0;      // Of connections.
  std::size_t handshaking_count ZEZE_GUARDED_BY(mutex) = 0;   // Of the accepted, not ready.
  std::set<std::int64_t> handshaking ZEZE_GUARDED_BY(mutex);  // Of them, oldest first; not closing.
  std::size_t ready_count ZEZE_GUARDED_BY(mutex) = 0;
  std::vector<std::shared_ptr<internal::AcceptorImpl>> acceptors ZEZE_GUARDED_BY(mutex);
  std::vector<std::shared_ptr<internal::ConnectorImpl>> connectors ZEZE_GUARDED_BY(mutex);
  std::chrono::nanoseconds log_window ZEZE_GUARDED_BY(mutex){0};
  std::uint64_t logged_in_window ZEZE_GUARDED_BY(mutex) = 0;

  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> not_admitted = 0;
  std::atomic<std::uint64_t> handshakes_failed = 0;
  std::atomic<std::uint64_t> handshake_timeouts = 0;
  std::atomic<std::uint64_t> handshakes_displaced = 0;
  std::atomic<std::uint64_t> upgrades_refused = 0;
  std::atomic<std::uint64_t> protocol_errors = 0;
  std::atomic<std::uint64_t> oversize_frames = 0;
  std::atomic<std::uint64_t> bad_compression = 0;
  std::atomic<std::uint64_t> compression_bombs = 0;
  std::atomic<std::uint64_t> write_stalls = 0;
  std::atomic<std::uint64_t> sends_refused = 0;
  std::atomic<std::uint64_t> late_answers = 0;
  std::atomic<std::uint64_t> peer_messages = 0;
};

}  // namespace zeze
