// Runs the program as a user does: arguments in, text and exit code out.

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeze/storage/testing/server_process.h"

namespace zeze {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string text;  // Standard output and error together.
};

using Variables = std::map<std::string, std::string>;

Outcome RunZeze(std::vector<std::string> arguments, const Variables& environment = {}) {
  arguments.insert(arguments.begin(), ZEZE_BINARY);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Without ZEZE_ variables of whoever runs the tests.
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("ZEZE_")) variables.emplace_back(*entry);
  }
  for (const auto& [name, value] : environment) {
    variables.push_back(std::string(name).append("=").append(value));
  }
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  std::array<int, 2> channel{};
  EXPECT_EQ(pipe(channel.data()), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, channel[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, channel[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, channel[0]);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, ZEZE_BINARY, &actions, nullptr, argv.data(), envp.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(channel[1]);

  Outcome outcome;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = read(channel[0], buffer.data(), buffer.size())) > 0;) {
    outcome.text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  close(channel[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("zeze_cli_" + std::to_string(getpid()) + "_" +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  ~CliTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path directory_;
};

TEST_F(CliTest, HelpEverywhereWithExamples) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"config"},
                                                          {"config", "check"},
                                                          {"config", "print"},
                                                          {"config", "explain"},
                                                          {"gen"},
                                                          {"new"},
                                                          {"version"},
                                                          {"global"},
                                                          {"service-manager"},
                                                          {"linkd"},
                                                          {"linkd", "token"},
                                                          {"daemon"},
                                                          {"admin"},
                                                          {"admin", "keygen"},
                                                          {"admin", "cleanup"},
                                                          {"admin", "approve"},
                                                          {"admin", "cancel"},
                                                          {"admin", "list"},
                                                          {"admin", "verify-log"}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    const Outcome outcome = RunZeze(command);
    EXPECT_EQ(outcome.exit_code, 0) << command.front();
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("Usage: zeze"), ContainsRegex("Examples?:\n  zeze ")))
        << command.front();
  }
}

TEST_F(CliTest, PrintsItsVersion) {
  EXPECT_THAT(RunZeze({"version"}).text, StartsWith("zeze " ZEZE_VERSION));
  EXPECT_EQ(RunZeze({"--version"}).text, ZEZE_VERSION "\n");
}

TEST_F(CliTest, WithoutACommandItSaysHowToGetHelp) {
  const Outcome outcome = RunZeze({});

  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("Run \"zeze --help\""));
}

TEST_F(CliTest, UnknownCommandIsAnsweredWithASuggestion) {
  const Outcome top = RunZeze({"confg", "check"});
  const Outcome nested = RunZeze({"config", "chek", "zeze.xml"});
  const Outcome option = RunZeze({"config", "check", "--strickt"});

  EXPECT_EQ(top.exit_code, 2);
  EXPECT_THAT(top.text, HasSubstr("there is no command \"confg\"; did you mean 'config'?"));
  EXPECT_EQ(nested.exit_code, 2);
  EXPECT_THAT(nested.text,
              HasSubstr("zeze config: there is no command \"chek\"; did you mean 'check'?"));
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_THAT(option.text, AllOf(HasSubstr("--strickt"), HasSubstr("did you mean '--strict'?")));
}

TEST_F(CliTest, CheckAcceptsAGoodFile) {
  const std::string file = Write("zeze.xml", "<zeze ServerId='3'/>");

  const Outcome outcome = RunZeze({"config", "check", file});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.text, file + " is fine\n");
  EXPECT_EQ(RunZeze({"config", "check", "-q", file}).text, "");
}

