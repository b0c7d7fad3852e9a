// What is generated from wide.xml compiles, and values survive encoding and decoding.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/Chat.h"
#include "wide/Game.h"
#include "wide/Game.module.h"
#include "wide/Ping.h"
#include "wide/Types.h"
#include "wide/Types.module.h"
#include "wide/Types/Other.h"
#include "wide/server.project.h"
#include "zeze/app/module.h"
#include "zeze/app/protocol.h"
#include "zeze/app/session.h"
#include "zeze/app/testing/recording_session.h"
#include "zeze/base/name_hash.h"
#include "zeze/base/result.h"
#include "zeze/base/result_code.h"
#include "zeze/bean/codec.h"
#include "zeze/serialize/binary.h"
#include "zeze/transaction/transaction.h"

namespace {

using ::testing::ElementsAre;

template <typename Bean>
Bean RoundTrip(const Bean& bean) {
  const std::string bytes = zeze::EncodeBean(bean);
  zeze::Result<Bean> decoded = zeze::DecodeBean<Bean>(bytes);
  EXPECT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_EQ(zeze::EncodeBean(decoded.value()), bytes);
  EXPECT_TRUE(decoded.value() == bean) << decoded.value().ToString() << " " << bean.ToString();
  return std::move(decoded).value();
}

wide::Types::BScalars Scalars() {
  return {.flag = true,
          .b = -5,
          .s = 300,
          .i = -70000,
          .l = std::int64_t{1} << 40,
          .f = 2.5F,
          .d = -2.5,
          .bytes = {.bytes = std::string("\0\xFF", 2)},
          .text = "hi",
          .amount = {.text = "12.50"},
          .v2 = {1, 2},
          .v2i = {-1, 2},
          .v3 = {1, 2, 3},
          .v3i = {1, -2, 3},
          .v4 = {1, 2, 3, 4},
          .q = {0, 0, 0, 1},
          .place = {.map = 3, .zone = "north"},
          .last = 9};
}

TEST(Wide, ScalarsSurvive) {
  const wide::Types::BScalars scalars = Scalars();

  const wide::Types::BScalars back = RoundTrip(scalars);

  EXPECT_EQ(back.place.zone, "north");
  EXPECT_EQ(back.last, 9);
  EXPECT_TRUE(back.HasNegative());
  EXPECT_EQ(wide::Types::BScalars::kTypeId, zeze::HashName64("wide.Types.BScalars"));
}

TEST(Wide, MatchesTheBytesOfExistingImplementations) {
  wide::Types::BScalars scalars;
  scalars.flag = true;
  scalars.b = -5;
  scalars.s = 300;
  const std::string bytes = zeze::EncodeBean(scalars);
  EXPECT_EQ(bytes.substr(0, 7), std::string("\x10\x01\x10\xfb\x10\x41\x2c", 7));
}

TEST(Wide, DefaultsHoldForNewBeansAndAreZeroWhenAbsent) {
  const wide::Types::BDefaults fresh;
  EXPECT_TRUE(fresh.flag);
  EXPECT_EQ(fresh.b, -128);
  EXPECT_EQ(fresh.s, 0x7fff);
  EXPECT_EQ(fresh.i, 60'000);
  EXPECT_EQ(fresh.l, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(fresh.f, 1.5F);
  EXPECT_EQ(fresh.d, 2.0);
  EXPECT_EQ(fresh.text, "a \"b\" \\ \?\?=");
  EXPECT_EQ(fresh.v3.z, 3.0F);
  EXPECT_EQ(fresh.v2i.x, -1);
  EXPECT_EQ(fresh.amount.text, "12.50");
  EXPECT_EQ(fresh.constant, wide::Types::BDefaults::cStart);
  EXPECT_EQ(fresh.other, 4);
  RoundTrip(fresh);

  wide::Types::BDefaults zero = fresh;
  zero.flag = false;
  zero.i = 0;
  zero.text.clear();
  const wide::Types::BDefaults back = RoundTrip(zero);
  EXPECT_FALSE(back.flag);
  EXPECT_EQ(back.i, 0);
  EXPECT_EQ(back.text, "");
}

TEST(Wide, ContainersSurvive) {
  wide::Types::BContainers containers;
  containers.ints = {1, -2, 3};
  containers.names = {"a", "", "c"};
  containers.array.PushBack(Scalars());
  containers.ids = {5, 6};
  containers.places = {{.map = 1, .zone = "x"}};
  containers.items.Put(7, wide::BShared{.note = "seven"});
  containers.by_place.Put({.map = 2, .zone = "y"}, "two");
  containers.ranks.Put(3, wide::BShared{.note = "third"});
  containers.grid.UpdateOrAdd(1, [](auto& row) { row.cells.Put("k", wide::BShared{.note = "c"}); });
  containers.numbers.UpdateOrAdd(1, [](auto& row) { row.cells.Put(2, 0.5F); });
  containers.vectors = {{1, 2, 3}};
  containers.blobs.Put("b", zeze::Binary{.bytes = "bytes"});
  containers.flags = {true, false};

  const wide::Types::BContainers back = RoundTrip(containers);

  EXPECT_EQ(back.array[0].text, "hi");
  EXPECT_TRUE(back.places.Contains({.map = 1, .zone = "x"}));
  EXPECT_EQ(back.by_place.Find({.map = 2, .zone = "y"})->size(), 3U);
  EXPECT_EQ(back.grid.Find(1)->cells.Find("k")->note, "c");
}

TEST(Wide, RecursionSurvives) {
  wide::Types::BNode leaf{.value = 1};
  wide::Types::BNode node{.value = 2};
  node.children.PushBack(leaf);
  node.named.Put("leaf", leaf);
  node.partner.Set(leaf);
  wide::Types::BFirst first;
  wide::Types::BSecond second;
  second.firsts.Put(1, first);
  first.seconds.PushBack(second);
  node.first = first;

  const wide::Types::BNode back = RoundTrip(node);

  ASSERT_NE(back.partner.As<wide::Types::BNode>(), nullptr);
  EXPECT_EQ(back.partner.As<wide::Types::BNode>()->value, 1);
  EXPECT_EQ(back.partner.type_id(), 1);
  wide::Types::BNode other;
  other.partner.Set(wide::Types::Other::BSub{.up = {.note = "n"}, .nodes = {node}});
  EXPECT_EQ(RoundTrip(other).partner.type_id(), 3);
}

TEST(Wide, InheritanceSurvivesAndADynamicTakesTheWholeFamily) {
  wide::Types::BFurther further{.more = 3};
  further.base.own_value = "own";
  further.base.base.base_value = 5;
  const wide::Types::BFurther back = RoundTrip(further);
  EXPECT_EQ(back.base.base.base_value, 5);

  wide::Types::BDynamics dynamics;
  dynamics.any.Set(further);
  dynamics.list.PushBack({});
  dynamics.list.Update(0, [](auto& held) { held.Set(wide::Types::BBase{.base_value = 1}); });
  dynamics.map.GetOrAdd(1, [] { return decltype(dynamics.map)::mapped_type(); });
  dynamics.map.Update(1, [](auto& held) { held.Set(wide::BShared{.note = "s"}); });
  const wide::Types::BDynamics held = RoundTrip(dynamics);
  EXPECT_EQ(held.any.type_id(), zeze::HashName64("wide.Types.BFurther"));
  EXPECT_EQ(held.map.Find(1)->As<wide::BShared>()->note, "s");
}

TEST(Wide, AwkwardNamesWork) {
  wide::Types::BAwkward awkward;
  awkward.class_ = 1;
  awkward.namespace_ = "n";
  awkward.Encode_ = 2;
  awkward.out = 3;
  awkward.BShared.note = "s";
  awkward.std_ = "std";
  awkward.zeze_ = {"z"};
  awkward.BAwkward_ = 4;
  awkward.base_ = 5;
  awkward.unknown_fields_ = 6;
  awkward.set_color_enum(wide::Types::BAwkward::Color::Green);
  EXPECT_EQ(awkward.color, wide::Types::BAwkward::Green);
  awkward.debt = -5;
  EXPECT_FALSE(awkward.HasNegative());
  const wide::Types::BAwkward back = RoundTrip(awkward);
  EXPECT_EQ(back.color_enum(), wide::Types::BAwkward::Color::Green);

  awkward.cache = 7;  // Transient.
  zeze::Result<wide::Types::BAwkward> again =
      zeze::DecodeBean<wide::Types::BAwkward>(zeze::EncodeBean(awkward));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().cache, 0);
}

TEST(Wide, KeysCompareAndHash) {
  using wide::Types::BPlace;
  const BPlace one{.map = 1, .zone = "b"};
  const BPlace two{.map = 2, .zone = "a"};
  EXPECT_LT(one, two);
  EXPECT_EQ(std::hash<BPlace>()(one), std::hash<BPlace>()(BPlace{.map = 1, .zone = "b"}));
  RoundTrip(wide::Types::BWideKey{.flag = true, .amount = {.text = "1.5"}, .place = one});
  const std::string key = zeze::EncodeKey(one);
  EXPECT_EQ(zeze::DecodeKey<BPlace>(key).value(), one);
}

TEST(Wide, NamespacesThatEmbedEachOtherShareAHeader) {
  const wide::Ping::BA a{.b = {.n = 1}};
  const wide::Pong::BD d{.c = {.n = 2}};
  RoundTrip(a);
  RoundTrip(d);
}

TEST(Wide, ConstantsOfModules) {
  static_assert(wide::Types::eNotEnough == 3);
  static_assert(wide::Types::eTitle == "hello \"you\"");
  static_assert(wide::Game::Login::eNoAccount == 1);
}

TEST(Wide, DescribesTables) {
  static_assert(wide::Types::ktByLong.id == zeze::HashName32("wide.Types.tByLong"));
  static_assert(wide::Types::ktByLong.name == "wide_Types_tByLong");
  static_assert(wide::Types::ktByLong.auto_key == "true");
  static_assert(wide::Types::ktByString.memory);
  static_assert(wide::Types::ktByPlace.version == 3);
  static_assert(wide::Types::ktByBinary.no_schema);
  static_assert(wide::Types::ktSuffix.suffix == "@ServerId");
  static_assert(wide::Types::ktRenamed.name == "wide_Types_tOld");
  static_assert(wide::Types::ktFlag.id == 77);
  static_assert(wide::Types::BVersioned::kVersion == &wide::Types::BVersioned::revision);
  wide::Types::ModuleTypesBase module;
  EXPECT_EQ(module.Tables().size(), 8U);
  EXPECT_EQ(module.id(), 1);
  EXPECT_EQ(module.name(), "wide.Types");
}

TEST(Wide, DescribesProtocols) {
  using wide::Game::Login;
  static_assert(Login::kDescriptor.is_rpc);
  static_assert(Login::kDescriptor.type_id() == Login::kTypeId);
  static_assert(Login::kProtocolId == zeze::HashName32("wide.Game.Login"));
  static_assert(Login::kDescriptor.timeout_ms == 3000);
  static_assert(Login::kDescriptor.critical_level == zeze::CriticalLevel::kCritical);
  static_assert(wide::Game::Ping::kDescriptor.level == zeze::HandlerLevel::kNone);
  static_assert(wide::Game::Ping::kDescriptor.dispatch_mode == zeze::DispatchMode::kDirect);
  static_assert(wide::Game::Say::kDescriptor.one_by_one);
  static_assert(wide::Game::Say::kProtocolId == 5);
  static_assert(wide::Game::Kick::kDescriptor.handled_by.client);
  static_assert(wide::ProjectServer::kModules[0].full_name == "wide.Game");
  static_assert(wide::ProjectServer::kModules[1].full_name == "wide.Pong");
  static_assert(wide::ProjectServer::kServices[0].handles.server);
}

class ModuleGame final : public wide::Game::ModuleGameBase {
 public:
  std::int64_t ProcessLogin(zeze::Transaction&, zeze::Session&, const wide::Game::BLogin& argument,
                            wide::Game::BLoginResult& result) override {
    result.role += static_cast<std::int64_t>(argument.account.size());
    return argument.account.empty() ? ErrorCode(wide::Game::Login::eNoAccount) : 0;
  }
  std::int64_t ProcessNote(zeze::Session&, const wide::Game::BLogin& argument) override {
    noted = argument.account;
    return 0;
  }
  std::int64_t ProcessStrict(zeze::Transaction&, zeze::Session&,
                             const wide::Game::BLogin&) override {
    return 1;
  }

  std::string noted;
};

TEST(Wide, HandlersAreFoundByTypeIdAndCalledWithDecodedArguments) {
  ModuleGame module;
  zeze::testing::RecordingSession session("ann");
  const zeze::ProtocolHandler* handler = module.FindHandler(wide::Game::Note::kTypeId);
  ASSERT_NE(handler, nullptr);
  const std::string bytes = zeze::EncodeBean(wide::Game::BLogin{.account = "ann"});
  zeze::ByteReader in(bytes);

  const auto call = handler->decode(in);

  ASSERT_TRUE(in.ok());
  EXPECT_EQ(call->Run(module, nullptr, session), 0);
  EXPECT_EQ(module.noted, "ann");
  EXPECT_EQ(module.FindHandler(wide::Game::Kick::kTypeId), nullptr);  // The client handles it.
  EXPECT_NE(module.FindHandler(common::Chat::Talk::kTypeId), nullptr);
}

TEST(Wide, ARepeatedCallStartsWithAFreshResult) {
  ModuleGame module;
  zeze::testing::RecordingSession session("ann");
  const zeze::ProtocolHandler* handler = module.FindHandler(wide::Game::Login::kTypeId);
  const std::string bytes = zeze::EncodeBean(wide::Game::BLogin{.account = "ann"});
  zeze::ByteReader in(bytes);
  const auto call = handler->decode(in);
  // The handler does not use the transaction: any non-null pointer to storage of one will do.
  alignas(16) static char room[1];
  auto* tx = reinterpret_cast<zeze::Transaction*>(room);

  EXPECT_EQ(call->Run(module, tx, session), 0);
  EXPECT_EQ(call->Run(module, tx, session), 0);

  zeze::ByteWriter out;
  call->EncodeResult(out);
  EXPECT_EQ(zeze::DecodeBean<wide::Game::BLoginResult>(out.view()).value().role, 3);
}

TEST(Wide, HandlersNobodyWroteAnswerNotImplementAndCanBeListed) {
  ModuleGame module;
  zeze::testing::RecordingSession session("ann");
  EXPECT_EQ(module.ProcessPing(session), zeze::result_code::kNotImplement);
  EXPECT_THAT(wide::Game::ModuleGameBase::MissingHandlers<ModuleGame>(),
              ElementsAre("ProcessPing", "ProcessLoad", "ProcessSay", "ProcessTalk"));
}

TEST(Wide, HostileBytesAreRefused) {
  const std::string bytes = zeze::EncodeBean(Scalars());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(zeze::DecodeBean<wide::Types::BScalars>(bytes.substr(0, length)).ok()) << length;
  }
}

}  // namespace
