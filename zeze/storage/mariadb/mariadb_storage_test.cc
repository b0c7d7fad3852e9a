#include "zeze/storage/mariadb/mariadb_storage.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "zeze/storage/mariadb/mariadb_home_for_test.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"

namespace zeze {
namespace {

// The second sends rows as MySQL understands them.
INSTANTIATE_TEST_SUITE_P(
    MariaDb, StorageConformanceTest,
    testing::Values(
        StorageDriver{"mariadb",
                      [] { return std::make_unique<MariaDbHome>(SharedMariaDbServer()); }},
        StorageDriver{"mariadb_text",
                      [] { return std::make_unique<MariaDbHome>(SharedMariaDbServer(), false); }}),
    StorageDriverName);

INSTANTIATE_TEST_SUITE_P(
    MariaDb, FenceConformanceTest,
    testing::Values(FencedDriver{
        "mariadb", [] { return std::make_unique<FencedMariaDbHome>(SharedMariaDbServer()); }}),
    FencedDriverName);

}  // namespace
}  // namespace zeze
