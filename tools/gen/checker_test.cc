// One test for each rule of the language: what is said, and where.

#include "tools/gen/model.h"
#include "tools/gen/testing/schema_fixture.h"
#include "zeze/base/name_hash.h"

namespace zeze::gen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckerTest : public SchemaFixture {};

TEST_F(CheckerTest, AcceptsAPlainSchema) {
  EXPECT_EQ(InBean("<variable id='1' name='level' type='int'/>"), "");
}

TEST_F(CheckerTest, ReportsAllErrorsOfARunWithTheirLines) {
  const std::string said = InModule(
      "<bean name='BA'>\n"
      "  <variable id='0' name='a' type='int'/>\n"
      "  <variable id='2' name='b' type='itn'/>\n"
      "</bean>\n"
      "<table name='t' key='float' value='BA'/>\n"
      "<rpc name='R' argument='BNone'/>");
  EXPECT_THAT(said, HasSubstr("s.xml:3:13: error: id '0' of variable 'a' is not allowed"));
  EXPECT_THAT(said, HasSubstr("s.xml:4:29: error: there is no type 'itn'\n"
                              "  hint: did you mean 'int'?"));
  EXPECT_THAT(said, HasSubstr("s.xml:6:17: error: table 'demo.M.t': a float cannot be the key"));
  EXPECT_THAT(said, HasSubstr("s.xml:7:15: error: there is no bean 'BNone'"));
  EXPECT_THAT(said, HasSubstr("4 errors."));
}

TEST_F(CheckerTest, RefusesAnotherRoot) {
  EXPECT_THAT(Diagnose("<zeze/>"), HasSubstr("s.xml:1:1: error: the root is <zeze>"));
}

TEST_F(CheckerTest, RefusesUnknownElements) {
  EXPECT_THAT(InModule("<tabel name='t'/>"),
              HasSubstr("s.xml:2:1: error: unknown element <tabel> in <module>\n"
                        "  hint: did you mean 'table'?"));
  EXPECT_THAT(InModule("<table name='t' key='int' value='BA'><x/></table><bean name='BA'/>"),
              HasSubstr("warning: unknown element <x> in <table>"));
}

// Modules and ids.

TEST_F(CheckerTest, RefusesModulesWithoutAUsableId) {
  EXPECT_THAT(
      Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9,20'>\n"
               "<module name='A'/>\n"
               "<module name='B' id='x'/>\n"
               "<module name='C' id='0'/>\n"
               "<module name='D' id='10'/>\n"
               "<module name='E' id='20'/>\n"
               "<module name='F' id='20'/>\n"
               "</solution>"),
      AllOf(HasSubstr("s.xml:2:1: error: module 'demo.A' has no id"),
            HasSubstr("s.xml:3:18: error: id 'x' of module 'demo.B' is not allowed"),
            HasSubstr("s.xml:4:18: error: id '0' of module 'demo.C' is not allowed"),
            HasSubstr("s.xml:5:18: error: module id 10 of 'demo.D' is outside the ranges of "
                      "its file\n  hint: this file may use 1-9, 20"),
            HasSubstr("s.xml:7:18: error: module id 20 of 'demo.F' is used by 'demo.E' at "
                      "s.xml:6:1"),
            HasSubstr("5 errors.")));
}

TEST_F(CheckerTest, AsksForRangesWhenAFileHasNone) {
  EXPECT_THAT(Diagnose("<solution name='demo'><module name='A' id='1'/></solution>"),
              HasSubstr("hint: add ModuleIdAllowRanges"));
}

TEST_F(CheckerTest, RefusesMalformedAndOverlappingRanges) {
  EXPECT_THAT(Diagnose("<solution name='demo' ModuleIdAllowRanges='9-1,a'/>"),
              AllOf(HasSubstr("'9-1' is not a range"), HasSubstr("'a' is not a range")));
  Write("other.xml", "<solution name='other' ModuleIdAllowRanges='5-15'/>");
  EXPECT_THAT(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-5'>"
                       "<import file='other.xml'/></solution>"),
              HasSubstr("error: module id range 5-15 overlaps 1-5 of s.xml:1:23"));
}

