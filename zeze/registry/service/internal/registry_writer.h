// RegistryWriter: saves rows in the background, many of them with one write.
//
//   writer.Put(row, value);
//   writer.Sync([](bool saved) { ... });   // When everything put so far is safe, or was not saved.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeze/base/executor.h"
#include "zeze/base/trouble.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_store.h"

namespace zeze::registry {

// For the network thread only, except Stop. The order of the writes is that of the calls. A write
// that failed is repeated exactly, before any other, because its outcome may be unknown.
class RegistryWriter {
 public:
  // On the network thread.
  using Done = std::function<void(bool saved)>;

  // All outlive the writer.
  RegistryWriter(IoThreads& io, Executor& blocking, RegistryStore& store)
      : io_(io), blocking_(blocking), store_(store) {}

  void Put(const RegistryStore::RowKey& row, std::optional<std::string> value);
  void Sync(Done done);

  // Writes what is left; nothing is called back any more. Not on the network thread, which must not
  // call the writer any more.
  void Stop();

 private:
  void Write();
  void OnWritten(bool saved, const std::string& why);

  IoThreads& io_;
  Executor& blocking_;
  RegistryStore& store_;
  RegistryStore::Rows next_;
  std::vector<Done> next_done_;
  std::shared_ptr<const RegistryStore::Rows> batch_;  // Being written, or to be repeated.
  std::vector<Done> batch_done_;
  bool writing_ = false;
  Trouble trouble_{{.what = "the service manager cannot save its state",
                    .over = "the service manager saves its state again",
                    .first_delay = std::chrono::seconds(1),
                    .delay_max = std::chrono::seconds(10)}};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Network thread only.
  WaitGroup background_;
};

}  // namespace zeze::registry
