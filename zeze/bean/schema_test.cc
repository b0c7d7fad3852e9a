#include "zeze/bean/schema.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeze/bean/testing/test_beans.h"

namespace zeze {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FieldSchema Variable(std::int32_t id, std::string name, std::string type, std::string key = "",
                     std::string value = "") {
  FieldSchema field;
  field.id = id;
  field.name = std::move(name);
  field.type = std::move(type);
  field.key = std::move(key);
  field.value = std::move(value);
  return field;
}

FieldSchema DynamicVariable(std::int32_t id, SortedMap<std::int64_t, std::string> choices) {
  FieldSchema field = Variable(id, "extra", "dynamic");
  field.choices = std::move(choices);
  return field;
}

BeanSchema Bean(std::string name, const std::vector<FieldSchema>& fields) {
  BeanSchema bean;
  bean.name = std::move(name);
  for (const FieldSchema& field : fields) bean.fields.Put(field.id, field);
  return bean;
}

// A database with the one table shop_tRole: long -> the first bean.
DatabaseSchema Database(std::vector<BeanSchema> beans, std::string key_type = "long",
                        std::int32_t version = 0) {
  TableSchema table;
  table.name = "shop_tRole";
  table.key_type = std::move(key_type);
  table.value_type = beans[0].name;
  table.version = version;
  for (BeanSchema& bean : beans) table.beans.Put(bean.name, bean);
  DatabaseSchema database;
  database.Add(table);
  return database;
}

// The problems when one variable of the table's bean changes.
std::vector<std::string> Change(FieldSchema from, FieldSchema to) {
  return CheckCompatible(Database({Bean("shop.BRole", {std::move(from)})}),
                         Database({Bean("shop.BRole", {std::move(to)})}));
}

std::vector<std::string> ChangeType(std::string_view from, std::string_view to) {
  return Change(Variable(1, "x", std::string(from)), Variable(1, "x", std::string(to)));
}

TEST(SchemaTest, DescribesEveryKindOfVariable) {
  const Schema schema = DescribeBean<testing::BRole>();
  EXPECT_EQ(schema.type, "test.BRole");
  const BeanSchema& role = schema.beans.Get("test.BRole");
  const auto type = [&](std::int32_t id) { return role.fields.Get(id).TypeText(); };

  EXPECT_EQ(type(1), "bool");
  EXPECT_EQ(type(2), "byte");
  EXPECT_EQ(type(3), "short");
  EXPECT_EQ(type(4), "int");
  EXPECT_EQ(type(5), "long");
  EXPECT_EQ(type(10), "decimal");
  EXPECT_EQ(type(12), "vector3int");
  EXPECT_EQ(type(13), "quaternion");
  EXPECT_EQ(type(14), "test.BItem");
  EXPECT_EQ(type(17), "list[test.BItem]");
  EXPECT_EQ(type(19), "set[test.BKey]");
  EXPECT_EQ(type(21), "map[test.BKey,string]");
  EXPECT_EQ(type(22), "sortedmap[string,long]");
  EXPECT_EQ(type(24), "gtable[int,int,string]");
  EXPECT_EQ(type(25), "dynamic");
  EXPECT_EQ(type(26), "list[dynamic]");
  EXPECT_EQ(type(27), "map[int,test.BRole]");
  EXPECT_EQ(type(30), "id128");
  EXPECT_TRUE(role.fields.Get(28).transient);
  EXPECT_EQ(role.fields.Get(25).choices.Get(-7), "test.BEmpty");
  EXPECT_TRUE(schema.beans.Get("test.BKey").is_key);
  EXPECT_EQ(schema.beans.size(), 4U);
  EXPECT_EQ(DescribeBean<testing::BDerived>().beans.Get("test.BDerived").base, "test.BBase");
}

TEST(SchemaTest, ComesBackFromItsBytes) {
  DatabaseSchema database;
  database.Add(DescribeTable<std::int64_t, testing::BRole>({.name = "tRole", .id = 7}));
  database.Add(DescribeTable<testing::BKey, testing::BItem>({.name = "tItem", .version = 2}));

  Result<DatabaseSchema> parsed = DatabaseSchema::Parse(database.Serialize());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_TRUE(parsed.value() == database);
  EXPECT_EQ(parsed.value().tables.Get("tItem").key_type, "test.BKey");
  EXPECT_FALSE(DatabaseSchema::Parse("\x13").ok());
}

TEST(SchemaCheckTest, TheSameSchemaIsCompatible) {
  DatabaseSchema database;
  database.Add(DescribeTable<testing::BKey, testing::BRole>({.name = "tRole"}));
  EXPECT_THAT(CheckCompatible(database, database), IsEmpty());
  EXPECT_THAT(CheckCompatible({}, database), IsEmpty());
  EXPECT_THAT(CheckCompatible(database, {}), IsEmpty());
}

TEST(SchemaCheckTest, TypesMayBecomeWider) {
  EXPECT_THAT(ChangeType("int", "double"), IsEmpty());
  EXPECT_THAT(ChangeType("string", "binary"), IsEmpty());
  EXPECT_THAT(ChangeType("decimal", "string"), IsEmpty());
  EXPECT_THAT(ChangeType("vector2", "quaternion"), IsEmpty());
  EXPECT_THAT(Change(Variable(1, "x", "map", "int", "int"),
                     Variable(1, "y", "sortedmap", "long", "double")),
              IsEmpty());
}

TEST(SchemaCheckTest, RefusesChangesThatDestroyValues) {
  EXPECT_THAT(
      ChangeType("long", "byte"),
      ElementsAre(
          "table shop_tRole: bean shop.BRole, variable 1 \"x\": its type changed from long "
          "to byte, which cannot hold every stored value. Keep long, or add a variable with "
          "a new id instead and convert the values in your program, or raise the version of "
          "the table to 1 (its stored rows are then set aside and it starts empty)."));
  EXPECT_THAT(ChangeType("long", "bool"), SizeIs(1));
  EXPECT_THAT(ChangeType("int", "float"),
              ElementsAre(HasSubstr("A stored int may be read as: int, long, double.")));
  EXPECT_THAT(ChangeType("string", "decimal"), SizeIs(1));
  EXPECT_THAT(
      Change(Variable(1, "x", "map", "long", "int"), Variable(1, "x", "map", "byte", "int")),
      ElementsAre(HasSubstr("from map[long,int] to map[byte,int]")));
}

TEST(SchemaCheckTest, ARemovedBaseIsRemembered) {
  const auto derived = [](std::string base) {
    BeanSchema bean = Bean("shop.BRole", {});
    bean.base = std::move(base);
    return bean;
  };
  const DatabaseSchema first =
      Database({derived("shop.BBase"), Bean("shop.BBase", {Variable(1, "a", "long")})});
  const DatabaseSchema without = MergeSchemas(first, Database({derived("")}));
  const DatabaseSchema other =
      Database({derived("shop.BOther"), Bean("shop.BOther", {Variable(1, "a", "string")})});
  EXPECT_THAT(CheckCompatible(without, other), ElementsAre(HasSubstr("from long to string")));
}

TEST(SchemaCheckTest, NamesTheVariableWhoseTypeChanged) {
  EXPECT_THAT(Change(Variable(4, "level", "int"), Variable(4, "rank", "string")),
              ElementsAre(AllOf(HasSubstr("table shop_tRole"), HasSubstr("bean shop.BRole"),
                                HasSubstr("variable 4 \"rank\""), HasSubstr("from int to string"),
                                HasSubstr("A stored int may be read as: int, long, double."),
                                HasSubstr("raise the version of the table to 1"))));
}

TEST(SchemaCheckTest, GroupsAreKeptApart) {
  const char* const types[] = {"int", "string", "vector2", "list",      "set",
                               "map", "gtable", "dynamic", "shop.BItem"};
  for (const char* from : types) {
    for (const char* to : types) {
      if (std::string_view(from) == to) continue;
      EXPECT_THAT(ChangeType(from, to), SizeIs(1)) << from << " to " << to;
    }
  }
}

TEST(SchemaCheckTest, ElementsAndKeysFollowTheSameRules) {
  EXPECT_THAT(Change(Variable(1, "x", "list", "", "int"), Variable(1, "x", "list", "", "string")),
              ElementsAre(HasSubstr("from list[int] to list[string]")));
  EXPECT_THAT(
      Change(Variable(1, "x", "map", "int", "int"), Variable(1, "x", "map", "string", "int")),
      ElementsAre(HasSubstr("from map[int,int] to map[string,int]")));
  EXPECT_THAT(Change(Variable(1, "x", "gtable", "int,int", "int"),
                     Variable(1, "x", "gtable", "int,string", "int")),
              SizeIs(1));
}

TEST(SchemaCheckTest, ReportsAllProblems) {
  const auto problems = CheckCompatible(
      Database({Bean("shop.BRole", {Variable(1, "a", "int"), Variable(2, "b", "shop.BItem"),
                                    Variable(3, "c", "list", "", "shop.BRole")}),
                Bean("shop.BItem", {Variable(1, "d", "float")})}),
      Database({Bean("shop.BRole", {Variable(1, "a", "set"), Variable(2, "b", "shop.BItem"),
                                    Variable(3, "c", "list", "", "shop.BRole")}),
                Bean("shop.BItem", {Variable(1, "d", "binary")})},
               "string"));
  EXPECT_THAT(problems, ElementsAre(HasSubstr("the type of its key changed from long to string"),
                                    HasSubstr("variable 1 \"a\""), HasSubstr("variable 1 \"d\"")));
}

TEST(SchemaCheckTest, ARemovedIdIsRememberedAndComesBackOnlyCompatibly) {
  const DatabaseSchema first =
      Database({Bean("shop.BRole", {Variable(1, "a", "int"), Variable(2, "gold", "int")})});
  const DatabaseSchema second = Database({Bean("shop.BRole", {Variable(1, "a", "int")})});
  EXPECT_THAT(CheckCompatible(first, second), IsEmpty());
  // Kept over several starts.
  DatabaseSchema stored = MergeSchemas(MergeSchemas(first, second), second);
  stored = DatabaseSchema::Parse(stored.Serialize()).value();
  EXPECT_TRUE(stored.tables.Get("shop_tRole").beans.Get("shop.BRole").fields.Get(2).removed);

  const DatabaseSchema wrong =
      Database({Bean("shop.BRole", {Variable(1, "a", "int"), Variable(2, "title", "string")})});
  EXPECT_THAT(CheckCompatible(stored, wrong),
              ElementsAre(AllOf(HasSubstr("variable 2 \"title\""), HasSubstr("\"gold\""),
                                HasSubstr("of type int"), HasSubstr("never used"))));
  const DatabaseSchema right =
      Database({Bean("shop.BRole", {Variable(1, "a", "int"), Variable(2, "rank", "long")})});
  EXPECT_THAT(CheckCompatible(stored, right), IsEmpty());
  EXPECT_THAT(CheckCompatible(stored, right, {.forbid_reuse_of_removed_ids = true}), SizeIs(1));
}

TEST(SchemaCheckTest, ARenamedBeanIsFollowed) {
  const DatabaseSchema first =
      Database({Bean("shop.BOld", {Variable(1, "a", "int"), Variable(2, "gold", "long")})});
  const DatabaseSchema renamed = Database({Bean("shop.BNew", {Variable(1, "a", "int")})});
  EXPECT_THAT(CheckCompatible(first, renamed), IsEmpty());
  const DatabaseSchema wrong =
      Database({Bean("shop.BNew", {Variable(1, "a", "int"), Variable(2, "x", "list", "", "int")})});
  EXPECT_THAT(CheckCompatible(MergeSchemas(first, renamed), wrong),
              ElementsAre(HasSubstr("shop.BNew")));
}

TEST(SchemaCheckTest, ABeanKeyInUseKeepsItsVariables) {
  const BeanSchema full =
      Bean("shop.BKey", {Variable(1, "id", "int"), Variable(2, "name", "string")});
  const BeanSchema less = Bean("shop.BKey", {Variable(1, "id", "int")});
  const BeanSchema more =
      Bean("shop.BKey",
           {Variable(1, "id", "long"), Variable(2, "name", "binary"), Variable(3, "world", "int")});
  const auto lost = AllOf(HasSubstr("beankey shop.BKey lost variable 2 \"name\" (string)"),
                          HasSubstr("Put the variable back"));
  const auto keyed = [](const BeanSchema& key) {
    return Database({Bean("shop.BRole", {}), key}, "shop.BKey");
  };
  const auto holding = [](const BeanSchema& key, FieldSchema field) {
    return Database({Bean("shop.BRole", {std::move(field)}), key});
  };
  const FieldSchema map = Variable(1, "m", "map", "shop.BKey", "int");
  const FieldSchema set = Variable(1, "s", "set", "", "shop.BKey");
  const FieldSchema plain = Variable(1, "p", "shop.BKey");

  EXPECT_THAT(CheckCompatible(keyed(full), keyed(less)), ElementsAre(lost));
  EXPECT_THAT(CheckCompatible(holding(full, map), holding(less, map)), ElementsAre(lost));
  EXPECT_THAT(CheckCompatible(holding(full, set), holding(less, set)), ElementsAre(lost));
  EXPECT_THAT(CheckCompatible(holding(full, plain), holding(less, plain)), IsEmpty());
  EXPECT_THAT(CheckCompatible(keyed(full), keyed(more)), IsEmpty());
  EXPECT_THAT(CheckCompatible(keyed(more), keyed(full)), SizeIs(3));  // Two narrower, and one lost.
}

TEST(SchemaCheckTest, TableKeysKeepTheirBytes) {
  const auto change = [](std::string from, std::string to) {
    return CheckCompatible(Database({Bean("shop.BRole", {})}, std::move(from)),
                           Database({Bean("shop.BRole", {})}, std::move(to)));
  };
  EXPECT_THAT(change("int", "long"), IsEmpty());
  EXPECT_THAT(change("bool", "byte"), IsEmpty());
  EXPECT_THAT(change("string", "binary"), IsEmpty());
  EXPECT_THAT(change("long", "int"), ElementsAre(HasSubstr("only become wider")));
  EXPECT_THAT(change("int", "float"), SizeIs(1));
  EXPECT_THAT(change("float", "double"), SizeIs(1));
  EXPECT_THAT(change("string", "decimal"), SizeIs(1));
}

TEST(SchemaCheckTest, ChoicesOfADynamicAreAddedOnly) {
  const auto change = [](SortedMap<std::int64_t, std::string> from,
                         SortedMap<std::int64_t, std::string> to) {
    return Change(DynamicVariable(1, std::move(from)), DynamicVariable(1, std::move(to)));
  };
  EXPECT_THAT(change({{1, "A"}}, {{1, "A"}, {2, "B"}}), IsEmpty());
  EXPECT_THAT(change({{1, "A"}, {2, "B"}}, {{1, "A"}}),
              ElementsAre(HasSubstr("lost its choice 2 (B)")));
  EXPECT_THAT(change({{1, "A"}}, {{1, "B"}}), ElementsAre(HasSubstr("changed from A to B")));
}

TEST(SchemaCheckTest, TheVersionOfATableGoesUpOnly) {
  const BeanSchema old_bean = Bean("shop.BRole", {Variable(1, "a", "int")});
  const BeanSchema new_bean = Bean("shop.BRole", {Variable(1, "a", "string")});
  EXPECT_THAT(CheckCompatible(Database({old_bean}, "long", 2), Database({old_bean}, "long", 1)),
              ElementsAre(HasSubstr("went back from 2 to 1")));
  // Higher: the old rows are set aside, so nothing of them is remembered either.
  const DatabaseSchema raised = Database({new_bean}, "string", 3);
  EXPECT_THAT(CheckCompatible(Database({old_bean}, "long", 2), raised), IsEmpty());
  EXPECT_TRUE(MergeSchemas(Database({old_bean}, "long", 2), raised) == raised);
}

TEST(SchemaCheckTest, TransientVariablesAreNotCompared) {
  FieldSchema transient = Variable(1, "a", "string");
  transient.transient = true;
  EXPECT_THAT(Change(Variable(1, "a", "int"), transient), IsEmpty());
  EXPECT_THAT(Change(transient, Variable(1, "a", "int")), IsEmpty());
  // But what the rows have is remembered.
  const DatabaseSchema merged =
      MergeSchemas(Database({Bean("shop.BRole", {Variable(1, "a", "int")})}),
                   Database({Bean("shop.BRole", {transient})}));
  EXPECT_THAT(CheckCompatible(merged, Database({Bean("shop.BRole", {Variable(1, "a", "string")})})),
              SizeIs(1));
}

TEST(SchemaCheckTest, MemoryTablesAndThoseWithoutSchemaAreLeftOut) {
  DatabaseSchema stored = Database({Bean("shop.BRole", {Variable(1, "a", "int")})});
  for (const bool memory : {true, false}) {
    DatabaseSchema current = Database({Bean("shop.BRole", {Variable(1, "a", "list")})});
    current.tables.Update("shop_tRole", [&](TableSchema& table) {
      (memory ? table.memory : table.no_schema) = true;
    });
    EXPECT_THAT(CheckCompatible(stored, current), IsEmpty());
    EXPECT_TRUE(MergeSchemas(stored, current) == stored);
  }
}

TEST(SchemaCheckTest, ATableThatComesBackIsComparedWithItsRows) {
  const DatabaseSchema first = Database({Bean("shop.BRole", {Variable(1, "a", "int")})});
  const DatabaseSchema without = MergeSchemas(first, {});
  EXPECT_THAT(CheckCompatible(without, Database({Bean("shop.BRole", {Variable(1, "a", "map")})})),
              SizeIs(1));
}

TEST(SchemaCheckTest, RecursiveBeansEnd) {
  DatabaseSchema database;
  database.Add(DescribeTable<std::int32_t, testing::BRole>({.name = "tRole"}));
  EXPECT_TRUE(MergeSchemas(database, database) == database);
}

}  // namespace
}  // namespace zeze