TEST_F(CheckerTest, RefusesNamesThatAreTakenWhateverTheirCase) {
  EXPECT_THAT(InModule("<bean name='BItem'/>\n<beankey name='bitem'/>"),
              HasSubstr("s.xml:3:1: error: beankey 'demo.M.bitem' has the name of the bean "
                        "'demo.M.BItem' (case does not count) at s.xml:2:1"));
  EXPECT_THAT(InModule("<bean name='X'/>\n<table name='X' key='int' value='X'/>"),
              HasSubstr("s.xml:3:1: error: table 'demo.M.X' has the name of the bean at"));
  EXPECT_THAT(InModule("<bean name='ModuleM'/>"),
              HasSubstr("bean 'demo.M.ModuleM' has the name of the class of the module"));
  EXPECT_THAT(InModule("<bean name='AbstractModule'/>"), HasSubstr("AbstractModule"));
  EXPECT_THAT(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'><module name='A' id='1'/>\n"
                       "<module name='A' id='2'/></solution>"),
              HasSubstr("s.xml:2:1: error: module 'demo.A' has the name of the module"));
}

TEST_F(CheckerTest, RefusesBadNames) {
  EXPECT_THAT(InModule("<bean name='_B'/>"),
              HasSubstr("s.xml:2:7: error: '_B' cannot be the name of "
                        "a bean: it starts with '_'"));
  EXPECT_THAT(InModule("<bean name='B_'/>"), HasSubstr("it ends with '_'"));
  EXPECT_THAT(InModule("<bean name='B-1'/>"), HasSubstr("it has the character '-'"));
  EXPECT_THAT(InModule("<bean name='1B'/>"), HasSubstr("it starts with a digit"));
  EXPECT_THAT(InModule("<bean/>"), HasSubstr("<bean> has no name"));
  EXPECT_THAT(InModule("<bean name='class'/>"), HasSubstr("reserves the word"));
  EXPECT_THAT(InModule("<rpc name='local'/>"), HasSubstr("reserves the word"));
  EXPECT_EQ(InModule("<bean name='friend'/>"), "");
  EXPECT_EQ(InModule("<bean name='B\xE7\x89\xA9'/>"), "");
  EXPECT_EQ(InBean("<variable id='1' name='class' type='int'/>"), "");
  EXPECT_THAT(InBean("<variable id='1' name='_x' type='int'/>"), HasSubstr("it starts with '_'"));
}

// Variables and types.

TEST_F(CheckerTest, RefusesVariablesWithoutIdNameOrType) {
  EXPECT_THAT(InBean("<variable/>"),
              AllOf(HasSubstr("<variable> has no name"), HasSubstr("<variable> has no type"),
                    HasSubstr("<variable> has no id")));
  EXPECT_THAT(InBean("<variable id='4096' name='a' type='int'/>"),
              HasSubstr("s.xml:2:11: error: id '4096' of variable 'a' is not allowed\n"
                        "  hint: write a whole number from 1 to 4095"));
  EXPECT_THAT(InBean("<var id='x' name='a' type='int'/>"), HasSubstr("id 'x' of variable 'a'"));
}

TEST_F(CheckerTest, RefusesIdsAndNamesUsedTwiceInABean) {
  EXPECT_THAT(
      InBean("<variable id='1' name='a' type='int'/>\n<variable id='1' name='b' type='int'/>"),
      HasSubstr("s.xml:3:1: error: variable id 1 of 'b' is used by 'a' at line 2\n"
                "  hint: the next free id in 'BTest' is 2"));
  EXPECT_THAT(InBean("<variable id='1' name='a' type='int'/>\n<var id='2' name='a' type='int'/>"),
              HasSubstr("s.xml:3:1: error: 'BTest' has two variables 'a', the other at line 2"));
  EXPECT_THAT(InBean("<enum name='A' value='1'/>\n<enum name='A' value='2'/>"),
              HasSubstr("s.xml:3:1: error: 'BTest' has another 'A' at line 2"));
}

TEST_F(CheckerTest, NamesTheNearestType) {
  EXPECT_THAT(InBean("<variable id='1' name='a' type='BItme'/>"),
              HasSubstr("s.xml:2:27: error: there is no type 'BItme'\n"
                        "  hint: did you mean 'demo.M.BItem'?"));
  EXPECT_THAT(InBean("<variable id='1' name='a' type='Int'/>"), HasSubstr("did you mean 'int'?"));
}

