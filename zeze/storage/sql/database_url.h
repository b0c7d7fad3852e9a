// DatabaseUrl: the parts of a database's address, in the forms that configuration files use.
//
//   ParseDatabaseUrl("jdbc:postgresql://db1:5432,db2/game?user=zeze&password=s%26cret").value()
//   ParseDatabaseUrl("mysql://zeze:secret@10.0.0.1:3306/game").value()

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeze/base/result.h"

namespace zeze {

struct DatabaseHost {
  std::string name;
  std::uint16_t port = 0;  // 0: the engine's own.

  bool operator==(const DatabaseHost&) const = default;
};

struct DatabaseUrl {
  std::string scheme;  // "postgresql", "mysql", ...: without "jdbc:".
  std::vector<DatabaseHost> hosts;
  std::string database;
  std::string user;
  std::string password;
  std::map<std::string, std::string> parameters;  // Behind the "?", but user and password.
};

// %XX is decoded. Errors: kInvalidArgument, without the password in the message.
Result<DatabaseUrl> ParseDatabaseUrl(std::string_view url);

}  // namespace zeze
