#include "zeze/storage/storage_driver.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "zeze/base/mutex.h"
#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/base/url.h"
#include "zeze/storage/storage.h"

namespace zeze {
namespace {

// Function-local: drivers register before main(), in any order.
class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  void Add(const StorageDriver& driver) {
    const MutexLock lock(mutex_);
    drivers_.insert_or_assign(driver.name, driver);
  }

  template <typename Predicate>
  Result<StorageDriver> Find(Predicate fits, const std::string& what) {
    const MutexLock lock(mutex_);
    std::string names;
    for (const auto& [name, driver] : drivers_) {
      if (fits(driver)) return driver;
      names += (names.empty() ? "" : ", ") + name;
    }
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} is not built into this program, which has {}. Link the component "
                             "of its driver, or use another database.",
                             what, names.empty() ? "no driver of a database" : names));
  }

 private:
  Mutex mutex_;
  std::map<std::string, StorageDriver> drivers_ ZEZE_GUARDED_BY(mutex_);  // By name.
};

std::string_view WithoutJdbc(std::string_view url) {
  url = Trim(url);
  if (url.starts_with("jdbc:")) url.remove_prefix(5);
  return url;
}

}  // namespace

std::string StorageDriver::UrlOf(const std::string& place) const {
  const bool is_url = std::any_of(schemes.begin(), schemes.end(), [&](const std::string& scheme) {
    return place.starts_with(scheme + ":");
  });
  return shared || is_url ? place : schemes.front() + ":" + place;
}

void RegisterStorageDriver(const StorageDriver& driver) {
  Registry::Get().Add(driver);
}

Result<StorageDriver> FindStorageDriver(std::string_view url) {
  const std::string_view bare = WithoutJdbc(url);
  const std::string_view scheme = bare.substr(0, bare.find(':'));
  return Registry::Get().Find(
      [scheme](const StorageDriver& driver) {
        return std::find(driver.schemes.begin(), driver.schemes.end(), scheme) !=
               driver.schemes.end();
      },
      fmt::format("a driver for the database \"{}\"", MaskPasswords(url)));
}

Result<StorageDriver> FindStorageDriverByName(std::string_view name) {
  return Registry::Get().Find(
      [name](const StorageDriver& driver) { return EqualsIgnoreCase(driver.name, name); },
      fmt::format("DatabaseType {}", name));
}

Result<std::unique_ptr<Storage>> OpenStorage(const StorageAddress& address) {
  const Result<StorageDriver> driver = FindStorageDriver(address.url);
  if (!driver.ok()) return driver.error();
  return driver.value().open(address);
}

std::string_view StoragePlace(std::string_view url) {
  const std::string_view bare = WithoutJdbc(url);
  const std::size_t colon = bare.find(':');
  return colon == std::string_view::npos ? std::string_view() : bare.substr(colon + 1);
}

}  // namespace zeze