TEST_F(CheckerTest, RefusesMalformedContainers) {
  const auto type = [&](const std::string& attributes) {
    return InBean("<variable id='1' name='a' " + attributes + "/>");
  };
  EXPECT_THAT(type("type='list[list[int]]'"),
              HasSubstr("s.xml:2:27: error: variable 'a': containers cannot be nested in "
                        "'list[list[int]]'\n  hint: put the inner container into a <bean>"));
  EXPECT_THAT(type("type='list' value='map'"), HasSubstr("containers cannot be nested"));
  EXPECT_THAT(type("type='list' value='list[int]'"), HasSubstr("containers cannot be nested"));
  EXPECT_THAT(type("type='list[int'"), HasSubstr("malformed brackets"));
  EXPECT_THAT(type("type='list]'"), HasSubstr("']' without '['"));
  EXPECT_THAT(type("type='list[int]x'"), HasSubstr("malformed brackets"));
  EXPECT_THAT(type("type='gtable[int,int,int,int]'"), HasSubstr("too many types"));
  EXPECT_THAT(type("type='list[int]' value='int'"), HasSubstr("given once more"));
  EXPECT_THAT(type("type='map[int]'"), HasSubstr("a map needs 2 types, found 1\n"
                                                 "  hint: write map[key,value]"));
  EXPECT_THAT(type("type='map' value='int'"), HasSubstr("a map needs 2 types, found 1"));
  EXPECT_THAT(type("type='gtable[int,int]'"), HasSubstr("a gtable needs 3 types"));
  EXPECT_THAT(type("type='list'"), HasSubstr("a list needs 1 type, found 0"));
  EXPECT_THAT(type("type='list[]'"), HasSubstr("a list needs 1 type, found an empty one"));
  EXPECT_THAT(type("type='int' value='int'"), HasSubstr("a int has no key or value type"));
  EXPECT_THAT(type("type='string' value='JSON_OBJECT'"), HasSubstr("note: value=\"JSON_...\""));
  EXPECT_THAT(type("type='string' value='JSON'"), HasSubstr("a string has no key or value type"));
}

TEST_F(CheckerTest, RefusesKeysThatCannotBeKeys) {
  const auto type = [&](const std::string& text) {
    return InBean("<variable id='1' name='a' type='" + text + "'/>");
  };
  EXPECT_THAT(type("map[float,int]"), HasSubstr("a float cannot be a key of a map"));
  EXPECT_THAT(type("map[BItem,int]"), HasSubstr("a demo.M.BItem cannot be a key of a map"));
  EXPECT_THAT(type("set[dynamic:BItem]"), HasSubstr("a dynamic cannot be an element of a set"));
  EXPECT_THAT(type("gtable[int,double,int]"), HasSubstr("a double cannot be a key of a gtable"));
  EXPECT_THAT(type("list[decimal]"), HasSubstr("a decimal cannot be an element of a list"));
  EXPECT_THAT(type("set[vector2]"), HasSubstr("warning: variable 'a': a vector2 as a key"));
  EXPECT_EQ(type("map[BKey,BItem]"), "");
  EXPECT_THAT(
      InModule("<beankey name='BK'>\n<variable id='1' name='a' type='list[int]'/></beankey>"),
      HasSubstr("s.xml:3:27: error: variable 'a': a list[int] cannot be part of the beankey"));
  EXPECT_THAT(InModule("<beankey name='BK'><variable id='1' name='a' type='float'/></beankey>"),
              HasSubstr("a float cannot be part of the beankey"));
}

TEST_F(CheckerTest, ChecksDynamics) {
  const auto dynamic = [&](const std::string& inside) {
    return InBean("<variable id='1' name='a' type='dynamic'>\n" + inside + "\n</variable>");
  };
  EXPECT_EQ(dynamic("<value bean='BItem:1'/><value bean='BTest:2'/>"), "");
  EXPECT_EQ(InBean("<variable id='1' name='a' type='dynamic' value='BTest:2'>"
                   "<value bean='BItem:1'/></variable>"),
            "");
  EXPECT_EQ(model_.AllBeans()[0]->variables[0]->choices.size(), 2U);
  EXPECT_THAT(InBean("<variable id='1' name='a' type='dynamic'>"
                     "<GetSpecialTypeIdFromBean value='A::b'/></variable>"),
              AllOf(HasSubstr("note: <GetSpecialTypeIdFromBean>"), Not(HasSubstr("warning"))));
  EXPECT_THAT(dynamic("<value bean='BItem:1'/><value bean='BTest'/>"),
              HasSubstr("some beans of the dynamic have a type id and some have not"));
  EXPECT_THAT(dynamic("<value bean='BItem:0'/>"),
              HasSubstr("s.xml:3:8: error: variable 'a': type id '0' of 'BItem' is not allowed"));
  EXPECT_THAT(dynamic("<value bean='BItem:1'/><value bean='BTest:1'/>"),
              HasSubstr("type id 1 of 'demo.M.BTest' is that of 'demo.M.BItem'"));
  EXPECT_THAT(dynamic("<value bean='BKey'/>"), HasSubstr("'demo.M.BKey' is a beankey"));
  EXPECT_THAT(dynamic("<value bean='BNo'/>"), HasSubstr("there is no bean 'BNo'"));
  EXPECT_EQ(dynamic(""), "") << "any bean";
  EXPECT_THAT(InBean("<variable id='1' name='a' type='int'><value bean='BItem'/></variable>"),
              HasSubstr("<value> children are only for a dynamic"));
  EXPECT_THAT(InBean("<variable id='1' name='a' type='list:BItem'/>"),
              HasSubstr("'list:BItem' is not a type"));
  EXPECT_THAT(InBean("<variable id='1' name='a' type='map[int,dynamic:BNo]'/>"),
              HasSubstr("there is no bean 'BNo'"));
}