TEST_F(CliTest, CheckRefusesWhatTheProgramsRefuse) {
  const std::string mongo =
      Write("mongo.xml", "<zeze><DatabaseConf DatabaseType='MongoDB' DatabaseUrl='x'/></zeze>");
  Outcome outcome = RunZeze({"config", "check", mongo});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("DatabaseType MongoDB is not built into this program"));

  const std::string linkd =
      Write("linkd.xml", "<zeze><CustomizeConf Name='Zeze.Linkd' MaxClientz='1'/></zeze>");
  outcome = RunZeze({"config", "check", linkd});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("MaxClientz"));

  const std::map<std::string, std::string> refused = {
      {"<zeze><DatabaseConf DatabaseType='PostgreSQL' DatabaseUrl='jdbc:mysql://h/g'/></zeze>",
       "'mysql://' is no address of a PostgreSQL database"},
      {"<zeze><DatabaseConf DatabaseType='MySql'/></zeze>", "DatabaseUrl"},
      {"<zeze ProviderThreshold='9s'/>", "ProviderOverload"},
      {"<zeze><CustomizeConf Name='Zeze.Linkd' TokenKeys='/no.keys'/></zeze>", "/no.keys"},
      {"<zeze GlobalTlsAuthoritiesFile='/not/there.pem'/>", "/not/there.pem"},
      {"<zeze GlobalCacheManagerHostNameOrAddress='127.0.0.1'/>", "has no port"},
      {"<zeze GlobalCacheManagerHostNameOrAddress='127.0.0.1:5002'/>", "a Memory database"},
      {"<zeze ServerId='-1'><DatabaseConf DatabaseType='RocksDB'/></zeze>", "ServerId is -1"},
      {"<zeze><ServiceConf Name='LinkdService'><Websocket Port='1' Path='g'/></ServiceConf></zeze>",
       "'g' is no path"},
      {"<zeze><ServiceConf Name='Game'><Acceptor Ip='banana'/></ServiceConf></zeze>",
       "'banana' is no IP address"},
      {"<zeze><ServiceConf Name='LinkdService'><Acceptor TlsCertificateFile='/c.pem' "
       "TlsKeyFile='/c.key'/></ServiceConf></zeze>",
       "/c.pem"}};
  for (const auto& [file, what] : refused) {
    outcome = RunZeze({"config", "check", Write("refused.xml", file)});
    EXPECT_EQ(outcome.exit_code, 1) << file;
    EXPECT_THAT(outcome.text, HasSubstr(what)) << file;
  }
}

TEST_F(CliTest, PrintShowsNoPasswords) {
  const std::string file = Write(
      "zeze.xml",
      "<zeze><DatabaseConf DatabaseType='PostgreSQL' DatabaseUrl='postgresql://u:sekret@h/g'/>"
      "</zeze>");
  EXPECT_THAT(RunZeze({"config", "print", file}).text,
              AllOf(HasSubstr("postgresql://u:***@h/g"), Not(HasSubstr("sekret"))));
  const Variables environment = {
      {"ZEZE_DATABASE_DATABASEURL", "jdbc:mysql://v:sekret@h/g?password=sekret"}};
  EXPECT_THAT(RunZeze({"config", "print", file}, environment).text,
              AllOf(HasSubstr("jdbc:mysql://v:***@h/g?password=***"), Not(HasSubstr("sekret"))));
  EXPECT_THAT(RunZeze({"config", "check", file}, environment).text, Not(HasSubstr("sekret")));
  EXPECT_THAT(RunZeze({"global", "--database", "oracle://u:sekret@h/g"}).text,
              AllOf(HasSubstr("oracle://u:***@h/g"), Not(HasSubstr("sekret"))));
}

TEST_F(CliTest, IncompleteTlsIsRefusedByTheCheckAndAtTheStart) {
  const std::string provider = Write("provider.xml",
                                     "<zeze><ServiceConf Name='ProviderService'><Acceptor Port='0' "
                                     "TlsClientAuthoritiesFile='/ca.pem'/></ServiceConf></zeze>");
  const std::string missing = "TlsClientAuthoritiesFile is set, but TlsCertificateFile is missing";
  const std::vector<std::vector<std::string>> provider_commands = {
      {"config", "check", provider}, {"linkd", "--config", provider, "--insecure-accounts"}};
  for (const std::vector<std::string>& command : provider_commands) {
    const Outcome outcome = RunZeze(command);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, HasSubstr(missing));
  }

  const std::string manager =
      Write("manager.xml",
            "<zeze><ServiceConf Name='Zeze.Services.ServiceManager'><Acceptor Port='0' "
            "TlsKeyFile='/a.key'/></ServiceConf></zeze>");
  const std::vector<std::vector<std::string>> manager_commands = {
      {"config", "check", manager},
      {"service-manager", "--config", manager, "--data", (directory_ / "data").string()}};
  for (const std::vector<std::string>& command : manager_commands) {
    const Outcome outcome = RunZeze(command);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, HasSubstr("TlsKeyFile is set, but TlsCertificateFile is missing"));
  }

  const std::string agent = Write(
      "agent.xml",
      "<zeze GlobalTlsName='global'><ServiceConf Name='Zeze.Services.ServiceManager.Agent'>"
      "<Connector HostNameOrAddress='127.0.0.1' Port='5001' TlsName='registry'/></ServiceConf>"
      "</zeze>");
  EXPECT_THAT(RunZeze({"config", "check", agent}).text,
              AllOf(HasSubstr("GlobalTlsName is set, but GlobalTlsAuthoritiesFile is missing"),
                    HasSubstr("TlsName is set, but TlsAuthoritiesFile is missing")));
}

