// What tests of mixed clusters share: the programs of the Java peer, and what programs say.
//
// ZEZE_INTEROP_JAVA is the command that runs a Java program of this test, words separated by
// spaces, to which the name of its class is added (./dev interop sets it). Without it C++ programs
// that speak as Zeze 1.6 does stand in where there are any, which shows nothing about the Java peer
// itself.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/storage/testing/server_process.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze::interop {

inline constexpr auto kPatience = std::chrono::minutes(2);

inline const char* JavaCommand() {
  return std::getenv("ZEZE_INTEROP_JAVA");  // NOLINT(concurrency-mt-unsafe)
}

// The number after a text at the end of what a process said.
inline std::int64_t Said(const ServerProcess& process, const std::string& text) {
  const std::string said = process.said();
  const std::size_t at = said.rfind(text + " ");
  EXPECT_NE(std::string::npos, at) << text << " is not in " << said;
  return at == std::string::npos ? -1 : std::stoll(said.substr(at + text.size() + 1));
}

class InteropFixture : public ::testing::Test {
 protected:
  // A program of the peer; what it writes goes into a directory of its own.
  std::vector<std::string> Java(const std::string& program) {
    const std::string place = directory_.File("java-" + std::to_string(++places_));
    std::filesystem::create_directory(place);
    std::vector<std::string> command = {"/usr/bin/env", "-C", place};
    std::istringstream words(JavaCommand());
    for (std::string word; words >> word;) command.push_back(word);
    command.push_back("interop." + program);
    return command;
  }

  static std::unique_ptr<ServerProcess> Run(const std::vector<std::string>& command) {
    return std::make_unique<ServerProcess>(ServerProcessOptions{.command = command});
  }

  static std::unique_ptr<ServerProcess> Listen(const std::vector<std::string>& command, int& port,
                                               const std::string& line = "listening on port") {
    std::unique_ptr<ServerProcess> process = Run(command);
    EXPECT_TRUE(process->AwaitLine(line, kPatience)) << process->said();
    port = static_cast<int>(Said(*process, line));
    return process;
  }

  void StartRegistry(bool of_peer) {
    registry_ = Listen(of_peer ? Java("PeerRegistry")
                               : std::vector<std::string>{ZEZE_BINARY, "service-manager", "--data",
                                                          directory_.File("registry"), "--ip",
                                                          "127.0.0.1", "--port", "0"},
                       registry_port_);
  }

  // Ours. The Java server gives its rights up by itself after 8 s of silence; stand-ins that are
  // stopped are gone immediately. The file killed-ID says that this server does not run any more.
  void StartGlobal(const std::string& database) {
    global_ =
        Listen({ZEZE_BINARY, "global", "--database", database, "--ip", "127.0.0.1", "--port", "0",
                "--unfenced-wait", JavaCommand() != nullptr ? "15000" : "1000", "--fence-command",
                "test -e " + directory_.path() + "/killed-$ZEZE_SERVER_ID"},
               global_port_);
    ASSERT_TRUE(global_->AwaitLine("serves", kPatience)) << global_->said();
  }

  // The file appears with all of its content.
  void Tell(const std::string& what, const std::string& content = "now") {
    std::ofstream(directory_.File(".told")) << content;
    std::filesystem::rename(directory_.File(".told"), directory_.File(what));
  }

  TempDirectory directory_;
  int places_ = 0;
  int registry_port_ = 0;
  std::unique_ptr<ServerProcess> registry_;
  int global_port_ = 0;
  std::unique_ptr<ServerProcess> global_;
};

}  // namespace zeze::interop
