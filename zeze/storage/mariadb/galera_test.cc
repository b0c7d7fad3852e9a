// The suites on a Galera cluster of three nodes, each storage on another node.

#include <memory>

#include <gtest/gtest.h>

#include "zeze/storage/mariadb/mariadb_home_for_test.h"
#include "zeze/storage/testing/conformance.h"
#include "zeze/storage/testing/database_server.h"
#include "zeze/storage/testing/fence_conformance.h"

namespace zeze {
namespace {

INSTANTIATE_TEST_SUITE_P(Galera, StorageConformanceTest,
                         testing::Values(DriverUnderTest{
                             "galera",
                             [] { return std::make_unique<MariaDbHome>(SharedGaleraCluster()); }}),
                         DriverUnderTestName);

INSTANTIATE_TEST_SUITE_P(
    Galera, FenceConformanceTest,
    testing::Values(FencedDriver{
        "galera", [] { return std::make_unique<FencedMariaDbHome>(SharedGaleraCluster()); }}),
    FencedDriverName);

}  // namespace
}  // namespace zeze