// An unset variable of a shell must not mean plaintext.
TEST_F(CliTest, EmptyFilesOfTlsOnTheCommandLineAreRefused) {
  const std::string url = "postgresql://127.0.0.1:1/none";
  const Outcome global = RunZeze({"global", "--database", url, "--tls-certificate", "", "--tls-key",
                                  "", "--tls-authorities", ""});
  EXPECT_EQ(global.exit_code, 2);
  EXPECT_THAT(global.text, HasSubstr("--tls-"));
  const Outcome redo =
      RunZeze({"redo", "send", "--store", (directory_ / "redo").string(), "--queue", "q",
               "--server", "127.0.0.1:1", "--tls-authorities", ""});
  EXPECT_EQ(redo.exit_code, 2);
  EXPECT_THAT(redo.text, HasSubstr("it must not be empty"));
  const Outcome name = RunZeze({"redo", "send", "--store", (directory_ / "redo").string(),
                                "--queue", "q", "--server", "127.0.0.1:1", "--tls-name", "redo"});
  EXPECT_EQ(name.exit_code, 1);
  EXPECT_THAT(name.text,
              HasSubstr("--tls-name is set, but --tls-authorities (or --tls) is missing"));
}

TEST_F(CliTest, CheckSaysWhatHasNoEffect) {
  const std::string file = Write("zeze.xml", "<zeze History='h' OfflineTimerLimit='3'/>");
  const Outcome outcome = RunZeze({"config", "check", file});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("these settings have no effect in this version: OfflineTimerLimit of "
                              "<zeze>, History of <zeze>"),
                    HasSubstr("can be used; see the warnings")));
}

TEST_F(CliTest, CheckReportsEverythingWrongWithItsPlace) {
  const std::string file = Write(
      "zeze.xml", "<zeze ServerId='x'>\n  <TableConf CacheCapacty='1'/>\n  <Tables/>\n</zeze>");

  const Outcome outcome = RunZeze({"config", "check", file});

  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr(file + ":1:"), HasSubstr("\"x\" is not a whole number"),
                                  HasSubstr(file + ":2:"), HasSubstr("'CacheCapacity'?"),
                                  HasSubstr(file + ":3:"), HasSubstr("unknown element <Tables>")));
}

TEST_F(CliTest, WarningsAreErrorsOnlyIfAskedFor) {
  const std::string file = Write("zeze.xml", "<zeze serverid='1'/>");

  EXPECT_EQ(RunZeze({"config", "check", file}).exit_code, 0);
  EXPECT_EQ(RunZeze({"config", "check", file, "--strict"}).exit_code, 1);
}

TEST_F(CliTest, CheckKnowsTheTablesItIsTold) {
  const std::string file = Write("zeze.xml", "<zeze><TableConf Name='tOder'/></zeze>");

  const Outcome outcome = RunZeze({"config", "check", file, "--table", "Shop_Order_tOrder"});

  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("names no table"), HasSubstr("did you mean 'tOrder'?")));
}

TEST_F(CliTest, MissingOrMalformedFilesAreAnswered) {
  const Outcome missing = RunZeze({"config", "check", (directory_ / "no.xml").string()});
  const Outcome malformed =
      RunZeze({"config", "check", Write("bad.xml", "<zeze><TableConf></zeze>")});

  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.text, HasSubstr("cannot read"));
  EXPECT_EQ(malformed.exit_code, 1);
  EXPECT_THAT(malformed.text, HasSubstr("bad.xml:1:"));
}

