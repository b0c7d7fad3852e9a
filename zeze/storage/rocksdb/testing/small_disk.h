// SmallDisk: a file system of a few megabytes that can be filled up, for tests of full disks.

#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/storage/testing/temp_directory.h"

namespace zeze {

// A tmpfs, so only root can have one: ask mounted() and skip the test otherwise.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& options) {
    mounted_ = ::mount("tmpfs", place_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) why_not_ = std::generic_category().message(errno);
  }

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  ~SmallDisk() {
    if (mounted_) ::umount2(place_.path().c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }
  const std::string& why_not() const { return why_not_; }
  std::string File(const std::string& name) const { return place_.File(name); }

  bool MakeReadOnly() {
    return ::mount("tmpfs", place_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

  std::size_t FreeBytes() const {
    struct statvfs info = {};
    ZEZE_CHECK(::statvfs(place_.path().c_str(), &info) == 0);
    return info.f_bavail * info.f_bsize;
  }

  // Takes room away, all but `free_bytes` of it, until GiveBack.
  void Fill(std::size_t free_bytes) const {
    const std::size_t free_now = FreeBytes();
    if (free_now <= free_bytes) return;
    const int file = ::open(File("ballast").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ZEZE_CHECK(file >= 0);
    const int failed = ::posix_fallocate(file, 0, static_cast<off_t>(free_now - free_bytes));
    ::close(file);
    ZEZE_CHECK(failed == 0);
  }

  void GiveBack() const { ::unlink(File("ballast").c_str()); }

 private:
  const TempDirectory place_;
  bool mounted_ = false;
  std::string why_not_;
};

}  // namespace zeze
