// Schemas whose names are taken: by the language, by macros, by what the generator writes, and by
// each other. The generator refuses a schema with a sentence, or its code compiles.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/gen/generate.h"
#include "tools/gen/names.h"

namespace zeze::gen {
namespace {

const std::vector<std::string>& HostileNames() {
  static const std::vector<std::string> names = {
      // Members of generated structs and classes, and of their bases.
      "Encode", "Decode", "ToString", "HasNegative", "ForEachField", "kTypeId", "kFullName",
      "kIsKey", "Base", "kVersion", "unknown_fields", "Argument", "Result", "kModuleId",
      "kProtocolId", "kDescriptor", "id", "name", "Tables", "Handlers", "Start", "Stop",
      "ErrorCode", "MissingHandlers", "FindHandler", "kHandlers", "ModuleId", "FullName",
      "ModuleHostile", "ModuleHostileBase", "Module", "Project", "kServices", "kModules",
      // Parameters, locals and template parameters.
      "tx", "session", "argument", "result", "Visitor", "visit", "other", "key", "value", "Derived",
      "missing", "process", "table", "a", "b",
      // Types and namespaces of the library and of the standard library.
      "Field", "Table", "TableBase", "List", "Map", "Set", "Dynamic", "Choices", "Choice",
      "AnyBean", "Binary", "Decimal", "Vector2", "Transaction", "Session", "EmptyBean", "std",
      "zeze", "size_t", "int32_t", "string_view", "vector", "hash", "demo", "Hostile",
      // Macros.
      "errno", "EPERM", "EAGAIN", "SIGINT", "INT_MAX", "NULL", "EOF", "major", "minor", "linux",
      "unix", "SEEK_SET", "PATH_MAX", "assert", "NAN", "INFINITY", "BUFSIZ", "R_OK",
      // Names made from others.
      "ktX", "tX", "c", "c_enum", "set_c_enum", "Color", "ExtraDynamic", "extra", "ProcessBuy",
      "Buy", "BItem", "BKey", "kBuy"};
  return names;
}

// Words that only variables may have.
const std::vector<std::string>& Keywords() {
  static const std::vector<std::string> names = {"class", "new",   "operator", "this",  "template",
                                                 "base",  "out",   "in",       "const", "double",
                                                 "int",   "float", "delete",   "auto",  "co_await"};
  return names;
}

class Schema {
 public:
  explicit Schema(std::uint64_t seed) : random_(seed) {}

  std::string Make() {
    std::string text =
        "<solution name='demo' ModuleIdAllowRanges='1-9'>\n"
        "<module name='Hostile' id='1' handle='server'>\n";
    std::set<std::string> taken;
    std::vector<std::string> beans;
    while (beans.size() < 8) {
      std::string name = Fresh(taken);
      // Most of these are refused for a bean; one in a while is enough.
      if (random_() % 8 == 0 || !IsMember(name)) beans.push_back(std::move(name));
    }
    for (const std::string& bean : beans) text += Bean(bean, beans);
    const std::string key = Fresh(taken);
    text += "<beankey name='" + key + "'><variable id='1' name='" + Pick(HostileNames()) +
            "' type='int'/></beankey>\n";
    for (int i = 0; i < 6; ++i) {
      text += "<table name='" + Fresh(taken) + "' key='" + (i % 2 == 0 ? "long" : key) +
              "' value='" + Pick(beans) + "'/>\n";
    }
    for (int i = 0; i < 4; ++i) {
      std::string name = Fresh(taken);
      while (IsMember(name)) name = Fresh(taken);
      text += "<rpc name='" + name + "' argument='" + Pick(beans) + "' result='" + Pick(beans) +
              "'><enum name='" + Pick(HostileNames()) + "' value='1'/></rpc>\n";
    }
    for (int i = 0; i < 6; ++i) {
      text += "<enum name='" + Fresh(taken) + "' value='1'" +
              (i < 2 ? " group='" + Fresh(taken) + "'" : "") + "/>\n";
    }
    return text + "</module></solution>\n";
  }

 private:
  std::string Pick(const std::vector<std::string>& names) {
    return names[random_() % names.size()];
  }
  // A name that no other thing of the scope has, ignoring case.
  std::string Fresh(std::set<std::string>& taken, bool variable = false) {
    while (true) {
      std::string name = Pick(variable && random_() % 3 == 0 ? Keywords() : HostileNames());
      if (!variable && IsReservedWord(name)) continue;
      if (taken.insert(ToLower(name)).second) return name;
    }
  }

  static bool IsMember(const std::string& name) {
    const auto end = HostileNames().begin() + 16;
    return std::find(HostileNames().begin(), end, name) != end;
  }

  std::string Bean(const std::string& name, const std::vector<std::string>& beans) {
    static const std::vector<std::string> types = {
        "int", "string", "decimal", "list[int]", "map[int,string]", "dynamic", "vector2"};
    std::string text = "<bean name='" + name + "'>\n";
    std::set<std::string> taken;
    for (int id = 1; id <= 8; ++id) {
      const std::string type = id <= 4 ? Pick(types) : "list[" + Pick(beans) + "]";
      text += "  <variable id='" + std::to_string(id) + "' name='" + Fresh(taken, true) +
              "' type='" + type + "'/>\n";
    }
    const std::string group = Fresh(taken);
    text += "  <enum name='" + Fresh(taken) + "' value='1' group='" + group + "'/>\n";
    text +=
        "  <variable id='9' name='" + Fresh(taken, true) + "' type='int' enum='" + group + "'/>\n";
    text += "  <variable id='10' name='" + Fresh(taken, true) + "' type='dynamic'><value bean='" +
            beans[0] + ":1'/><value bean='" + beans[1] + ":2'/></variable>\n";
    return text + "</bean>\n";
  }

  std::mt19937_64 random_;
};

TEST(HostileNamesTest, AreRefusedWithASentenceOrCompile) {
  const char* said = std::getenv("ZEZE_HOSTILE_SCHEMAS");  // NOLINT(concurrency-mt-unsafe)
  const int wanted = said == nullptr ? 2 : std::atoi(said);
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "zeze_hostile_names";
  int compiled = 0;
  for (std::uint64_t seed = 1; compiled < wanted && seed < 10'000; ++seed) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string schema = Schema(seed).Make();
    const std::string file = (folder / "s.xml").string();
    std::ofstream(file) << schema;
    std::ostringstream out;
    std::ostringstream err;
    GenerateOptions options;
    options.solutions = {file};
    options.out = (folder / "out").string();
    if (Generate(options, out, err) != 0) {
      // Every refusal says where and what to do.
      EXPECT_THAT(err.str(), ::testing::ContainsRegex("s\\.xml:[0-9]+:[0-9]+: error: ")) << schema;
      EXPECT_THAT(err.str(), ::testing::HasSubstr("hint: rename ")) << schema;
      continue;
    }
    const std::string command =
        std::string(ZEZE_TEST_COMPILER) + " -std=c++20 -fsyntax-only -I" ZEZE_TEST_SOURCES " -I" +
        options.out + " " + options.out + "/shard_0.cc 2>&1 | head -30 >&2; exit ${PIPESTATUS[0]}";
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread.
    const int status = std::system(("bash -c '" + command + "'").c_str());
    EXPECT_EQ(status, 0) << "seed " << seed << "\n" << schema;
    if (::testing::Test::HasFailure()) return;  // The folder shows it.
    ++compiled;
  }
  EXPECT_EQ(compiled, wanted);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zeze::gen