TEST_F(CheckerTest, GivesADynamicOfABaseAllThatDerivesFromIt) {
  EXPECT_EQ(InModule("<bean name='BBase'/><bean name='BOne' base='BBase'/>"
                     "<bean name='BTwo' base='BOne'/>"
                     "<bean name='BH'><variable id='1' name='a' type='dynamic:BBase'/></bean>"),
            "");
  const Bean* holder = model_.AllBeans().back();
  ASSERT_EQ(holder->variables[0]->choices.size(), 3U);
  EXPECT_EQ(holder->variables[0]->choices[2].bean->name, "BTwo");
  EXPECT_EQ(holder->variables[0]->choices[2].type_id, HashName64("demo.M.BTwo"));
}

TEST_F(CheckerTest, RefusesBeansThatContainThemselves) {
  EXPECT_THAT(InModule("<bean name='BA'><variable id='1' name='b' type='BB'/></bean>\n"
                       "<bean name='BB'><variable id='1' name='a' type='BA'/></bean>"),
              HasSubstr("s.xml:3:17: error: 'demo.M.BA' contains itself: BA -> BB -> BA\n"
                        "  hint: hold it in a list, a map or a dynamic"));
  EXPECT_EQ(InModule("<bean name='BA'><variable id='1' name='b' type='list[BA]'/></bean>"), "");
  EXPECT_THAT(InModule("<bean name='BA'><variable id='1' name='d' type='BD'/></bean>\n"
                       "<bean name='BD' base='BA'/>"),
              HasSubstr("s.xml:3:1: error: 'demo.M.BA' contains itself: BA -> BD -> BA"));
}

TEST_F(CheckerTest, ChecksBases) {
  EXPECT_THAT(InModule("<bean name='BA' base='BNo'/>"),
              HasSubstr("s.xml:2:17: error: there is no bean 'BNo'"));
  EXPECT_THAT(InModule("<beankey name='BK'/><bean name='BA' base='BK'/>"),
              HasSubstr("the base 'demo.M.BK' of 'demo.M.BA' is a beankey"));
  EXPECT_THAT(InModule("<bean name='BA' base='BB'/>\n<bean name='BB' base='BA'/>"),
              HasSubstr("s.xml:3:17: error: 'demo.M.BB' would be its own base"));
}

TEST_F(CheckerTest, ChecksVersionVariables) {
  EXPECT_THAT(InModule("<bean name='BA' version='v'/>"),
              HasSubstr("s.xml:2:17: error: 'demo.M.BA' has no variable 'v' to hold its version"));
  EXPECT_THAT(
      InModule("<bean name='BA' version='v'><variable id='1' name='v' type='int'/></bean>"),
      HasSubstr("the version variable 'v' of 'demo.M.BA' is a int\n  hint: make it a long"));
  EXPECT_THAT(
      InModule("<bean name='BA' version='v'><variable id='1' name='v' type='long'/></bean>"),
      HasSubstr("warning: 'demo.M.BA' has a version but is not the value of any table"));
}

TEST_F(CheckerTest, ChecksTypeIds) {
  EXPECT_THAT(InModule("<bean name='BA' TypeId='5'/>\n<beankey name='BB' TypeId='5'/>"),
              HasSubstr("s.xml:3:20: error: TypeId 5 of 'demo.M.BB' is that of 'demo.M.BA' at"));
  EXPECT_THAT(InModule("<bean name='BA' TypeId='0'/>"), HasSubstr("which means the empty bean"));
  EXPECT_THAT(InModule("<bean name='BA' TypeId='x'/>"), HasSubstr("TypeId 'x'"));
  InModule("<bean name='BA'/>");
  EXPECT_EQ(model_.AllBeans()[0]->type_id, HashName64("demo.M.BA"));
}

// Defaults and constants.

