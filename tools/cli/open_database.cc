#include "tools/cli/open_database.h"

#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/base/url.h"
#include "zeze/storage/mariadb/mariadb_home.h"
#include "zeze/storage/mariadb/mariadb_storage.h"
#include "zeze/storage/postgres/postgres_home.h"
#include "zeze/storage/postgres/postgres_storage.h"
#include "zeze/storage/sql/database_home.h"
#include "zeze/storage/storage.h"

namespace zeze::cli {
namespace {

Error NoDriver(const std::string& url) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("no driver for the database \"{}\": its address begins with postgresql:// or "
                      "mysql://",
                      MaskPasswords(url))};
}

}  // namespace

Result<std::unique_ptr<Storage>> OpenDatabase(const std::string& url) {
  std::string_view scheme = url;
  if (scheme.starts_with("jdbc:")) scheme.remove_prefix(5);
  if (scheme.starts_with("postgresql:") || scheme.starts_with("postgres:")) {
    return OpenPostgresStorage({.url = url});
  }
  if (scheme.starts_with("mysql:") || scheme.starts_with("mariadb:")) {
    return OpenMariaDbStorage({.url = url});
  }
  return NoDriver(url);
}

Result<std::unique_ptr<DatabaseHome>> OpenDatabaseHome(const std::string& url) {
  std::string_view scheme = url;
  if (scheme.starts_with("jdbc:")) scheme.remove_prefix(5);
  if (scheme.starts_with("postgresql:") || scheme.starts_with("postgres:")) {
    return OpenPostgresHome({.url = url});
  }
  if (scheme.starts_with("mysql:") || scheme.starts_with("mariadb:")) {
    return OpenMariaDbHome({.url = url});
  }
  return NoDriver(url);
}

}  // namespace zeze::cli
