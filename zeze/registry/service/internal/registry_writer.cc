#include "zeze/registry/service/internal/registry_writer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "zeze/base/result.h"
#include "zeze/base/wait_group.h"
#include "zeze/net/io_threads.h"
#include "zeze/registry/service/registry_store.h"

namespace zeze::registry {

void RegistryWriter::Put(const RegistryStore::RowKey& row, std::optional<std::string> value) {
  next_[row] = std::move(value);
  // At the end of this turn, so that what belongs together is written together.
  if (next_.size() > 1 || writing_) return;
  io_.Post([this, alive = alive_] {
    if (*alive) Write();
  });
}

void RegistryWriter::Sync(Done done) {
  next_done_.push_back(std::move(done));
  if (next_done_.size() > 1 || writing_) return;
  io_.Post([this, alive = alive_] {
    if (*alive) Write();
  });
}

void RegistryWriter::Write() {
  if (writing_) return;
  if (batch_ == nullptr) {
    if (next_.empty() && next_done_.empty()) return;
    batch_ = std::make_shared<const RegistryStore::Rows>(std::exchange(next_, {}));
    batch_done_ = std::exchange(next_done_, {});
  }
  writing_ = true;
  background_.Add();
  const bool sync = !batch_done_.empty();
  blocking_.Post([this, alive = alive_, batch = batch_, sync] {
    const Result<void> written = store_.Write(*batch, sync);
    io_.Post([this, alive, saved = written.ok(),
              why = written.ok() ? std::string() : written.error().message()] {
      if (*alive) OnWritten(saved, why);
    });
    background_.Done();
  });
}

void RegistryWriter::OnWritten(bool saved, const std::string& why) {
  writing_ = false;
  for (const Done& done : std::exchange(batch_done_, {})) done(saved);
  if (saved) {
    trouble_.Over(io_.clock().Now());
    batch_.reset();
    return Write();
  }
  const auto delay = trouble_.Failed(why, io_.clock().Now());
  // Who waits for a later write must not wait for ever.
  for (const Done& done : std::exchange(next_done_, {})) done(false);
  io_.PostAfter(delay, [this, alive = alive_] {
    if (*alive) Write();
  });
}

void RegistryWriter::Stop() {
  WaitGroup ended(1);
  io_.Post([this, &ended] {
    *alive_ = false;
    ended.Done();
  });
  ended.Wait();
  background_.Wait();
  // The last batch may have failed: then it comes first.
  if (batch_ != nullptr && !store_.Write(*batch_, true).ok()) return;
  if (!next_.empty()) (void)store_.Write(next_, true);
}

}  // namespace zeze::registry