TEST_F(CheckerTest, ReadsDefaultsByType) {
  const auto said = [&](const std::string& type, const std::string& text) {
    return InBean("<variable id='1' name='a' type='" + type + "' default='" + text + "'/>");
  };
  EXPECT_EQ(said("int", "1"), "");
  EXPECT_THAT(said("int", "one"),
              HasSubstr("s.xml:2:38: error: default 'one' of variable 'a' (int): "
                        "there is no constant 'one'"));
  EXPECT_THAT(said("byte", "128"), HasSubstr("128 is outside byte (-128 to 127)"));
  EXPECT_THAT(said("bool", "yes"), HasSubstr("'yes' is not a bool"));
  EXPECT_THAT(said("float", "x"), HasSubstr("'x' is not a number"));
  EXPECT_THAT(said("vector2", "1"), HasSubstr("a vector2 has 2 numbers, not 1"));
  EXPECT_THAT(said("decimal", "1,5"), HasSubstr("'1,5' is not a decimal number"));
  EXPECT_THAT(said("binary", "x"), HasSubstr("a binary cannot have a default\n"
                                             "  hint: remove the default and set the value where"));
  EXPECT_THAT(said("BItem", "x"), HasSubstr("cannot have a default"));
  EXPECT_THAT(said("list[int]", "1"), HasSubstr("cannot have a default"));
}

TEST_F(CheckerTest, ChecksEnums) {
  EXPECT_THAT(
      InBean("<enum name='A' value='x'/>"),
      HasSubstr("s.xml:2:16: error: value 'x' of enum 'A' (int): there is no constant 'x'"));
  EXPECT_THAT(InBean("<enum name='A'/>"), HasSubstr("enum 'A' has no value"));
  EXPECT_THAT(InBean("<enum name='A' value='1' type='list'/>"),
              HasSubstr("enum 'A' cannot be of type 'list'"));
  EXPECT_THAT(InBean("<enum name='for' value='1'/>"), HasSubstr("reserves the word"));
  EXPECT_EQ(InBean("<enum name='A' value='B * 2'/><enum name='B' value='1 &lt;&lt; 4'/>"), "");
  EXPECT_EQ(model_.AllBeans()[0]->enums[0]->integer, 32);
}

TEST_F(CheckerTest, ChecksEnumGroups) {
  EXPECT_EQ(InBean("<enum name='A' value='1' group='G'/><variable id='1' name='g' type='int' "
                   "enum='G'/>"),
            "");
  EXPECT_THAT(InBean("<variable id='1' name='g' type='int' enum='G'/>"),
              HasSubstr("variable 'g': there is no enum group 'G'"));
  EXPECT_THAT(InBean("<enum name='A' value='1' group='G'/><variable id='1' name='g' type='string' "
                     "enum='G'/>"),
              HasSubstr("enum=\"G\" needs a whole number"));
  EXPECT_THAT(InBean("<enum name='A' value='1' group='G'/>\n"
                     "<enum name='B' value='1.5' type='double' group='G'/>"),
              HasSubstr("s.xml:3:1: error: constants of the enum group 'G' must be whole numbers"));
}

// Tables.

TEST_F(CheckerTest, ChecksTables) {
  const auto table = [&](const std::string& attributes) {
    return InModule("<table " + attributes + "/><bean name='BV'/><beankey name='BK'/>");
  };
  EXPECT_THAT(table("name='t'"),
              AllOf(HasSubstr("table 't' has no key"), HasSubstr("table 't' has no value")));
  EXPECT_THAT(table("name='t' key='vector2' value='BV'"), HasSubstr("a vector2 cannot be the key"));
  EXPECT_THAT(table("name='t' key='BV' value='BV'"), HasSubstr("a demo.M.BV cannot be the key"));
  EXPECT_THAT(table("name='t' key='int' value='BK'"),
              HasSubstr("the value 'demo.M.BK' is a beankey"));
  EXPECT_THAT(table("name='t' key='int' value='int'"), HasSubstr("there is no bean 'int'"));
  EXPECT_THAT(table("name='t' key='int' value='BV' autokey='true'"),
              HasSubstr("autokey=\"true\" needs keys of type long, not int"));
  EXPECT_THAT(table("name='t' key='long' value='BV' autokey='random'"),
              HasSubstr("autokey=\"random\" needs keys of type binary"));
  EXPECT_THAT(table("name='t' key='long' value='BV' autokey='maybe'"),
              HasSubstr("warning: autokey of table 't' is 'maybe' and has no effect"));
  EXPECT_THAT(table("name='t' key='int' value='BV' memory='maybe'"),
              HasSubstr("memory of table 't' is 'maybe'\n  hint: write true or false"));
  EXPECT_THAT(table("name='t' key='int' value='BV' suffix='@Other'"),
              HasSubstr("unknown suffix '@Other'"));
  EXPECT_THAT(table("name='t' key='int' value='BV' suffix='a b'"),
              HasSubstr("unknown suffix 'a b'"));
  EXPECT_THAT(table("name='t' key='int' value='BV' formerName='a b'"),
              HasSubstr("formerName 'a b' of table 'demo.M.t' is not a name"));
  EXPECT_THAT(table("name='t' key='int' value='BV' id='x'"), HasSubstr("id 'x' of table"));
  EXPECT_THAT(table("name='t' key='int' value='BV' version='-1'"),
              HasSubstr("version of table 't'"));
}

