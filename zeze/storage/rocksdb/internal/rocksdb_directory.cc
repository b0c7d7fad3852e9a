#include "zeze/storage/rocksdb/internal/rocksdb_directory.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/types.h>
#include <unistd.h>

#include "zeze/base/result.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"

namespace zeze {
namespace {

namespace fs = std::filesystem;

// What RocksDB says when another DB object of the same process has the directory.
constexpr std::string_view kHeldByThisProcess = "lock hold by current process";

Error Unusable(ErrorCode code, const std::string& directory, std::string_view why) {
  return {code, fmt::format("cannot open the database directory '{}': {}", directory, why)};
}

Error FromSystem(const std::string& directory, std::string_view attempt,
                 const std::error_code& error) {
  const ErrorCode code =
      error == std::errc::not_a_directory ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
  return Unusable(code, directory,
                  fmt::format("{}: {}. Check the path and the rights of user id {}.", attempt,
                              error.message(), ::geteuid()));
}

// A file that RocksDB can leave behind when it is stopped while it makes a database.
bool MayBeOfRocksDb(const std::string& name) {
  const std::string_view view = name;
  return view == "LOCK" || view == "IDENTITY" || view == "lost+found" ||
         view == kRocksDbSpareFile || view.starts_with("LOG") || view.starts_with("MANIFEST-") ||
         view.starts_with("OPTIONS-") || view.ends_with(".log") || view.ends_with(".dbtmp") ||
         view.ends_with(".sst");
}

Result<void> CheckNoForeignFiles(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!MayBeOfRocksDb(name)) {
      return Unusable(ErrorCode::kInvalidArgument, directory,
                      fmt::format("it holds other files (for example '{}') and no database. Give a "
                                  "new or an empty directory.",
                                  name));
    }
  }
  if (error) return FromSystem(directory, "its files cannot be listed", error);
  return {};
}

// The process that holds the lock, 0 if it cannot be told (another machine, another container).
pid_t LockHolder(const std::string& lock_path) {
  const int file = ::open(lock_path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return 0;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(file);
  return known && lock.l_pid > 0 ? lock.l_pid : 0;
}

std::string ProcessName(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name.empty() ? "unknown program" : name;
}

}  // namespace

Result<RocksDbDirectory> PrepareRocksDbDirectory(const RocksDbOptions& options) {
  const std::string& directory = options.directory;
  if (directory.empty()) {
    return Unusable(ErrorCode::kInvalidArgument, directory, "no path was given");
  }
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (error && status.type() != fs::file_type::not_found) {
    return FromSystem(directory, "it cannot be looked at", error);
  }
  if (status.type() == fs::file_type::not_found) {
    if (!options.create_if_missing) {
      return Unusable(ErrorCode::kNotFound, directory,
                      "it does not exist. Check the path, or allow creating it.");
    }
    fs::create_directories(directory, error);
    if (error) return FromSystem(directory, "it cannot be created", error);
  } else if (status.type() != fs::file_type::directory) {
    return Unusable(ErrorCode::kInvalidArgument, directory, "it is not a directory");
  }

  RocksDbDirectory result;
  result.path = fs::canonical(directory, error).string();
  if (error) return FromSystem(directory, "its real path cannot be found", error);
  if (::access(result.path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return FromSystem(directory, "it cannot be read and written",
                      std::error_code(errno, std::generic_category()));
  }
  result.has_database = fs::exists(fs::path(result.path) / "CURRENT", error);
  if (!result.has_database) {
    if (!options.create_if_missing) {
      return Unusable(ErrorCode::kNotFound, directory,
                      "there is no database in it. Check the path, or allow creating one.");
    }
    if (Result<void> foreign = CheckNoForeignFiles(result.path); !foreign.ok()) {
      return foreign.error();
    }
  }
  return result;
}

bool IsRocksDbLockMessage(const std::string& message) {
  return message.find(kHeldByThisProcess) != std::string::npos ||
         message.find("While lock file") != std::string::npos;
}

Error RocksDbInUse(const std::string& path, const std::string& message) {
  // Never open the lock file when this process holds the lock: closing it again would give the
  // lock up (POSIX locks belong to the process, not to the descriptor).
  if (message.find(kHeldByThisProcess) != std::string::npos) {
    return Unusable(ErrorCode::kInUse, path,
                    "this process has it open already. Close that storage first, or use it.");
  }
  const pid_t holder = LockHolder(path + "/LOCK");
  if (holder == 0) {
    return Unusable(ErrorCode::kInUse, path,
                    "another process has it open. Stop that process, or choose another directory.");
  }
  return Unusable(ErrorCode::kInUse, path,
                  fmt::format("process {} ({}) has it open. Stop that process, or choose another "
                              "directory.",
                              holder, ProcessName(holder)));
}

}  // namespace zeze
