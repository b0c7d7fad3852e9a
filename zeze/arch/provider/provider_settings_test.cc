#include "zeze/arch/provider/provider_settings.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/arch/provider/provider.h"
#include "zeze/base/result.h"
#include "zeze/config/config.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Result<ProviderOptions> OptionsOf(const std::string& text) {
  xml::Diagnostics diagnostics;
  const std::optional<Config> config = Config::Parse(text, "zeze.xml", {}, diagnostics);
  EXPECT_TRUE(config) << diagnostics.Format();
  return ProviderOptionsFromConfig(*config, "Server", "/nowhere/binds.xml");
}

TEST(ProviderSettings, AreTheDefaultsWithoutAnythingSaid) {
  const Result<ProviderOptions> options = OptionsOf("<zeze/>");

  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_EQ(options.value().app_version, 0);
  EXPECT_EQ(options.value().overload_threshold, milliseconds(2000));
  EXPECT_EQ(options.value().overload, milliseconds(4000));
  EXPECT_TRUE(options.value().link_service.handshake);
  EXPECT_EQ(options.value().link_service.name, "Link");
}

TEST(ProviderSettings, ReadTheFile) {
  const Result<ProviderOptions> options =
      OptionsOf(R"(<zeze AppVersion="3.1.0.0" ProviderThreshold="1s" ProviderOverload="1500">
          <ServiceConf Name="Server" NoDelay="false"/></zeze>)");

  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_EQ(options.value().app_version, (std::int64_t{3} << 48) + (std::int64_t{1} << 32));
  EXPECT_EQ(options.value().overload_threshold, milliseconds(1000));
  EXPECT_EQ(options.value().overload, milliseconds(1500));
  EXPECT_FALSE(options.value().link_service.socket.no_delay);
  EXPECT_EQ(options.value().link_service.output_bytes_max,
            DefaultLinkServiceOptions().output_bytes_max);
}

TEST(ProviderSettings, RefuseWhatCannotBeMeant) {
  const Result<ProviderOptions> connector = OptionsOf(
      R"(<zeze><ServiceConf Name="Server">
           <Connector HostNameOrAddress="127.0.0.1" Port="5001"/></ServiceConf></zeze>)");
  ASSERT_FALSE(connector.ok());
  EXPECT_THAT(connector.error().message(), HasSubstr("service manager"));
}

}  // namespace
}  // namespace zeze::arch
