#include "zeze/storage/sql/database_url.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace zeze {
namespace {

TEST(DatabaseUrlTest, ReadsTheFormOfJavaConfigurations) {
  const DatabaseUrl url =
      ParseDatabaseUrl("jdbc:mysql://10.0.0.1:3306/game?user=zeze&password=s%26e%3dt&x=1").value();

  EXPECT_EQ(url.scheme, "mysql");
  EXPECT_EQ(url.hosts, (std::vector<DatabaseHost>{{"10.0.0.1", 3306}}));
  EXPECT_EQ(url.database, "game");
  EXPECT_EQ(url.user, "zeze");
  EXPECT_EQ(url.password, "s&e=t");
  EXPECT_EQ(url.parameters, (std::map<std::string, std::string>{{"x", "1"}}));
}

TEST(DatabaseUrlTest, ReadsUserAndPasswordBeforeTheHost) {
  const DatabaseUrl url = ParseDatabaseUrl(" postgresql://me:p%40ss@db/game ").value();

  EXPECT_EQ(url.scheme, "postgresql");
  EXPECT_EQ(url.hosts, (std::vector<DatabaseHost>{{"db", 0}}));
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "p@ss");
}

TEST(DatabaseUrlTest, ReadsSeveralHosts) {
  const DatabaseUrl url = ParseDatabaseUrl("mariadb://a:1,b,[::1]:3,[::2]/d").value();

  EXPECT_EQ(url.hosts, (std::vector<DatabaseHost>{{"a", 1}, {"b", 0}, {"::1", 3}, {"::2", 0}}));
}

TEST(DatabaseUrlTest, SaysWhatIsWrongButNotThePassword) {
  for (const char* text :
       {"localhost/game?password=secret", "mysql:///game?password=secret",
        "mysql://me:secret@db:port/game", "mysql://me:secret@db:99999/game", ""}) {
    const Result<DatabaseUrl> url = ParseDatabaseUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(url.error().message().find("=secret&"), std::string::npos);
    EXPECT_EQ(url.error().message().find("me:secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace zeze
