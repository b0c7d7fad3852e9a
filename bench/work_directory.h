// WorkDirectory: a new directory below another one, gone with this object.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace zeze::bench {

class WorkDirectory {
 public:
  explicit WorkDirectory(const std::string& parent) : path_(parent + "/zeze-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make a directory in " + parent +
                               ": pass --directory with one that is writable");
    }
  }
  ~WorkDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace zeze::bench