TEST_F(CliTest, PrintShowsEffectiveValuesAndTheirSources) {
  const std::string file = Write("zeze.xml", "<zeze CheckpointPeriod='90000'/>");

  const Outcome outcome =
      RunZeze({"config", "print", file, "--set", "WorkerThreads=5"}, {{"ZEZE_SERVERID", "7"}});
  const Outcome without = RunZeze({"config", "print", file, "--no-environment", "--set-only"},
                                  {{"ZEZE_SERVERID", "7"}});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.text,
              AllOf(ContainsRegex("ServerId +7 +environment ZEZE_SERVERID"),
                    ContainsRegex("CheckpointPeriod +1m30s +.*zeze.xml:1:"),
                    ContainsRegex("WorkerThreads +5 +--set WorkerThreads"),
                    ContainsRegex("CriticalThreads +0 +default"),
                    HasSubstr("TableConf (default): keeps 100000 records in memory")));
  EXPECT_THAT(without.text, AllOf(Not(HasSubstr("ServerId")), HasSubstr("CheckpointPeriod")));
}

TEST_F(CliTest, ExplainKnowsEverySetting) {
  EXPECT_THAT(RunZeze({"config", "explain", "checkpointperiod"}).text,
              HasSubstr("how much a crash may lose"));
  EXPECT_THAT(RunZeze({"config", "explain"}).text, HasSubstr("<ServiceConf>"));
  const Outcome unknown = RunZeze({"config", "explain", "ServrId"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.text, HasSubstr("did you mean 'ServerId'?"));
}

TEST_F(CliTest, TheServiceManagerSaysWhyItDoesNotStart) {
  const std::string data = (directory_ / "data").string();
  const Outcome missing =
      RunZeze({"service-manager", "--config", (directory_ / "no.xml").string()});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.text, HasSubstr("no.xml"));

  const std::string wrong = Write(
      "wrong.xml",
      "<zeze><CustomizeConf Name='Zeze.Services.ServiceManager' KeepAlivePeriod='x'/></zeze>");
  const Outcome setting = RunZeze({"service-manager", "--config", wrong, "--data", data});
  EXPECT_EQ(setting.exit_code, 1);
  EXPECT_THAT(setting.text, AllOf(HasSubstr(wrong + ":1:"), HasSubstr("KeepAlivePeriod")));

  const std::string file = Write("file", "not a directory");
  const Outcome directory =
      RunZeze({"service-manager", "--ip", "127.0.0.1", "--port", "0", "--data", file});
  EXPECT_EQ(directory.exit_code, 1);
  EXPECT_THAT(directory.text, HasSubstr(file));

  const Outcome ip =
      RunZeze({"service-manager", "--ip", "203.0.113.1", "--port", "0", "--data", data});
  EXPECT_EQ(ip.exit_code, 1);
  EXPECT_THAT(ip.text, HasSubstr("no interface of this machine has this address"));

  const Outcome raise = RunZeze({"service-manager", "--raise-id", "order", "--data", data});
  EXPECT_EQ(raise.exit_code, 1);
  EXPECT_THAT(raise.text, HasSubstr("NAME=NUMBER"));
  EXPECT_EQ(RunZeze({"service-manager", "--recovery", "-5"}).exit_code, 2);
}

TEST_F(CliTest, ALinkdSaysWhyItDoesNotStart) {
  const std::string sids = (directory_ / "linkd.sids").string();
  const Outcome nobody = RunZeze({"linkd", "--sid-file", sids});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.text, HasSubstr("--token-keys"));

  const Outcome repeating = RunZeze({"linkd", "--insecure-accounts"});
  EXPECT_EQ(repeating.exit_code, 1);
  EXPECT_THAT(repeating.text, HasSubstr("--sid-file"));

  const std::string wrong =
      Write("wrong.xml", "<zeze><CustomizeConf Name='Zeze.Linkd' InFlght='5'/></zeze>");
  const Outcome setting = RunZeze({"linkd", "--config", wrong});
  EXPECT_EQ(setting.exit_code, 1);
  EXPECT_THAT(setting.text, AllOf(HasSubstr(wrong + ":1:"), HasSubstr("InFlight")));

  const Outcome keys = RunZeze({"linkd", "--sid-file", sids, "--token-keys", "/no.keys"});
  EXPECT_EQ(keys.exit_code, 2);
  EXPECT_THAT(keys.text, AllOf(HasSubstr("/no.keys"), Not(HasSubstr("operators"))));

  const Outcome override = RunZeze({"linkd", "--set", "service.LinkdServce.Port=1"});
  EXPECT_EQ(override.exit_code, 1);
  EXPECT_THAT(override.text, AllOf(HasSubstr("there is no service \"LinkdServce\""),
                                   HasSubstr("did you mean 'LinkdService'?")));
}

