// SchemaFixture: schemas as texts in tests, and what the generator says about them.

#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/gen/checker.h"
#include "tools/gen/reader.h"

namespace zeze::gen {

class SchemaFixture : public ::testing::Test {
 protected:
  SchemaFixture()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("zeze_gen_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SchemaFixture() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return Path(name);
  }

  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  // Without the folder, so that expectations name files as users know them.
  std::string Plain(std::string text) const {
    const std::string prefix = folder_.string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  // Everything the generator says about a file s.xml with this text.
  std::string Diagnose(const std::string& text) {
    Diagnostics diagnostics;
    model_ = Model();
    ReadModel({Write("s.xml", text)}, diagnostics, model_);
    CheckModel(model_, diagnostics);
    diagnostics.SortByLocation();
    return Plain(diagnostics.Format());
  }

  // The text as the inside of a module, starting in line 2.
  std::string InModule(const std::string& text) {
    return Diagnose(
        "<solution name='demo' ModuleIdAllowRanges='1-9'><module name='M' id='1' "
        "handle='server'>\n" +
        text + "\n</module></solution>");
  }
  // The text as the inside of a bean BTest, starting in line 2.
  std::string InBean(const std::string& text) {
    return Diagnose(
        "<solution name='demo' ModuleIdAllowRanges='1-9'><module name='M' id='1'>"
        "<bean name='BTest'>\n" +
        text + "\n</bean><bean name='BItem'/><beankey name='BKey'/></module></solution>");
  }

  std::filesystem::path folder_;
  Model model_;
};

}  // namespace zeze::gen
