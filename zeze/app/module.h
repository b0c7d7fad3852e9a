// Module: a part of an application with its tables and handlers. The generator writes a base for
// each module of a schema; the application derives from it:
//
//   class ModuleGame final : public demo::Game::ModuleGameBase {
//    public:
//     std::int64_t ProcessLogin(zeze::Transaction& tx, zeze::Session& session,
//                               const BLogin& argument, BLoginResult& result) override;
//   };
//
// The framework adds the tables before Start, calls Start in the project's start order when tables
// can be used and Stop in the opposite order, and runs handlers in between.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "zeze/app/protocol.h"
#include "zeze/base/result.h"

namespace zeze {

class Application;
class ByteReader;
class ByteWriter;
class Module;
class Session;
class TableBase;
class Transaction;

// One request: the decoded argument and room for the result. Runs any number of times, each with a
// fresh result, so a transaction can be repeated.
class ProtocolCall {
 public:
  ProtocolCall() = default;
  ProtocolCall(const ProtocolCall&) = delete;
  ProtocolCall& operator=(const ProtocolCall&) = delete;
  virtual ~ProtocolCall() = default;

  // The handler's result code. `transaction` is null exactly if the level is kNone.
  virtual std::int64_t Run(Module& module, Transaction* transaction, Session& session) = 0;
  // Appends the result of the last run; nothing for one-way protocols.
  virtual void EncodeResult(ByteWriter& out) const = 0;
};

struct ProtocolHandler {
  const ProtocolDescriptor* protocol = nullptr;
  // Reads the argument. Whether the bytes were good is the reader's ok().
  std::unique_ptr<ProtocolCall> (*decode)(ByteReader& argument) = nullptr;
};

class Module {
 public:
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  virtual std::int32_t id() const = 0;
  // Dotted, from the solution down.
  virtual std::string_view name() const = 0;

  // An error or exception stops the start of the application; modules already started are stopped
  // again.
  virtual Result<void> Start(Application& application);
  // Called once for each Start that succeeded. An exception is logged and becomes the error of
  // Application::Stop; the rest is stopped and saved in spite of it.
  virtual void Stop(Application& application);

  // The module's tables and handlers, all living as long as the module.
  virtual std::vector<TableBase*> Tables() = 0;
  virtual std::span<const ProtocolHandler> Handlers() const = 0;

  // The handler of a protocol, null if this module does not handle it.
  const ProtocolHandler* FindHandler(std::int64_t type_id) const;

 protected:
  Module() = default;
};

}  // namespace zeze