TEST_F(CliTest, SettingsOfLinkdThatCannotWorkAreRefused) {
  const auto linkd = [this](const std::string& services, const std::string& attributes) {
    const std::string file =
        Write("linkd.xml",
              "<zeze>" + services + "<CustomizeConf Name='Zeze.Linkd' " + attributes + "/></zeze>");
    const Outcome checked = RunZeze({"config", "check", file});
    const Outcome started = RunZeze({"linkd", "--config", file, "--insecure-accounts"});
    EXPECT_EQ(checked.exit_code, 1) << checked.text;
    EXPECT_EQ(started.exit_code, 1) << started.text;
    return checked.text + started.text;
  };
  EXPECT_THAT(linkd("", "ExemptAddresses='banana'"), HasSubstr("'banana' is no IP address"));
  EXPECT_THAT(linkd("", "ExemptAddresses='10.0.0.9, 10.0.0.0/8'"),
              HasSubstr("networks and names are not understood"));
  EXPECT_THAT(linkd("", "ServiceName=''"), HasSubstr("ServiceName: it must not be empty"));
  EXPECT_THAT(linkd("", "RequireTlsBinding='true'"),
              HasSubstr("refuses every client at port 10000"));
  EXPECT_THAT(linkd("<ServiceConf Name='LinkdService' EncryptType='3'/>", ""),
              HasSubstr("EncryptType: 3 needs the key of the server: set RsaPriKeyFile"));
}

TEST_F(CliTest, EveryCommandReadsTheFileThatTheEnvironmentNames) {
  const std::string wrong =
      Write("wrong.xml", "<zeze><CustomizeConf Name='Zeze.Linkd' InFlght='5'/></zeze>");
  const std::string fine = Write("fine.xml", "<zeze ServerId='3'/>");
  const Variables environment = {{"ZEZE_CONFIG", wrong}};
  EXPECT_THAT(RunZeze({"linkd"}, environment).text, HasSubstr(wrong + ":1:"));
  EXPECT_THAT(RunZeze({"config", "check"}, environment).text, HasSubstr(wrong + ":1:"));
  EXPECT_THAT(RunZeze({"config", "print"}, {{"ZEZE_CONFIG", fine}}).text,
              ContainsRegex("ServerId +3 +.*fine.xml:1:"));
  EXPECT_EQ(RunZeze({"config", "check", fine}, environment).text, fine + " is fine\n");
  const Variables missing = {{"ZEZE_CONFIG", (directory_ / "no.xml").string()}};
  for (const std::string command : {"linkd", "service-manager"}) {
    const Outcome refused = RunZeze({command}, missing);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.text, AllOf(HasSubstr("no.xml (ZEZE_CONFIG)"), Not(HasSubstr("RocksDB")),
                                    Not(HasSubstr("--no-config"))));
    // What the command line says wins.
    EXPECT_THAT(RunZeze({command, "--config", "/other.xml"}, missing).text,
                HasSubstr("there is no configuration file /other.xml (--config)"));
  }
}

