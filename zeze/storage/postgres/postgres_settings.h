// What libpq is told to connect by.

#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "zeze/base/result.h"
#include "zeze/storage/postgres/postgres_storage.h"

namespace zeze {

struct PostgresSession;

using PostgresSettings = std::vector<std::pair<std::string, std::string>>;  // Keyword, value.

// For one host of the address. libpq would look for one that takes writes itself, but would wait
// for one that does not answer for as long as for all. Errors: kInvalidArgument.
Result<PostgresSettings> ConnectSettings(const PostgresOptions& options,
                                         const PostgresSession& session, std::size_t host);

}  // namespace zeze
