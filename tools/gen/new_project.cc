// The files of `zeze new`: small, complete, and worth reading as a first example.

#include <cstddef>
#include <map>
#include <string_view>

#include "tools/gen/skeleton.h"

namespace zeze::gen {
namespace {

constexpr std::string_view kSolution = R"(<?xml version="1.0" encoding="utf-8"?>
<!-- What @NAME@ stores and understands. C++ is generated from it when you build. -->
<solution name="@NAME@" ModuleIdAllowRanges="1-99">
  <module name="Greeting" id="1" handle="server" comment="Greets visitors and counts their visits.">
    <bean name="BVisitor"> What is stored about a visitor.
      <variable id="1" name="visits" type="int"/> How often they came.
      <variable id="2" name="names" type="list[string]"/> As they called themselves, latest last.
    </bean>
    <table name="tVisitor" key="string" value="BVisitor"/> By account.

    <bean name="BGreet">
      <variable id="1" name="account" type="string"/>
      <variable id="2" name="name" type="string"/>
    </bean>
    <bean name="BGreetResult">
      <variable id="1" name="visits" type="int"/>
    </bean>
    <rpc name="Greet" argument="BGreet" result="BGreetResult"> Counts a visit.
      <enum name="eNoAccount" value="1"/> The account is empty.
    </rpc>
  </module>

  <project name="@NAME@" platform="cxx">
    <service name="Server" handle="server">
      <module ref="Greeting"/>
    </service>
  </project>
</solution>
)";

constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

find_package(zeze 0.1 REQUIRED COMPONENTS app storage_rocksdb)

add_executable(@NAME@
  ModuleGreeting.cc
  main.cc
)
zeze_generate(TARGET @NAME@ SOLUTION solution.xml)
# The driver of the database that zeze.xml names.
target_link_libraries(@NAME@ PRIVATE zeze::storage_rocksdb)
)";

constexpr std::string_view kModuleHeader =
    R"(// ModuleGreeting: greets visitors and counts their visits.

#pragma once

#include "@NAME@/Greeting.module.h"

namespace @NAME@::Greeting {

class ModuleGreeting final : public ModuleGreetingBase {
 public:
  std::int64_t ProcessGreet(zeze::Transaction& tx, zeze::Session& session, const BGreet& argument,
                            BGreetResult& result) override;
};

}  // namespace @NAME@::Greeting
)";

constexpr std::string_view kModuleSource = R"(#include "ModuleGreeting.h"

#include "zeze/base/result_code.h"

namespace @NAME@::Greeting {

// Runs in a transaction: any result but kSuccess takes everything back, and a lost race runs it
// again. So it only touches its tables, its argument and its result.
std::int64_t ModuleGreeting::ProcessGreet(zeze::Transaction& tx, zeze::Session&,
                                          const BGreet& argument, BGreetResult& result) {
  if (argument.account.empty()) return ErrorCode(Greet::eNoAccount);
  auto visitor = tVisitor.GetOrAdd(tx, argument.account);
  visitor->visits += 1;
  visitor->names.PushBack(argument.name);
  result.visits = visitor->visits;
  return zeze::result_code::kSuccess;
}

}  // namespace @NAME@::Greeting
)";

constexpr std::string_view kMain =
    R"(// Counts the visits of whoever is named on the command line. The count is in the database:
// run it again, or kill it in between.

#include <iostream>
#include <string>
#include <vector>

#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/base/result_code.h"
#include "zeze/config/config.h"

#include "ModuleGreeting.h"

namespace {

int Fail(const zeze::Error& error) {
  std::cerr << error.message() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  // --config FILE, --set NAME=VALUE and the environment (ZEZE_...) reach the configuration.
  std::vector<std::string> arguments(argv, argv + argc);
  auto taken = zeze::TakeConfigArguments(arguments);
  if (!taken.ok()) return Fail(taken.error());
  auto config = zeze::Config::Load(taken.value().file, taken.value().options);
  if (!config.ok()) return Fail(config.error());
  auto options = zeze::OptionsFromConfig(config.value());
  if (!options.ok()) return Fail(options.error());

  // Modules outlive the application.
  @NAME@::Greeting::ModuleGreeting greeting;
  auto opened = zeze::Application::Open("@NAME@", options.value());
  if (!opened.ok()) return Fail(opened.error());
  zeze::Application& application = *opened.value();
  application.AddModule(greeting);
  if (auto started = application.Start(); !started.ok()) return Fail(started.error());

  const std::string name = arguments.size() > 1 ? arguments[1] : "you";
  zeze::LocalSession session(name);
  @NAME@::Greeting::BGreetResult result;
  const std::int64_t code = application.Call("greet", [&](zeze::Transaction& tx) {
    return greeting.ProcessGreet(tx, session, {.account = name, .name = name}, result);
  });
  if (code == zeze::result_code::kSuccess) {
    std::cout << "Hello " << name << ", visit number " << result.visits << ".\n";
  } else {
    std::cout << "The visit was not counted: result code " << code << ".\n";
  }

  if (auto stopped = application.Stop(); !stopped.ok()) return Fail(stopped.error());
  return code == zeze::result_code::kSuccess ? 0 : 1;
}
)";

constexpr std::string_view kConfig = R"(<?xml version="1.0" encoding="utf-8"?>
<!-- How this process runs. `zeze config check` checks it, `zeze config print` shows all values. -->
<zeze ServerId="0">
  <DatabaseConf DatabaseType="RocksDB" DatabaseUrl="db"/>
</zeze>
)";

constexpr std::string_view kReadme = R"(# @NAME@

    cmake -B build -G Ninja && cmake --build build
    build/@NAME@ ann      # Hello ann, visit number 1.
    build/@NAME@ ann      # Hello ann, visit number 2.

| file | what |
| --- | --- |
| `solution.xml` | tables, beans and protocols; C++ is generated from it into the build directory |
| `ModuleGreeting.h`, `.cc` | what the module does: yours, never touched by the generator |
| `main.cc` | starts and stops the application |
| `zeze.xml` | where data is stored, how many threads run |

To add something: write it into `solution.xml` and build. New rpcs are virtual functions of
`ModuleGreetingBase` (see `build/zeze_gen/@NAME@/@NAME@/Greeting.module.h`); override them.
Variables may be added and removed at any time; an id that was used once is not used again.
`zeze gen solution.xml --lock` keeps a list of them for you.
)";

constexpr std::string_view kIgnore = "/build/\n/db/\n";

std::string Fill(std::string_view text, const std::string& name) {
  constexpr std::string_view kPlaceholder = "@NAME@";
  std::string filled;
  for (;;) {
    const std::size_t at = text.find(kPlaceholder);
    filled += text.substr(0, at);
    if (at == std::string_view::npos) return filled;
    filled += name;
    text.remove_prefix(at + kPlaceholder.size());
  }
}

}  // namespace

std::map<std::string, std::string> NewProjectFiles(const std::string& name) {
  return {
      {".gitignore", std::string(kIgnore)},
      {"CMakeLists.txt", Fill(kCMake, name)},
      {"ModuleGreeting.cc", Fill(kModuleSource, name)},
      {"ModuleGreeting.h", Fill(kModuleHeader, name)},
      {"README.md", Fill(kReadme, name)},
      {"main.cc", Fill(kMain, name)},
      {"solution.xml", Fill(kSolution, name)},
      {"zeze.xml", Fill(kConfig, name)},
  };
}

}  // namespace zeze::gen