TEST_F(CliTest, NumbersOutOfRangeAreRefusedWithAReadableRange) {
  const std::string url = "postgresql://127.0.0.1:1/none";
  const std::vector<std::vector<std::string>> commands = {
      {"global", "--database", url, "--shard", "-1"},
      {"global", "--database", url, "--silence", "-5"},
      {"global", "--database", url, "--silence", "0"},
      {"global", "--database", url, "--unfenced-wait", "-7"},
      {"global", "--database", url, "--approvals", "0"},
      {"global", "--database", url, "--lease", "0"},
      {"global", "--database", url, "--port", "99999"},
      {"global", "--database", url, "--cleanup-delay", "-1s"},
      {"global", "--database", url, "--fence-timeout", "0"},
      {"service-manager", "--offline-delay", "-1"},
      {"service-manager", "--recovery", "-1"},
      {"service-manager", "--keep-alive", "-1"},
      {"linkd", "--threads", "0"},
      {"linkd", "--metrics-port", "-1"},
      {"linkd", "token", "--key", "k", "--account", "a", "--seconds", "0"},
      {"admin", "cleanup", "-5", "--key", "k"},
      {"daemon", "--first-delay", "0", "--", "true"},
      {"daemon", "--delay-max", "0", "--", "true"},
      {"redo", "show", "--queue", "q", "--task", "-1"},
      {"redo", "show", "--queue", "q", "--count", "0"},
      {"redo", "skip", "--queue", "q", "--task", "0"},
      {"redo", "adopt", "--queue", "q", "--server", "h:1", "--first-new", "0"},
      {"redo", "compact", "--queue", "q", "--keep-max", "-1"}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = RunZeze(command);
    std::string line;
    for (const std::string& word : command) line += word + " ";
    EXPECT_EQ(outcome.exit_code, 2) << line << outcome.text;
    EXPECT_THAT(outcome.text, Not(HasSubstr("00000000000000000000"))) << line;
  }
}

TEST_F(CliTest, ALinkdSaysWhereItListens) {
  const std::string file =
      Write("linkd.xml",
            "<zeze><ServiceConf Name='LinkdService'><Acceptor Ip='127.0.0.1'/>"
            "<Websocket Ip='127.0.0.1' Port='0' Path='/game'/></ServiceConf>"
            "<ServiceConf Name='ProviderService'><Acceptor Ip='127.0.0.1'/></ServiceConf></zeze>");
  ServerProcess linkd({.command = {ZEZE_BINARY, "linkd", "--config", file, "--insecure-accounts",
                                   "--sid-file", (directory_ / "linkd.sids").string(),
                                   "--metrics-port", "0", "--metrics-ip", "0.0.0.0"}});
  ASSERT_TRUE(linkd.AwaitLine("WebSockets on port ", std::chrono::minutes(1))) << linkd.said();
  EXPECT_THAT(linkd.said(),
              AllOf(ContainsRegex("clients on port [1-9][0-9]*, servers on port [1-9][0-9]*, "
                                  "metrics on port [1-9][0-9]*, WebSockets on port [1-9]"),
                    HasSubstr("metrics: other machines can reach 0.0.0.0")));
}

TEST_F(CliTest, LinkdTokensAreSigned) {
  const std::string key = (directory_ / "accounts.key").string();
  ASSERT_EQ(RunZeze({"admin", "keygen", "--name", "accounts", "--out", key}).exit_code, 0);
  const Outcome first = RunZeze({"linkd", "token", "--key", key, "--account", "alice"});
  const Outcome second = RunZeze({"linkd", "token", "--key", key, "--account", "alice"});
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.text, ContainsRegex("^[0-9a-f]+\n$"));
  EXPECT_NE(first.text, second.text);
  EXPECT_EQ(RunZeze({"linkd", "token", "--account", "alice"}).exit_code, 2);
  EXPECT_EQ(RunZeze({"linkd", "token", "--key", key, "--account", ""}).exit_code, 2);
}

TEST_F(CliTest, LinkdTokensAreBoundToATlsConnectionOnRequest) {
  const std::string key = (directory_ / "accounts.key").string();
  ASSERT_EQ(RunZeze({"admin", "keygen", "--name", "accounts", "--out", key}).exit_code, 0);
  const std::string binding = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

  const Outcome bound =
      RunZeze({"linkd", "token", "--key", key, "--account", "alice", "--tls-binding", binding});
  EXPECT_EQ(bound.exit_code, 0);
  EXPECT_THAT(bound.text, HasSubstr(binding));

  for (const std::string& wrong : {binding.substr(2), binding.substr(1) + "x"}) {
    const Outcome refused =
        RunZeze({"linkd", "token", "--key", key, "--account", "alice", "--tls-binding", wrong});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.text, HasSubstr("64 hexadecimal digits"));
  }
}

TEST_F(CliTest, GenAnswersBadInput) {
  const Outcome outcome = RunZeze({"gen", Write("bad.xml", "<solution")});

  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("bad.xml"));
}

}  // namespace
}  // namespace zeze
