#include "tools/gen/cxx_names.h"

#include <string>

#include "tools/gen/testing/schema_fixture.h"

namespace zeze::gen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using CxxNamesTest = SchemaFixture;

constexpr const char* kBean = "<bean name='BA'/>";

TEST_F(CxxNamesTest, WhatTheGeneratedCodeNeedsForItselfGetsAnUnderscore) {
  ASSERT_EQ(InModule(std::string(kBean) +
                     "<table name='Tables' key='int' value='BA'/>"
                     "<table name='id' key='int' value='BA'/>"
                     "<table name='ModuleId' key='int' value='BA'/>"
                     "<rpc name='R'><enum name='Result' value='1'/></rpc>"
                     "<bean name='BB'><variable id='1' name='Encode' type='int'/>"
                     "<enum name='kTypeId' value='1'/><variable id='2' name='EPERM' type='int'/>"
                     "</bean>"),
            "");
  const Module& module = *model_.AllModules()[0];
  EXPECT_EQ(CxxTableName(*module.tables[0]), "Tables_");
  EXPECT_EQ(CxxDescriptorName(*module.tables[0]), "kTables");
  EXPECT_EQ(CxxTableName(*module.tables[1]), "id_");
  EXPECT_EQ(CxxDescriptorName(*module.tables[2]), "kModuleId_");
  EXPECT_EQ(CxxConstantName(*module.protocols[0], "Result"), "Result_");
  EXPECT_EQ(CxxMemberName(*module.beans[1], "Encode"), "Encode_");
  EXPECT_EQ(CxxMemberName(*module.beans[1], "kTypeId"), "kTypeId_");
  EXPECT_EQ(CxxMemberName(*module.beans[1], "EPERM"), "EPERM_");
  EXPECT_EQ(CxxMemberName(*module.beans[1], "gold"), "gold");
}

TEST_F(CxxNamesTest, ATableAndTheConstantOfItsDescriptorAreRefused) {
  EXPECT_THAT(InModule(std::string(kBean) + "\n<enum name='ktX' value='1'/>\n"
                                            "<table name='tX' key='int' value='BA'/>"),
              AllOf(HasSubstr("s.xml:4:1: error: the descriptor of table 'tX' and enum 'ktX' at "),
                    HasSubstr("s.xml:3:1 would both be 'ktX' in namespace demo.M"),
                    HasSubstr("hint: rename one of them")));
}

TEST_F(CxxNamesTest, AVariableWithTheNameOfAnAccessorIsRefused) {
  EXPECT_THAT(InBean("<enum name='Red' value='1' group='Color'/>\n"
                     "<variable id='1' name='c' type='int' enum='Color'/>\n"
                     "<variable id='2' name='c_enum' type='int'/>"),
              HasSubstr("the enum accessor of 'c' and variable 'c_enum' at "));
  EXPECT_THAT(InBean("<enum name='Red' value='1' group='Color'/>\n"
                     "<variable id='1' name='c' type='int' enum='Color'/>\n"
                     "<enum name='set_c_enum' value='1'/>"),
              HasSubstr("would both be 'set_c_enum' in struct demo.M.BTest"));
}

TEST_F(CxxNamesTest, GroupsAndTypesOfDynamicsAreNamesToo) {
  EXPECT_THAT(InModule(std::string(kBean) + "<enum name='a' value='1' group='BA'/>"),
              HasSubstr("the enum group 'BA' and bean 'BA' at "));
  EXPECT_THAT(InBean("<variable id='1' name='extra' type='dynamic'/>\n"
                     "<variable id='2' name='ExtraDynamic' type='int'/>"),
              HasSubstr("the type of 'extra' and variable 'ExtraDynamic' at "));
}

TEST_F(CxxNamesTest, AStructWithTheNameOfItsMemberIsRefused) {
  EXPECT_THAT(InModule("<bean name='Encode'/>"),
              AllOf(HasSubstr("s.xml:2:1: error: bean 'demo.M.Encode' has the name of a member of "
                              "its C++ struct"),
                    HasSubstr("hint: rename it")));
  EXPECT_THAT(InModule("<rpc name='Result'/>"), HasSubstr("rpc 'demo.M.Result' has the name"));
}

TEST_F(CxxNamesTest, TwoHandlersOfOneNameAreRefused) {
  EXPECT_THAT(Diagnose("<solution name='demo' ModuleIdAllowRanges='1-9'>"
                       "<module name='A' id='1' handle='server'><protocol name='P'/></module>\n"
                       "<module name='B' id='2' handle='server'><protocol name='P'/>"
                       "<protocolref ref='demo.A.P'/></module></solution>"),
              HasSubstr("the handler of 'demo.A.P' and the handler of 'demo.B.P' at "));
  EXPECT_THAT(InModule(std::string(kBean) + "<rpc name='Buy'/>\n"
                                            "<table name='ProcessBuy' key='int' value='BA'/>"),
              HasSubstr("table 'ProcessBuy' and the handler of 'demo.M.Buy' at "));
}

}  // namespace
}  // namespace zeze::gen
