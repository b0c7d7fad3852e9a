#include "zeze/storage/sql/table_name.h"

#include <string>

#include <gtest/gtest.h>

namespace zeze {
namespace {

TEST(TableNameTest, PlainWordsStandAsTheJavaPeerWritesThem) {
  EXPECT_EQ(SqlRelationName("demo_Game_tRole", kPostgresNames).value(), "demo_game_trole");
  EXPECT_EQ(SqlRelationName("demo_Game_tRole", kMariaDbNames).value(), "demo_Game_tRole");
  EXPECT_EQ(SqlRelationName("t", kPostgresNames).value(), "t");
}

TEST(TableNameTest, OtherNamesStandAsAHashThatNeverChanges) {
  EXPECT_EQ(SqlRelationName("\xe8\xa7\x92\xe8\x89\xb2", kPostgresNames).value(),
            "zeze_table_22e4962e9c8b4711");
  EXPECT_EQ(SqlRelationName("two words", kMariaDbNames).value(), "zeze_table_ccb500272bebfeac");
  for (const std::string& name : {std::string("7up"), std::string("a-b"), std::string(65, 'x'),
                                  std::string("zeze_table_0"), std::string("a\"b")}) {
    EXPECT_TRUE(SqlRelationName(name, kMariaDbNames).value().starts_with("zeze_table_")) << name;
  }
  EXPECT_EQ(SqlRelationName(std::string(63, 'x'), kPostgresNames).value(), std::string(63, 'x'));
}

TEST(TableNameTest, KeepsTheFrameworksNames) {
  for (const char* name :
       {"zeze_fence", "Zeze_Global", "_ZezeInstances_", "_ZEZEDATAWITHVERSION_", "zeze_session",
        "zeze_lease", "zeze_home", "zeze_wanted", "zeze_yield", "bad \xff utf8"}) {
    EXPECT_EQ(SqlRelationName(name, kPostgresNames).error().code(), ErrorCode::kInvalidArgument)
        << name;
  }
}

TEST(TableNameTest, BelievesACommentOnlyIfItCanBeTheName) {
  EXPECT_EQ(SqlTableName("demo_trole", "demo_tRole", kPostgresNames), "demo_tRole");
  EXPECT_EQ(SqlTableName("demo_trole", "the players of the game", kPostgresNames), "demo_trole");
  EXPECT_EQ(SqlTableName("demo_trole", "", kPostgresNames), "demo_trole");
}

}  // namespace
}  // namespace zeze