TEST_F(CheckerTest, FindsTableIdsUsedTwice) {
  EXPECT_THAT(InModule("<bean name='BV'/>\n<table name='t' key='int' value='BV' id='9'/>\n"
                       "<table name='u' key='int' value='BV' id='9'/>"),
              HasSubstr("s.xml:4:1: error: table 'demo.M.u' has the id 9 of table 'demo.M.t' at "
                        "s.xml:3:1"));
  EXPECT_THAT(InModule("<bean name='BV'/><table name='t' key='int' value='BV' suffix='x'/>\n"
                       "<table name='tx' key='int' value='BV'/>"),
              HasSubstr("is stored under the name 'demo_M_tx'"));
}

TEST_F(CheckerTest, KeepsTheStorageNamesOfOlderGenerators) {
  EXPECT_EQ(InModule("<bean name='BV'/>"
                     "<table name='a' key='int' value='BV'/>"
                     "<table name='b' key='int' value='BV' suffix='@ServerId'/>"
                     "<table name='c' key='int' value='BV' suffix='_x'/>"
                     "<table name='d' key='int' value='BV' formerName='old'/>"
                     "<table name='e' key='int' value='BV' suffix='y' suffixStyle='v2'/>"),
            "");
  const auto& tables = model_.AllModules()[0]->tables;
  EXPECT_EQ(tables[0]->storage_name, "demo_M_a");
  EXPECT_EQ(tables[0]->id, HashName32("demo.M.a"));
  EXPECT_EQ(tables[1]->storage_name, "demo_M_b");
  EXPECT_EQ(tables[1]->storage_suffix, "@ServerId");
  EXPECT_EQ(tables[2]->storage_name, "demo_M_c_x");
  EXPECT_EQ(tables[2]->id, HashName32("demo_M_c_x"));
  EXPECT_EQ(tables[3]->storage_name, "demo_M_old");
  EXPECT_EQ(tables[3]->id, HashName32("demo.M.old"));
  EXPECT_EQ(tables[4]->storage_name, "demo_M_e__y");
}

// Protocols.

TEST_F(CheckerTest, ChecksProtocols) {
  const auto rpc = [&](const std::string& attributes) {
    return Diagnose(
        "<solution name='demo' ModuleIdAllowRanges='1-9'><module name='M' id='1'>\n"
        "<rpc name='R' " +
        attributes + "/><bean name='BA'/></module></solution>");
  };
  EXPECT_THAT(rpc(""), HasSubstr("s.xml:2:1: error: rpc 'R' does not say who handles it"));
  EXPECT_THAT(rpc("handle=''"), HasSubstr("does not say who handles it"));
  EXPECT_THAT(rpc("handle='sever'"),
              HasSubstr("s.xml:2:15: error: unknown handle 'sever' of rpc 'R'\n"
                        "  hint: did you mean 'server'?"));
  EXPECT_THAT(rpc("handle='server' TransactionLevel='none'"),
              HasSubstr("unknown transaction level 'none' of rpc 'R'"));
  EXPECT_THAT(rpc("handle='server' CriticalLevel='High'"),
              HasSubstr("unknown CriticalLevel 'High' of rpc 'R'"));
  EXPECT_THAT(rpc("handle='server' argument='int'"),
              HasSubstr("the argument of 'demo.M.R' is the type int\n  hint: name a bean"));
  EXPECT_THAT(rpc("handle='server' result='BB'"), HasSubstr("there is no bean 'BB'"));
  EXPECT_THAT(rpc("handle='server' id='0'"), HasSubstr("the id of 'demo.M.R' is 0"));
  EXPECT_THAT(rpc("handle='server' id='a'"), HasSubstr("id 'a' of 'demo.M.R' is not allowed"));
  EXPECT_THAT(rpc("handle='server' DispatchMode='Fast'"), HasSubstr("DispatchMode of rpc 'R'"));
  EXPECT_THAT(rpc("handle='server' Timeout='soon'"), HasSubstr("Timeout of rpc 'R' is 'soon'"));
  EXPECT_THAT(rpc("handle='server' DispatchMode='Direct'"),
              HasSubstr("runs a transaction on a network thread"));
  EXPECT_EQ(rpc("handle='Server,client' NoProcedure='true' CriticalLevel='3' Timeout='500ms'"), "");
  const Protocol& protocol = *model_.AllModules()[0]->protocols[0];
  EXPECT_TRUE(protocol.handle.server && protocol.handle.client);
  EXPECT_EQ(protocol.level, Level::kNone);
  EXPECT_EQ(protocol.critical_level, 3);
  EXPECT_EQ(protocol.timeout_ms, 500);
  EXPECT_EQ(protocol.id, HashName32("demo.M.R"));
}

