#include "tests/history/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/history.h"
#include "tests/history/log.h"
#include "zeze/base/check.h"
#include "zeze/base/result.h"

namespace zeze::history {

using internal::RecordKind;
using internal::ThreadLog;

namespace {

constexpr std::string_view kExtension = ".history";
constexpr std::uint32_t kElementBits = 12;

}  // namespace

Attempt::Attempt(ThreadLog& log, std::string_view procedure) : log_(&log), home_(&log) {
  ZEZE_CHECK(!log.open);
  log.open = true;
  log.current_name = log.Name(procedure);
  const Recorder::Options& options = log.recorder->options_;
  id_ = options.id_base + log.attempt_count++ * options.thread_count + log.thread() + 1;
  log.Write(RecordKind::kBegin, log.current_name, log.recorder->Now(), id_);
}

Attempt::Attempt(Attempt&& other) noexcept
    : log_(std::exchange(other.log_, nullptr)),
      home_(other.home_),
      id_(other.id_),
      operation_count_(other.operation_count_),
      element_count_(other.element_count_) {}

Attempt& Attempt::operator=(Attempt&& other) noexcept {
  if (this == &other) return *this;
  if (log_ != nullptr) End(Outcome::kUnknown);
  log_ = std::exchange(other.log_, nullptr);
  home_ = other.home_;
  id_ = other.id_;
  operation_count_ = other.operation_count_;
  element_count_ = other.element_count_;
  return *this;
}

Attempt::~Attempt() {
  if (log_ != nullptr) End(Outcome::kUnknown);
}

Element Attempt::NewElement() {
  ZEZE_CHECK(element_count_ < (1u << kElementBits));
  return id_ << kElementBits | element_count_++;
}

void Attempt::Read(Key key, const ListState& state) {
  ZEZE_CHECK(log_ != nullptr);
  ZEZE_CHECK(state.length <= UINT32_MAX);
  log_->Write(RecordKind::kReadState, static_cast<std::uint32_t>(state.length), key, state.last,
              state.hash);
  ++operation_count_;
}

void Attempt::Read(Key key, std::span<const Element> elements) {
  ZEZE_CHECK(log_ != nullptr);
  ZEZE_CHECK(elements.size() <= UINT32_MAX);
  log_->Write(RecordKind::kReadList, static_cast<std::uint32_t>(elements.size()), key);
  log_->WriteElements(elements);
  ++operation_count_;
}

void Attempt::Append(Key key, Element element) {
  ZEZE_CHECK(log_ != nullptr);
  log_->Write(RecordKind::kAppend, 0, key, element);
  ++operation_count_;
}

void Attempt::RollbackTo(Savepoint savepoint) {
  ZEZE_CHECK(log_ != nullptr);
  ZEZE_CHECK(savepoint <= operation_count_);
  log_->Write(RecordKind::kRollback, savepoint);
}

void Attempt::Commit() {
  End(Outcome::kCommitted);
}

void Attempt::Fail() {
  End(Outcome::kFailed);
}

void Attempt::Abort() {
  End(Outcome::kAborted);
}

void Attempt::Restart() {
  Abort();
  Recorder& recorder = *home_->recorder;
  id_ += recorder.options_.thread_count;
  ++home_->attempt_count;
  log_ = home_;
  log_->open = true;
  log_->Write(RecordKind::kBegin, log_->current_name, recorder.Now(), id_);
  operation_count_ = 0;
  element_count_ = 0;
}

void Attempt::End(Outcome outcome) {
  ZEZE_CHECK(log_ != nullptr);
  log_->Write(RecordKind::kEnd, 0, log_->recorder->Now(), static_cast<std::uint64_t>(outcome));
  log_->open = false;
  log_ = nullptr;
}

Recorder::Recorder(Options options) : options_(std::move(options)) {
  ZEZE_CHECK(options_.thread_count > 0);
  for (std::size_t thread = 0; thread < options_.thread_count; ++thread) {
    logs_.push_back(std::make_unique<ThreadLog>(thread));
    logs_.back()->recorder = this;
  }
}

Recorder::~Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::Open(const std::string& directory, Options options) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("cannot create the directory {}: {}", directory, failed.message()));
  }
  auto recorder = std::make_unique<Recorder>(std::move(options));
  for (auto& log : recorder->logs_) {
    const std::string path = fmt::format("{}/{}{}", directory, log->thread(), kExtension);
    auto file = ThreadLog::Create(path, log->thread());
    if (!file.ok()) return file.error();
    log = std::move(file).value();
    log->recorder = recorder.get();
  }
  return recorder;
}

Attempt Recorder::Begin(std::size_t thread, std::string_view procedure) {
  ZEZE_CHECK(thread < logs_.size());
  return {*logs_[thread], procedure};
}

History Recorder::Finish() {
  History history;
  for (auto& log : logs_) {
    ZEZE_CHECK(!log->open);
    log->MoveTo(history);
  }
  return history;
}

std::uint64_t Recorder::Now() {
  // Sequentially consistent: an attempt that gets a larger stamp at its begin than another got at
  // its end really started after the other was over.
  return options_.now ? options_.now() : counter_.fetch_add(1) + 1;
}

std::uint64_t SteadyClockStamp() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

Result<History> LoadRecording(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (entry.path().extension() == kExtension) paths.push_back(entry.path().string());
  }
  if (paths.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("no recording (*{}) found in {}", kExtension, directory));
  }
  std::ranges::sort(paths);
  History history;
  for (const std::string& path : paths) {
    const auto loaded = ThreadLog::Load(path, history);
    if (!loaded.ok()) return loaded.error();
  }
  return history;
}

}  // namespace zeze::history
