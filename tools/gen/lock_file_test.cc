#include "tools/gen/lock_file.h"

#include <string>

#include "tools/gen/model.h"
#include "tools/gen/testing/schema_fixture.h"

namespace zeze::gen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LockFileTest : public SchemaFixture {
 protected:
  // Locks the first schema, then says what it has against the second.
  std::string Change(const std::string& before, const std::string& after) {
    EXPECT_EQ(InModule(before), "");
    const std::string locked = LockFile::Of(model_).Format();
    return Advance(locked, after);
  }
  std::string Advance(const std::string& locked, const std::string& after) {
    InModule(after);
    Diagnostics diagnostics;
    const LockFile lock = LockFile::Parse(locked, "s.lock", diagnostics);
    next_ = lock.Advance(model_, diagnostics).Format();
    return Plain(diagnostics.Format());
  }
  static std::string Bean(const std::string& inside) {
    return "<bean name='BA'>\n" + inside + "</bean>";
  }

  std::string next_;
};

TEST_F(LockFileTest, ReadsWhatItWrote) {
  const std::string schema = Bean("<variable id='1' name='a' type='map[int,BA]'/>") +
                             "<table name='t' key='int' value='BA'/><rpc name='R'/>";
  EXPECT_EQ(Change(schema, schema), "");
  EXPECT_EQ(next_, LockFile::Of(model_).Format());
  EXPECT_THAT(next_, HasSubstr("  1 map[int,bean] a\n"));
  EXPECT_THAT(next_, HasSubstr("\ntable demo.M.t "));
  EXPECT_THAT(next_, HasSubstr(" demo_M_t\n"));
}

TEST_F(LockFileTest, RemembersDeletedVariablesAndRefusesTheirIds) {
  EXPECT_EQ(Change(Bean("<variable id='1' name='a' type='int'/><variable id='2' name='b' "
                        "type='int'/>"),
                   Bean("<variable id='1' name='a' type='int'/>")),
            "");
  EXPECT_THAT(next_, HasSubstr("  deleted 2 int b\n"));
  const std::string locked = next_;
  EXPECT_THAT(
      Advance(locked, Bean("<variable id='2' name='c' type='int'/>")),
      HasSubstr("s.xml:3:1: error: variable 'c' of 'demo.M.BA' uses id 2, which belonged to "
                "the deleted 'b' (int)\n"
                "  hint: records may still hold the old value; the next free id is 3"));
  EXPECT_EQ(Advance(locked, Bean("<variable id='1' name='a' type='int'/>"
                                 "<variable id='2' name='b' type='int'/>")),
            "");
}

TEST_F(LockFileTest, RefusesTypesThatStoredDataDoesNotHave) {
  const auto change = [&](const std::string& from, const std::string& to) {
    return Change(Bean("<variable id='1' name='a' type='" + from + "'/>"),
                  Bean("<variable id='1' name='a' type='" + to + "'/>"));
  };
  EXPECT_THAT(change("int", "string"),
              HasSubstr("variable 1 'a' of 'demo.M.BA' was int and is string now"));
  EXPECT_THAT(change("map[int,int]", "map[string,int]"),
              HasSubstr("which cannot hold every stored value"));
  EXPECT_THAT(change("long", "byte"), HasSubstr("which cannot hold every stored value"));
  EXPECT_THAT(change("map[long,int]", "map[byte,int]"), HasSubstr("was map[long,int]"));
  EXPECT_THAT(change("string", "decimal"), HasSubstr("was string and is decimal now"));
  // As at the start of a server.
  EXPECT_THAT(change("set[int]", "list[int]"), HasSubstr("was set[int] and is list[int] now"));
  EXPECT_THAT(change("list[int]", "set[int]"), HasSubstr("was list[int] and is set[int] now"));
  EXPECT_THAT(change("list[int]", "int"), HasSubstr("was list[int] and is int now"));
  EXPECT_EQ(change("list[int]", "array[long]"), "");
  EXPECT_EQ(change("int", "long"), "");
  EXPECT_EQ(change("string", "binary"), "");
  EXPECT_EQ(change("map[int,BA]", "sortedmap[long,BA]"), "");
}

TEST_F(LockFileTest, TakesAChangedNameAsARename) {
  EXPECT_THAT(Change(Bean("<variable id='1' name='a' type='int'/>"),
                     Bean("<variable id='1' name='b' type='int'/>")),
              HasSubstr("note: variable 1 of 'demo.M.BA' was 'a' and is 'b' now"));
}

TEST_F(LockFileTest, AsksAboutTablesThatLookRenamed) {
  const std::string bean = "<bean name='BA'/>";
  EXPECT_THAT(Change(bean + "<table name='tOld' key='int' value='BA'/>",
                     bean + "<table name='tNew' key='int' value='BA'/>"),
              HasSubstr("warning: table 'demo.M.tNew' is new and 'demo.M.tOld' is gone\n"
                        "  hint: if it was renamed, add formerName=\"tOld\" to keep its records"));
  EXPECT_EQ(Change(bean + "<table name='tOld' key='int' value='BA'/>",
                   bean + "<table name='tNew' key='int' value='BA' formerName='tOld'/>"),
            "");
}

TEST_F(LockFileTest, RefusesTablesThatWouldLoseTheirRecords) {
  const std::string bean = "<bean name='BA'/>";
  EXPECT_THAT(Change(bean + "<table name='t' key='int' value='BA'/>",
                     bean + "<table name='t' key='int' value='BA' suffix='_2'/>"),
              HasSubstr("its records would be lost"));
}

TEST_F(LockFileTest, TellsOfChangedIds) {
  EXPECT_THAT(Change("<bean name='BA'/>", "<bean name='BA' TypeId='5'/>"),
              HasSubstr("error: the TypeId of 'demo.M.BA' was"));
  EXPECT_THAT(Change("<rpc name='R'/>", "<rpc name='R' id='5'/>"),
              HasSubstr("warning: the id of 'demo.M.R' was"));
  EXPECT_THAT(Change("<rpc name='R'/>", "<rpc name='S'/>"),
              AllOf(HasSubstr("protocol 'demo.M.S' is new and 'demo.M.R' is gone"),
                    HasSubstr("so that older clients still reach it")));
}

TEST_F(LockFileTest, RefusesLinesItDoesNotKnow) {
  Diagnostics diagnostics;
  LockFile::Parse("# fine\nbean a 1\n  x y z\ntable t 1\nnonsense\n", "s.lock", diagnostics);
  EXPECT_EQ(diagnostics.error_count(), 3U);
  EXPECT_THAT(diagnostics.Format(), HasSubstr("s.lock:3:1: error:"));
}

}  // namespace
}  // namespace zeze::gen
