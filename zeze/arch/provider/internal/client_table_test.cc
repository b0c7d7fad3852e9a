#include "zeze/arch/provider/internal/client_table.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/provider/internal/messages.h"
#include "zeze/arch/provider/links.h"
#include "zeze/arch/provider/provider_session.h"
#include "zeze/base/result.h"

namespace zeze::arch::internal {
namespace {

class NoLinks final : public Links {
 public:
  using Links::Send;
  Result<void> Send(std::string_view, std::span<const std::int64_t>, std::string_view,
                    SendCompletion) override {
    return {};
  }
  void Broadcast(std::string_view, bool) override {}
  Result<void> Kick(const LinkAddress&, std::int32_t, std::string_view, std::int32_t) override {
    return {};
  }
  Result<void> SetUserState(const LinkAddress&,
                            const Zeze::Builtin::Provider::BUserState&) override {
    return {};
  }
  Result<void> Bind(const LinkAddress&, std::span<const std::int32_t>,
                    std::function<void(const Result<void>&)>) override {
    return {};
  }
  Result<void> Unbind(const LinkAddress&, std::span<const std::int32_t>,
                      std::function<void(const Result<void>&)>) override {
    return {};
  }
  Result<void> CheckSession(const LinkAddress&, SendCompletion) override { return {}; }
  std::vector<std::string> names() const override { return {}; }
};

TEST(ClientTableTest, MessagesShareASessionAsLongAsNothingChanges) {
  NoLinks links;
  ClientTable table(links, "g_1");
  const auto first = table.Find({.link_sid = 5, .account = "ann"})->session;

  EXPECT_EQ(table.Find({.link_sid = 5, .account = "ann"})->session, first);
  const auto second = table.Find({.link_sid = 5, .account = "ann", .context = "1"})->session;

  EXPECT_NE(second, first);
  EXPECT_EQ(second->context(), "1");
  EXPECT_EQ(first->context(), "");  // Of messages that came before.
  EXPECT_EQ(table.size(), 1);
}

TEST(ClientTableTest, ClientsThatLeaveWithoutAWordAreSweptOut) {
  NoLinks links;
  ClientTable table(links, "g_1");
  const ClientPtr busy = table.Find({.link_sid = -1, .account = "busy"});
  busy->requests = 1;

  for (std::int64_t sid = 0; sid < 1'000'000; ++sid) {
    table.Find({.link_sid = sid, .account = "ann"});
    ASSERT_LT(table.size(), 20'000);
  }

  EXPECT_EQ(table.Find({.link_sid = -1, .account = "busy"}), busy);
}

}  // namespace
}  // namespace zeze::arch::internal