TEST_F(CheckerTest, RefusesProtocolIdsUsedTwiceInAModule) {
  EXPECT_THAT(InModule("<rpc name='A' id='7'/>\n<protocol name='B' id='7'/>"),
              HasSubstr("s.xml:3:1: error: protocol id 7 of 'demo.M.B' is used by 'demo.M.A'"));
}

TEST_F(CheckerTest, ChecksProtocolReferences) {
  const std::string start =
      "<solution name='demo' ModuleIdAllowRanges='1-9'>"
      "<module name='A' id='1' handle='server'><rpc name='R' id='7'/></module>\n"
      "<module name='B' id='2' handle='server'>";
  EXPECT_THAT(Diagnose(start + "<protocolref ref='demo.A.X'/></module></solution>"),
              HasSubstr("s.xml:2:54: error: there is no protocol 'demo.A.X'"));
  EXPECT_THAT(Diagnose(start + "<protocolref/></module></solution>"),
              HasSubstr("<protocolref> needs either ref or import"));
  EXPECT_THAT(
      Diagnose(start + "<rpc name='S' id='7'/><protocolref ref='demo.A.R'/></module></solution>"),
      HasSubstr("protocol id 7 of 'demo.A.R' is used by 'demo.B.S'"));
  EXPECT_THAT(Diagnose(start + "<rpc name='R'/><protocolref ref='demo.A.R'/></module></solution>"),
              HasSubstr("would have the same handler ProcessR"));
  EXPECT_EQ(Diagnose(start + "<rpc name='R'/><protocolref import='A.R'/></module></solution>"), "");
}

// Projects.

TEST_F(CheckerTest, ChecksProjects) {
  const auto project = [&](const std::string& inside, const std::string& attributes = "") {
    return Diagnose(
        "<solution name='demo' ModuleIdAllowRanges='1-9'>"
        "<module name='A' id='1'><module name='Sub' id='2'/></module><module name='B' id='3'/>\n"
        "<project name='p' platform='cxx' " +
        attributes + ">\n" + inside + "\n</project></solution>");
  };
  EXPECT_THAT(project("<module ref='C'/>"), HasSubstr("s.xml:3:9: error: there is no module 'C'"));
  EXPECT_THAT(project("<module ref='B'/><module ref='B'/>"),
              HasSubstr("module 'demo.B' is referenced twice"));
  EXPECT_THAT(project("<service name='s' handle='server'/><service name='s' handle='server'/>"),
              HasSubstr("project 'p' has two services 's'"));
  EXPECT_THAT(project("<service name='s'/>"),
              HasSubstr("service 's' does not say what it handles"));
  EXPECT_THAT(project("<bean ref='BNo'/>"), HasSubstr("there is no bean 'BNo'"));
  EXPECT_THAT(project("<ModuleStartOrder><start module='B'/></ModuleStartOrder>"),
              HasSubstr("ModuleStartOrder names 'demo.B', which project 'p' does not have"));
  EXPECT_THAT(
      Diagnose("<solution name='demo'><project name='p' platform='cpp'/></solution>"),
      HasSubstr("unknown platform 'cpp' of project 'p'\n  hint: for C++ write platform=\"cxx\""));
  EXPECT_THAT(Diagnose("<solution name='demo'><project name='p'/>\n<project name='p'/></solution>"),
              HasSubstr("s.xml:2:1: error: there is another project 'p'"));
  EXPECT_EQ(project("<module ref='A'/><module ref='demo.B'/>"), "");
  EXPECT_EQ(model_.MadeProjects()[0]->modules.size(), 3U);
  EXPECT_EQ(project("<module ref='A'/>", "NoRecursiveModule='true'"), "");
  EXPECT_EQ(model_.MadeProjects()[0]->modules.size(), 1U);
  EXPECT_EQ(project("", "IncludeAllModules='true'"), "");
  EXPECT_EQ(model_.MadeProjects()[0]->modules.size(), 3U);
  EXPECT_EQ(project("<module ref='A.Sub'/>"), "");
}

