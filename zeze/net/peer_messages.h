// Messages of Zeze 1.6's own modules that no service here handles.
//
// A server of Zeze 1.6 sends one-way messages of its own modules over connections that serve
// another purpose: its agent at the service manager sends Threading.KeepAlive every 10 s, for locks
// that our service manager does not offer. Nobody waits for an answer to them, so a service that
// has no handler for one counts it (Service::Statistics::peer_messages) and goes on, where another
// unknown message closes the connection. Requests of Threading, the module of those locks, are
// answered with result_code::kNotImplement.

#pragma once

#include <cstdint>
#include <string_view>

#include "zeze/base/name_hash.h"

namespace zeze {

struct PeerMessage {
  consteval PeerMessage(std::int32_t module_id_in, std::string_view full_name_in,
                        bool is_rpc_in = false)
      : module_id(module_id_in),
        protocol_id(HashName32(full_name_in)),
        full_name(full_name_in),
        is_rpc(is_rpc_in) {}

  std::int32_t module_id;
  std::int32_t protocol_id;
  std::string_view full_name;
  bool is_rpc;
};

// All one-way messages that version 1.6.3 declares for its own modules, and the requests of
// Threading. Those of the handshake are missing: out of place they close a connection.
inline constexpr PeerMessage kPeerMessages[] = {
    {0, "Zeze.Services.BinLogger$LogData"},
    {0, "Zeze.Services.ServiceManager.SetServerLoad"},
    {11008, "Zeze.Builtin.Provider.AnnounceLinkInfo"},
    {11008, "Zeze.Builtin.Provider.AnnounceProviderInfo"},
    {11008, "Zeze.Builtin.Provider.Broadcast"},
    {11008, "Zeze.Builtin.Provider.CheckLinkSession"},
    {11008, "Zeze.Builtin.Provider.Dispatch"},
    {11008, "Zeze.Builtin.Provider.Kick"},
    {11008, "Zeze.Builtin.Provider.LinkBroken"},
    {11008, "Zeze.Builtin.Provider.SetUserState"},
    {11009, "Zeze.Builtin.ProviderDirect.ModuleRedirectAllRequest"},
    {11009, "Zeze.Builtin.ProviderDirect.ModuleRedirectAllResult"},
    {11009, "Zeze.Builtin.ProviderDirect.Transmit"},
    {11009, "Zeze.Builtin.ProviderDirect.TransmitAccount"},
    {11011, "Zeze.Builtin.LinkdBase.ReportError"},
    {11013, "Zeze.Builtin.Game.Online.SReliableNotify"},
    {11028, "Zeze.Builtin.Dbh2.Commit.DummyImportBean"},
    {11029, "Zeze.Builtin.Token.NotifyTopic"},
    {11030, "Zeze.Builtin.Threading.KeepAlive"},
    {11030, "Zeze.Builtin.Threading.MutexTryLock", true},
    {11030, "Zeze.Builtin.Threading.MutexUnlock", true},
    {11030, "Zeze.Builtin.Threading.ReadWriteLockOperate", true},
    {11030, "Zeze.Builtin.Threading.SemaphoreCreate", true},
    {11030, "Zeze.Builtin.Threading.SemaphoreRelease", true},
    {11030, "Zeze.Builtin.Threading.SemaphoreTryAcquire", true},
    {11042, "Zeze.Builtin.LoginQueueServer.AnnounceSecret"},
    {11042, "Zeze.Builtin.LoginQueueServer.ReportLinkLoad"},
    {11042, "Zeze.Builtin.LoginQueueServer.ReportProviderLoad"},
    {11043, "Zeze.Builtin.LoginQueue.PutLoginToken"},
    {11043, "Zeze.Builtin.LoginQueue.PutQueueFull"},
    {11043, "Zeze.Builtin.LoginQueue.PutQueuePosition"},
    {11100, "Zeze.Builtin.Online.SReliableNotify"},
};

// Null if no such message is in the list.
constexpr const PeerMessage* FindPeerMessage(std::int32_t module_id, std::int32_t protocol_id) {
  for (const PeerMessage& message : kPeerMessages) {
    if (message.module_id == module_id && message.protocol_id == protocol_id) return &message;
  }
  return nullptr;
}

}  // namespace zeze
