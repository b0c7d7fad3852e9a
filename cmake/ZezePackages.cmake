# The libraries of others that layers link, as find_package() takes them: to build zeze, and for
# whoever uses it. Their targets begin with the package's name.
set(zeze_packages
  "Threads"
  "fmt 9 CONFIG"
  "spdlog 1.10 CONFIG"
  "pugixml CONFIG"
  "Boost 1.81"
  "absl CONFIG"
  "OpenSSL 3.0"
  "zstd 1.5 CONFIG"
  "RocksDB 7.8 CONFIG"
  "PostgreSQL 15"
  "PkgConfig")
# What comes through PkgConfig, as pkg_check_modules() takes it.
set(zeze_modules "MariaDB REQUIRED IMPORTED_TARGET libmariadb")