TEST_F(CheckerTest, RefusesAModuleThatTwoServicesClaim) {
  EXPECT_THAT(
      Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
               "<module name='A' id='1'><module name='Sub' id='2'/></module>\n"
               "<project name='p' platform='cxx'>\n"
               "<service name='one' handle='server'><module ref='A'/></service>\n"
               "<service name='two' handle='client'><module ref='demo.A.Sub'/></service>\n"
               "</project></solution>"),
      HasSubstr("s.xml:4:45: error: module 'demo.A.Sub' is claimed by service 'two' and by service "
                "'one' at s.xml:3:45"));
}

TEST_F(CheckerTest, OrdersModulesAsTheyStart) {
  EXPECT_EQ(
      Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
               "<module name='A' id='1'/><module name='B' id='2'/><module name='C' id='3'/>"
               "<module name='D' id='4'/>"
               "<project name='p' platform='cxx'>"
               "<service name='z' handle='server'><module ref='A'/></service>"
               "<service name='a' handle='server'><module ref='B'/><module ref='C'/></service>"
               "<module ref='D'/>"
               "<ModuleStartOrder><start module='C'/><module ref='A'/></ModuleStartOrder>"
               "</project></solution>"),
      "");
  std::string order;
  for (const Module* module : model_.MadeProjects()[0]->modules) order += module->name;
  EXPECT_EQ(order, "CADB");
}

TEST_F(CheckerTest, WarnsOfProtocolsNobodyHandles) {
  const auto said = [&](const std::string& second) {
    return Diagnose(
        "<solution name='demo' ModuleIdAllowRanges='1-9'>"
        "<module name='A' id='1'>\n<protocol name='P' handle='client'/></module>"
        "<module name='B' id='2'/>"
        "<project name='p' platform='cxx'>"
        "<service name='s' handle='server'><module ref='A'/></service></project>" +
        second + "</solution>");
  };
  EXPECT_EQ(said(""), "");
  EXPECT_THAT(said("<project name='q' platform='cxx'><service name='t' handle='client'>"
                   "<module ref='B'/></service></project>"),
              HasSubstr("s.xml:2:1: warning: no service of any project handles 'demo.A.P'"));
}

// Imports.

TEST_F(CheckerTest, FollowsImportsOnceAndInCircles) {
  Write("sub/common.xml",
        "<solution name='common' ModuleIdAllowRanges='10-19'><import file='../s.xml'/>"
        "<module name='C' id='10'><bean name='BC'/></module></solution>");
  EXPECT_EQ(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
                     "<import file='sub/common.xml'/><import file='sub/../sub/common.xml'/>"
                     "<module name='M' id='1'><bean name='BM'>"
                     "<variable id='1' name='c' type='common.C.BC'/></bean></module></solution>"),
            "");
  EXPECT_EQ(model_.solutions.size(), 2U);
  EXPECT_EQ(model_.files.size(), 2U);
  EXPECT_TRUE(model_.solutions[0]->is_made);
  EXPECT_FALSE(model_.solutions[1]->is_made);
}

TEST_F(CheckerTest, SaysWhereAnImportWasLookedFor) {
  EXPECT_THAT(Diagnose("<solution name='demo'>\n<import file='gone.xml'/></solution>"),
              HasSubstr("s.xml:2:9: error: imported file 'gone.xml' does not exist"));
}

TEST_F(CheckerTest, ReadsIncludedFiles) {
  Write("inner.xml", "<module name='I' id='2'><bean name='BI'/></module>");
  EXPECT_EQ(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9' "
                     "xmlns:xi='http://www.w3.org/2001/XInclude'>"
                     "<xi:include href='inner.xml'/></solution>"),
            "");
  EXPECT_EQ(model_.AllModules().size(), 1U);
  EXPECT_EQ(model_.files.size(), 2U);
}

TEST_F(CheckerTest, ReadsExternalBeans) {
  EXPECT_THAT(InModule("<external bean='my::BHand' header='my/hand.h'/>"),
              HasSubstr("s.xml:2:11: error: 'my::BHand' is not a full name"));
  EXPECT_EQ(InModule("<external bean='my.BHand' header='my/hand.h'/>"
                     "<externalkey beankey='my.BHandKey' header='my/hand.h'/>"
                     "<bean name='BA'><variable id='1' name='h' type='my.BHand'/>"
                     "<variable id='2' name='k' type='map[my.BHandKey,int]'/></bean>"),
            "");
}

}  // namespace
}  // namespace zeze::gen
