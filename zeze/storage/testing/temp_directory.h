// TempDirectory: a new empty directory that goes away with this object.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "zeze/base/check.h"

namespace zeze {

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zeze-test-XXXXXX").string();
    ZEZE_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }

  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace zeze
