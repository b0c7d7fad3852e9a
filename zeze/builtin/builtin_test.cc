// The ids and bytes that other implementations of these modules expect.

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "Zeze/Builtin/AutoKey.h"
#include "Zeze/Builtin/AutoKey.module.h"
#include "Zeze/Builtin/Collections/LinkedMap.h"
#include "Zeze/Builtin/Collections/LinkedMap.module.h"
#include "Zeze/Builtin/Collections/Queue.h"
#include "Zeze/Builtin/Collections/Queue.module.h"
#include "Zeze/Builtin/DelayRemove.h"
#include "Zeze/Builtin/DelayRemove.module.h"
#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/Game/Online.module.h"
#include "Zeze/Builtin/Game/Rank.h"
#include "Zeze/Builtin/Game/Rank.module.h"
#include "Zeze/Builtin/LinkdBase.h"
#include "Zeze/Builtin/Online.h"
#include "Zeze/Builtin/Online.module.h"
#include "Zeze/Builtin/Provider.h"
#include "Zeze/Builtin/ProviderDirect.h"
#include "Zeze/Builtin/RedoQueue.h"
#include "Zeze/Builtin/RedoQueue.module.h"
#include "Zeze/Builtin/Timer.h"
#include "Zeze/Builtin/Timer.module.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

namespace provider = Zeze::Builtin::Provider;
namespace direct = Zeze::Builtin::ProviderDirect;

TEST(Builtin, ProtocolIdsAreThoseOfThePeer) {
  EXPECT_EQ(provider::AnnounceLinkInfo::kProtocolId, -1920287593);
  EXPECT_EQ(provider::AnnounceProviderInfo::kProtocolId, 202613858);
  EXPECT_EQ(provider::Bind::kProtocolId, 114259622);
  EXPECT_EQ(provider::UnBind::kProtocolId, 2107584596);
  EXPECT_EQ(provider::Subscribe::kProtocolId, 1110460218);
  EXPECT_EQ(provider::Dispatch::kProtocolId, 1285307417);
  EXPECT_EQ(provider::LinkBroken::kProtocolId, -1642022578);
  EXPECT_EQ(provider::Send::kProtocolId, -2067963426);
  EXPECT_EQ(provider::Broadcast::kProtocolId, -886924798);
  EXPECT_EQ(provider::SetUserState::kProtocolId, -1725914489);
  EXPECT_EQ(provider::Kick::kProtocolId, -73074142);
  EXPECT_EQ(provider::SetDisableChoice::kProtocolId, -2032655885);
  EXPECT_EQ(provider::CheckLinkSession::kProtocolId, 498078956);
  EXPECT_EQ(Zeze::Builtin::LinkdBase::ReportError::kProtocolId, 918874807);
  EXPECT_EQ(direct::AnnounceProviderInfo::kProtocolId, -1548813974);
  EXPECT_EQ(direct::ModuleRedirect::kProtocolId, 1107993902);
  EXPECT_EQ(direct::ModuleRedirectAllRequest::kProtocolId, -773666772);
  EXPECT_EQ(direct::ModuleRedirectAllResult::kProtocolId, 105409780);
  EXPECT_EQ(direct::Transmit::kProtocolId, 902147088);
  EXPECT_EQ(direct::TransmitAccount::kProtocolId, 952255342);
}

TEST(Builtin, TableAndTypeIdsAreThoseOfThePeer) {
  EXPECT_EQ(Zeze::Builtin::Game::Rank::ktrank.id, -2043108039);
  EXPECT_EQ(Zeze::Builtin::Game::Rank::BValueLong::kTypeId, 4031590576404079301);
}

