#include "tests/cluster/test_host.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "zeze/storage/testing/server_process.h"

namespace zeze::cluster {
namespace {

// Nobody has this hardware address, so what is sent to it is lost.
constexpr const char* kNobody = "02:00:00:00:ff:ff";

// Empty if it is not there. EnterTestNetwork has looked for all that are used here.
std::string Program(const std::string& name) {
  return FindProgram({name, "/usr/sbin/" + name, "/sbin/" + name});
}

// Without its network no test makes sense.
void MustRun(const std::vector<std::string>& command) {
  const ProgramResult result = RunProgram({.command = command});
  if (result.exit_code == 0) return;
  std::fprintf(stderr, "'%s' failed with %d: %s\n",
               fmt::format("{}", fmt::join(command, " ")).c_str(), result.exit_code,
               result.said.c_str());
  std::abort();
}

// `ip` and its arguments.
std::vector<std::string> Ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), Program("ip"));
  return arguments;
}

int NextCableNumber() {
  static int last = 0;
  return ++last;
}

}  // namespace

std::string EnterTestNetwork() {
  static bool entered = false;
  if (entered) return "";
  for (const char* name : {"ip", "nsenter", "unshare", "sh"}) {
    if (Program(name).empty()) {
      return fmt::format("there is no program '{}' (packages iproute2, util-linux)", name);
    }
  }
  if (::unshare(CLONE_NEWNET) != 0) {
    return fmt::format("this user may not make a network namespace: {}", std::strerror(errno));
  }
  MustRun(Ip({"link", "set", "lo", "up"}));
  entered = true;
  return "";
}

TestHost::TestHost()
    : holder_({.command = {Program("unshare"), "--net", Program("sh"), "-c",
                           "echo ready; exec sleep infinity"},
               .end_signal = SIGKILL}) {
  holder_.AwaitLine("ready", std::chrono::minutes(1));
  MustRun(Inside(Ip({"link", "set", "lo", "up"})));
}

std::vector<std::string> TestHost::Inside(const std::vector<std::string>& command) const {
  std::vector<std::string> inside = {Program("nsenter"),
                                     fmt::format("--net=/proc/{}/ns/net", holder_.id())};
  inside.insert(inside.end(), command.begin(), command.end());
  return inside;
}

Cable::Cable(TestHost& host, const std::string& name) : Cable(host, name, NextCableNumber()) {}

Cable::Cable(TestHost& host, const std::string& name, int number)
    : host_(host),
      far_device_(name),
      near_device_(fmt::format("cable{}", number)),
      near_address_(fmt::format("10.0.{}.1", number)),
      far_address_(fmt::format("10.0.{}.2", number)) {
  MustRun(Ip({"link", "add", near_device_, "type", "veth", "peer", "name", far_device_, "netns",
              std::to_string(host_.holder_.id())}));
  MustRun(Ip({"address", "add", near_address_ + "/30", "dev", near_device_}));
  MustRun(Ip({"link", "set", near_device_, "up"}));
  MustRun(host_.Inside(Ip({"address", "add", far_address_ + "/30", "dev", far_device_})));
  MustRun(host_.Inside(Ip({"link", "set", far_device_, "up"})));
}

Cable::~Cable() {
  MustRun(Ip({"link", "delete", near_device_}));
}

void Cable::Drop(Direction direction) {
  if (direction != Direction::kOut) {
    MustRun(Ip({"neighbour", "replace", far_address_, "lladdr", kNobody, "dev", near_device_, "nud",
                "permanent"}));
  }
  if (direction != Direction::kIn) {
    MustRun(host_.Inside(Ip({"neighbour", "replace", near_address_, "lladdr", kNobody, "dev",
                             far_device_, "nud", "permanent"})));
  }
}

void Cable::Heal() {
  // What was learnt anew is forgotten, too; that costs one question.
  MustRun(Ip({"neighbour", "flush", "dev", near_device_, "nud", "all"}));
  MustRun(host_.Inside(Ip({"neighbour", "flush", "dev", far_device_, "nud", "all"})));
}

}  // namespace zeze::cluster
