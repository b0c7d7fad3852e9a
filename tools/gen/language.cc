#include "tools/gen/language.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeze/xml/known_names.h"

namespace zeze::gen {
namespace {

constexpr AttributeUse kNone = AttributeUse::kNoEffect;
constexpr AttributeUse kRead = AttributeUse::kRead;

constexpr AttributeInfo kName = {"name", "string", true, kRead, "the name"};
constexpr AttributeInfo kComment = {"comment", "string", false, kRead,
                                    "emitted as a comment in the generated code"};
constexpr AttributeInfo kUseData = {"UseData", "string", false, kNone,
                                    "beans are plain data in C++ already"};
constexpr AttributeInfo kEquals = {"equals", "boolean", false, kNone,
                                   "every bean can be compared in C++ already"};
constexpr AttributeInfo kKeepUnknown = {"keepUnknownFields", "boolean", false, kRead,
                                        "keep fields of newer versions and write them back"};
constexpr AttributeInfo kHot = {"hot", "boolean", false, kNone, "C++ modules are not replaced hot"};
constexpr AttributeInfo kHandle = {"handle", "string", false, kRead,
                                   "who processes it: server, client, ..."};
constexpr AttributeInfo kStrictHandlers = {"strictHandlers", "boolean", false, kRead,
                                           "handlers are pure virtual"};
constexpr AttributeInfo kLevel = {"TransactionLevel", "string", false, kRead,
                                  "None, Serializable or AllowDirtyWhenAllRead"};
constexpr AttributeInfo kDispatchMode = {"DispatchMode", "string", false, kRead,
                                         "Normal, Critical or Direct"};
constexpr AttributeInfo kOneByOne = {"OneByOne", "boolean", false, kRead,
                                     "requests of one session run in order"};
constexpr AttributeInfo kTimeout = {"Timeout", "string", false, kRead,
                                    "how long a caller waits: 5000, 500ms or 5s"};

ElementInfo SolutionInfo() {
  return {
      "solution",
      "solution",
      {kName,
       {"ModuleIdAllowRanges", "string", false, kRead, "ids that modules of this file may use"},
       kEquals,
       kUseData,
       kKeepUnknown,
       {"DefaultTransactionLevel", "string", false, kNone,
        "protocols cannot stand directly under a solution"},
       kComment},
      {"bean", "beankey", "module", "project", "component", "import", "external", "externalkey"},
      true,
      "the root of a schema file"};
}

ElementInfo ModuleInfo() {
  return {"module",
          "module",
          {kName,
           {"id", "int", true, kRead, "high half of protocol ids and error codes"},
           {"DefaultTransactionLevel", "string", false, kRead, "of protocols of this module"},
           kHandle,
           kStrictHandlers,
           kDispatchMode,
           kOneByOne,
           kTimeout,
           kKeepUnknown,
           kUseData,
           kEquals,
           kHot,
           {"WebPathBase", "string", false, kRead, "prefix of the URL of servlets"},
           {"MultiInstance", "boolean", false, kNone, "C++ modules are ordinary objects"},
           {"base", "string", false, kNone, "derive in your own class instead"},
           kComment},
          {"enum", "bean", "beankey", "module", "protocol", "rpc", "table", "protocolref",
           "servlet", "servletstream", "external", "externalkey"},
          true,
          "a namespace with its beans, tables, protocols and sub-modules"};
}

ElementInfo BeanInfo() {
  return {"bean",
          "bean",
          {kName,
           {"TypeId", "long", false, kRead, "default: hash of the full name"},
           {"base", "string", false, kRead, "the bean this one extends"},
           {"version", "string", false, kRead, "variable of type long that counts commits"},
           kKeepUnknown,
           {"kind", "string", false, kNone, "raft stores are not part of C++"},
           {"extendable", "boolean", false, kNone, "structs are never final"},
           {"interface", "string", false, kNone, "structs have no interfaces"},
           kEquals,
           kUseData,
           {"MappingClass", "boolean", false, kNone, "a Java helper"},
           {"RedirectResult", "boolean", false, kNone, "any bean can be a result in C++"},
           kComment},
          {"variable", "var", "enum"},
          true,
          "a struct"};
}

ElementInfo VariableInfo(std::string_view name) {
  return {name,
          name,
          {{"id", "int", true, kRead, "1 to 4095; its identity in stored and sent data"},
           kName,
           {"type", "string", true, kRead, "a type"},
           {"key", "string", false, kRead, "key type of a map"},
           {"value", "string", false, kRead, "value type of a container"},
           {"default", "string", false, kRead, "initial value; an absent field still means zero"},
           {"enum", "string", false, kRead, "the enum group whose constants it holds"},
           {"AllowNegative", "boolean", false, kRead, "exempt from HasNegative()"},
           {"transient", "boolean", false, kRead, "neither stored nor sent"},
           {"javaType", "string", false, kNone, "Java only"},
           {"FixSize", "int", false, kNone, "a C# client feature"},
           kComment},
          {"value", "GetSpecialTypeIdFromBean", "CreateBeanFromSpecialTypeId",
           "CreateDataFromSpecialTypeId"},
          true,
          "a field"};
}

ElementInfo ProtocolInfo(bool rpc) {
  ElementInfo info = {
      rpc ? "rpc" : "protocol",
      rpc ? "rpc" : "protocol",
      {kName,
       {"id", "int", false, kRead, "default: hash of the full name"},
       {"argument", "string", false, kRead, "a bean"},
       kHandle,
       kLevel,
       {"NoProcedure", "string", false, kRead, "older form of TransactionLevel"},
       {"CriticalLevel", "string", false, kRead, "CriticalPlus, Critical, Normal or Sheddable"},
       kDispatchMode,
       kTimeout,
       kOneByOne,
       kStrictHandlers,
       kUseData,
       kComment},
      {"enum"},
      true,
      rpc ? "a request with a result" : "a one-way message"};
  if (rpc) {
    info.attributes.push_back({"result", "string", false, kRead, "a bean"});
    info.attributes.push_back({"base", "string", false, kNone, "C++ has one kind of rpc"});
  }
  return info;
}

ElementInfo TableInfo() {
  return {"table",
          "table",
          {kName,
           {"key", "string", true, kRead, "a type that can be a key"},
           {"value", "string", true, kRead, "a bean"},
           {"id", "int", false, kRead, "default: hash of the full name"},
           {"gen", "string", false, kRead, "only in projects whose GenTables has this tag"},
           {"memory", "boolean", false, kRead, "never stored"},
           {"autokey", "string", false, kRead, "true (long keys) or random (binary keys)"},
           {"suffix", "string", false, kRead, "appended to the storage name"},
           {"suffixStyle", "string", false, kRead, "v2: the same __suffix everywhere"},
           {"formerName", "string", false, kRead, "keep the storage name and id after a rename"},
           {"RelationalMapping", "string", false, kNone, "records are stored as key and value"},
           {"version", "int", false, kRead, "raise it to drop the stored records"},
           {"noSchema", "boolean", false, kRead, "leave out of the stored schema"},
           {"kind", "string", false, kNone, "raft stores are not part of C++"},
           kComment},
          {},
          false,
          "records of one type by key"};
}

ElementInfo ProjectInfo(std::string_view kind) {
  return {kind,
          kind,
          {kName,
           {"platform", "string", false, kRead, "cxx or zeze+cxx for C++, ts for TypeScript"},
           {"GenTables", "string", false, kRead, "tags of the tables to generate"},
           {"IncludeAllModules", "boolean", false, kRead, "all modules of the solution"},
           {"NoRecursiveModule", "boolean", false, kRead, "without sub-modules"},
           {"ClientScript", "boolean", false, kRead, "handle clientscript protocols too"},
           {"GenDir", "string", false, kNone, "C++ goes to the build tree"},
           {"SrcDir", "string", false, kNone, "see zeze gen --skeleton"},
           {"CommonDir", "string", false, kNone, "C++ goes to the build tree"},
           {"PackagePath", "string", false, kNone, "C++ uses namespaces"},
           {"BuiltinNG", "boolean", false, kNone, "only what is used is generated"},
           {"SolutionName", "string", false, kNone, "the namespace is the solution's name"},
           {"RelationalMapping", "boolean", false, kNone, "records are stored as key and value"},
           {"MappingClass", "boolean", false, kNone, "a Java helper"},
           kHot,
           {"DisableDeleteGen", "boolean", false, kNone, "only files of our own are removed"},
           {"EnableBase", "boolean", false, kNone, "derive in your own class instead"},
           {"PresentModuleFullName", "string", false, kNone, "a Java component feature"},
           {"LuaUtilDir", "string", false, kNone, "Lua only"},
           {"IsUnity", "boolean", false, kNone, "C# only"},
           {"MacroEditor", "string", false, kNone, "C# only"},
           kComment},
          {"module ref", "service", "ModuleStartOrder", "bean ref", "beankey ref",
           "FollowerApplyTables"},
          true,
          "what one program is made of"};
}

std::vector<ElementInfo> SmallElements() {
  return {
      {"import", "import", {{"file", "string", true, kRead, "path of a schema"}}, {}, false},
      {"enum",
       "enum",
       {kName,
        {"value", "string", true, kRead, "the constant"},
        {"type", "string", false, kRead, "a simple type, int by default"},
        {"group", "string", false, kRead, "also a constant of this C++ enum class"},
        {"description", "string", false, kRead, "a comment"},
        kComment},
       {},
       false,
       "a constant"},
      {"value",
       "value",
       {{"bean", "string", true, kRead, "Name or Name:typeid"}},
       {},
       true,
       "a bean that a dynamic may hold"},
      {"protocolref",
       "protocolref",
       {{"ref", "string", false, kRead, "a protocol handled here"},
        {"import", "string", false, kRead, "a protocol only generated here"},
        kComment},
       {},
       false},
      {"servlet",
       "servlet",
       {kName, {"MaxContentLength", "int", false, kRead, "bytes"}, kLevel, kComment},
       {},
       false},
      {"servletstream", "servletstream", {kName, kLevel, kComment}, {}, false},
      {"external",
       "external",
       {{"bean", "string", true, kRead, "full name of a bean written by hand"},
        {"header", "string", false, kRead, "the file to include"},
        kComment},
       {},
       false},
      {"externalkey",
       "externalkey",
       {{"beankey", "string", true, kRead, "full name of a key written by hand"},
        {"header", "string", false, kRead, "the file to include"},
        kComment},
       {},
       false},
  };
}

std::vector<ElementInfo> ProjectElements() {
  constexpr AttributeInfo kRef = {"ref", "string", true, kRead, "a name"};
  return {
      {"module ref", "module", {kRef}, {}, true, "takes a module into a project or service"},
      {"bean ref", "bean", {kRef}, {}, true},
      {"beankey ref", "beankey", {kRef}, {}, true},
      {"service",
       "service",
       {kName, kHandle, {"base", "string", false, kNone, "derive in your own class"}, kComment},
       {"module ref"},
       false,
       "a listening or connecting end and the modules behind it"},
      {"ModuleStartOrder", "ModuleStartOrder", {}, {"start", "module start"}, false},
      {"start", "start", {{"module", "string", true, kRead, "a module"}}, {}, false},
      {"module start",
       "module",
       {{"ref", "string", false, kRead, "a module"}, {"module", "string", false, kRead, "same"}},
       {},
       false},
      {"FollowerApplyTables", "FollowerApplyTables", {}, {"table name", "bean ref"}, false},
      {"table name", "table", {kName}, {}, false},
  };
}

std::vector<ElementInfo> TypeElements() {
  std::vector<ElementInfo> all;
  for (const char* name :
       {"GetSpecialTypeIdFromBean", "CreateBeanFromSpecialTypeId", "CreateDataFromSpecialTypeId"}) {
    all.push_back({name, name, {{"value", "string", true, kRead, "a static function"}}, {}, true});
  }
  all.push_back(
      {"beankey",
       "beankey",
       {kName, {"TypeId", "long", false, kRead, "default: hash of the full name"}, kComment},
       {"variable", "var", "enum"},
       true,
       "an immutable struct that can be a key"});
  return all;
}

std::vector<ElementInfo> MakeLanguage() {
  std::vector<ElementInfo> all = {
      SolutionInfo(),           ModuleInfo(),        BeanInfo(),
      VariableInfo("variable"), VariableInfo("var"), ProtocolInfo(false),
      ProtocolInfo(true),       TableInfo(),         ProjectInfo("project"),
      ProjectInfo("component")};
  for (auto elements : {&SmallElements, &ProjectElements, &TypeElements}) {
    for (ElementInfo& info : elements()) all.push_back(std::move(info));
  }
  return all;
}

xml::KnownNames MakeKnownNames() {
  xml::KnownNames names;
  for (const ElementInfo& info : Language()) {
    xml::KnownElement known = {.kind = std::string(info.kind)};
    for (const AttributeInfo& attribute : info.attributes) {
      known.attributes.emplace_back(attribute.name);
    }
    for (std::string_view child : info.children) {
      known.children.emplace_back(FindElementInfo(child)->name);
    }
    known.unknown_child_is_error = info.closed;
    names.Add(std::move(known));
  }
  names.AddDead("table", "CheckpointWhenCommit",
                "it is a run-time setting: put it on the TableConf of zeze.xml");
  names.AddDead("beankey", "kind", "keys have no kinds");
  names.AddDead("module ref", "dynamic",
                "whether a module is dynamic is said in "
                "provider.module.binds.xml");
  for (const char* kind : {"variable", "var"}) {
    names.AddDead(kind, "validator", "no version has ever used it");
  }
  names.AddDead("table", "autoIncrement", "the attribute is called autokey");
  return names;
}

}  // namespace

const std::vector<ElementInfo>& Language() {
  static const std::vector<ElementInfo> language = MakeLanguage();
  return language;
}

const ElementInfo* FindElementInfo(std::string_view kind) {
  for (const ElementInfo& info : Language()) {
    if (info.kind == kind) return &info;
  }
  return nullptr;
}

const xml::KnownNames& KnownSchemaNames() {
  static const xml::KnownNames names = MakeKnownNames();
  return names;
}

}  // namespace zeze::gen