TEST(Builtin, ComponentIdsAreThoseOfThePeer) {
  namespace timer = Zeze::Builtin::Timer;
  EXPECT_EQ(timer::ktNodeRoot.id, 1952520306);
  EXPECT_EQ(timer::ktNodes.id, 453698467);
  EXPECT_EQ(timer::ktIndexs.id, 833718);
  EXPECT_EQ(timer::ktAccountTimers.id, 1803422289);
  EXPECT_EQ(timer::ktAccountOfflineTimers.id, -865861330);
  EXPECT_EQ(Zeze::Builtin::Game::Online::ktRoleTimers.id, 1198700620);
  EXPECT_EQ(Zeze::Builtin::Game::Online::ktRoleOfflineTimers.id, 689434588);
  EXPECT_EQ(timer::BSimpleTimer::kTypeId, 1832177636612857692);
  EXPECT_EQ(timer::BCronTimer::kTypeId, -6995089347718168392);
  EXPECT_EQ(timer::BOfflineRoleCustom::kTypeId, -124522910617189691);
  EXPECT_EQ(timer::BOfflineAccountCustom::kTypeId, -8019295337231502138);

  namespace redo = Zeze::Builtin::RedoQueue;
  EXPECT_EQ(redo::RunTask::kProtocolId, 1530872255);
  EXPECT_EQ(redo::ktQueueLastTaskId.id, -1495051256);

  EXPECT_EQ(Zeze::Builtin::AutoKey::ktAutoKeys.id, -716529252);
  EXPECT_EQ(Zeze::Builtin::DelayRemove::ktJobs.id, -582299608);
  EXPECT_EQ(Zeze::Builtin::DelayRemove::BTableKey::kTypeId, 6060766480176216446);
  EXPECT_EQ(Zeze::Builtin::Collections::Queue::ktQueues.id, 1005923355);
  EXPECT_EQ(Zeze::Builtin::Collections::Queue::ktQueueNodes.id, -117984600);
  EXPECT_EQ(Zeze::Builtin::Collections::LinkedMap::ktLinkedMaps.id, -72689413);
  EXPECT_EQ(Zeze::Builtin::Collections::LinkedMap::ktLinkedMapNodes.id, -1295098614);
  EXPECT_EQ(Zeze::Builtin::Collections::LinkedMap::ktValueIdToNodeId.id, -1128401683);
}

TEST(Builtin, OnlineIdsAreThoseOfThePeer) {
  namespace online = Zeze::Builtin::Online;
  EXPECT_EQ(online::ModuleOnlineBase::kModuleId, 11100);
  EXPECT_EQ(online::Login::kProtocolId, -1498951762);
  EXPECT_EQ(online::ReLogin::kProtocolId, 927898915);
  EXPECT_EQ(online::Logout::kProtocolId, -1911969343);
  EXPECT_EQ(online::ReliableNotifyConfirm::kProtocolId, -244732886);
  EXPECT_EQ(online::SReliableNotify::kProtocolId, 240607704);
  EXPECT_EQ(online::ktonline.id, -2094601796);
  EXPECT_EQ(online::ktlocal.id, -1858917951);

  namespace game = Zeze::Builtin::Game::Online;
  EXPECT_EQ(game::ModuleOnlineBase::kModuleId, 11013);
  EXPECT_EQ(game::Login::kProtocolId, -789575265);
  EXPECT_EQ(game::ReLogin::kProtocolId, -218681811);
  EXPECT_EQ(game::Logout::kProtocolId, -563842687);
  EXPECT_EQ(game::ReliableNotifyConfirm::kProtocolId, -420042484);
  EXPECT_EQ(game::SReliableNotify::kProtocolId, 1941465447);
  EXPECT_EQ(game::ktOnlineShared.id, -447489428);
  EXPECT_EQ(game::ktOnline.id, -1094649995);
  EXPECT_EQ(game::ktlocal.id, -1657900798);
}

template <typename Bean>
std::string BodyOf(const Bean& bean, FrameFamily family = FrameFamily::kOneWay) {
  ByteWriter payload;
  bean.Encode(payload);
  ByteWriter out;
  EncodeFrame({.family = family, .payload = payload.view()}, out);
  std::string hex;
  for (const char c : out.view().substr(kFrameHeaderBytes)) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

// Bytes seen on the wire between peers.
TEST(Builtin, BodiesAreThoseOfThePeer) {
  provider::BDispatch dispatch{.linkSid = 5, .account = "acc5", .protocolType = 0x6400000005};
  dispatch.protocolData = Binary(std::string("\x02\x00", 2));
  EXPECT_EQ(BodyOf(dispatch), "021005130461636335107c64000000051302020000");
  EXPECT_EQ(BodyOf(Zeze::Builtin::LinkdBase::BReportError{.from = 0, .code = 4}), "02200400");
  EXPECT_EQ(BodyOf(Zeze::Builtin::LinkdBase::BReportError{.from = 2, .code = 200}),
            "0210021040c800");
  const provider::BAnnounceProviderInfo announce{.ServiceNamePrefix = "Test.Server.Module#",
                                                 .ServiceIdentity = "1",
                                                 .ProviderDirectIp = "127.0.0.1",
                                                 .ProviderDirectPort = 7001};
  EXPECT_EQ(BodyOf(announce),
            "021313546573742e5365727665722e4d6f64756c652313013113093132372e302e302e31105b5900");
}

}  // namespace
}  // namespace zeze
