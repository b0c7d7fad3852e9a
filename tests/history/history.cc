#include "tests/history/history.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "zeze/base/check.h"

namespace zeze::history {

ListState ListState::Extended(Element element) const {
  // The length takes part, so that no element is neutral at the beginning. splitmix64 finalizer.
  std::uint64_t mixed = hash * 0x9e3779b97f4a7c15 + element + length + 1;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return {length + 1, element, mixed ^ (mixed >> 31)};
}

ListState ListState::Of(std::span<const Element> elements) {
  ListState state;
  for (const Element element : elements) state = state.Extended(element);
  return state;
}

std::string_view ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCommitted:
      return "committed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kAborted:
      return "aborted";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kLost:
      return "lost";
  }
  return "?";
}

std::span<const Operation> History::operations(const Transaction& transaction) const {
  return std::span(operations_).subspan(transaction.first_operation, transaction.operation_count);
}

std::span<const Element> History::elements(const Operation& operation) const {
  ZEZE_CHECK(operation.kind == OperationKind::kReadList);
  return std::span(elements_).subspan(operation.detail, operation.length);
}

std::string_view History::name(const Transaction& transaction) const {
  return names_[transaction.name];
}

const Transaction* History::Find(TransactionId id) const {
  const auto found = std::ranges::find(transactions_, id, &Transaction::id);
  return found == transactions_.end() ? nullptr : &*found;
}

void History::Begin(TransactionId id, std::size_t thread, std::string_view name,
                    std::uint64_t stamp) {
  ZEZE_CHECK(!open_);
  open_ = true;
  transactions_.push_back({.id = id,
                           .begin = stamp,
                           .end = stamp,
                           .first_operation = operations_.size(),
                           .thread = static_cast<std::uint32_t>(thread),
                           .name = Intern(name)});
}

void History::Read(Key key, const ListState& state) {
  ZEZE_CHECK(open_);
  ZEZE_CHECK(state.length <= UINT32_MAX);
  operations_.push_back({.key = key,
                         .element = state.last,
                         .detail = state.hash,
                         .length = static_cast<std::uint32_t>(state.length),
                         .kind = OperationKind::kReadState});
}

void History::Read(Key key, std::span<const Element> elements) {
  ZEZE_CHECK(open_);
  ZEZE_CHECK(elements.size() <= UINT32_MAX);
  operations_.push_back({.key = key,
                         .element = elements.empty() ? 0 : elements.back(),
                         .detail = elements_.size(),
                         .length = static_cast<std::uint32_t>(elements.size()),
                         .kind = OperationKind::kReadList});
  elements_.insert(elements_.end(), elements.begin(), elements.end());
}

void History::Append(Key key, Element element) {
  ZEZE_CHECK(open_);
  operations_.push_back({.key = key, .element = element, .kind = OperationKind::kAppend});
}

void History::RollbackTo(std::size_t operation_count) {
  ZEZE_CHECK(open_);
  const std::uint64_t first = transactions_.back().first_operation;
  const std::uint64_t count = operations_.size() - first;
  ZEZE_CHECK(operation_count <= count);
  for (std::uint64_t i = operation_count; i < count; ++i) {
    Operation& operation = operations_[first + i];
    if (operation.kind == OperationKind::kAppend && operation.detail == 0) {
      operation.detail = count + 1;
    }
  }
}

void History::End(Outcome outcome, std::uint64_t stamp) {
  ZEZE_CHECK(open_);
  open_ = false;
  Transaction& transaction = transactions_.back();
  transaction.outcome = outcome;
  transaction.end = stamp;
  transaction.operation_count =
      static_cast<std::uint32_t>(operations_.size() - transaction.first_operation);
}

void History::Reserve(std::size_t transaction_count, std::size_t operation_count) {
  transactions_.reserve(transaction_count);
  operations_.reserve(operation_count);
}

void History::MarkLost(std::span<const TransactionId> ids) {
  std::vector<TransactionId> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  for (Transaction& transaction : transactions_) {
    if (std::binary_search(sorted.begin(), sorted.end(), transaction.id))
      transaction.outcome = Outcome::kLost;
  }
}

void History::Concatenate(const History& later) {
  ZEZE_CHECK(!open_);
  ZEZE_CHECK(!later.open_);
  std::uint64_t stamp_max = 0;
  std::uint32_t thread_count = 0;
  for (const Transaction& transaction : transactions_) {
    stamp_max = std::max({stamp_max, transaction.begin, transaction.end});
    thread_count = std::max(thread_count, transaction.thread + 1);
  }
  std::vector<std::uint32_t> names;
  names.reserve(later.names_.size());
  for (const auto& name : later.names_) names.push_back(Intern(name));
  const std::size_t first_operation = operations_.size();
  const std::size_t first_element = elements_.size();
  for (Transaction transaction : later.transactions_) {
    transaction.begin += stamp_max + 1;
    transaction.end += stamp_max + 1;
    transaction.first_operation += first_operation;
    transaction.thread += thread_count;
    transaction.name = names[transaction.name];
    transactions_.push_back(transaction);
  }
  for (Operation operation : later.operations_) {
    if (operation.kind == OperationKind::kReadList) operation.detail += first_element;
    operations_.push_back(operation);
  }
  elements_.insert(elements_.end(), later.elements_.begin(), later.elements_.end());
}

// A run has a handful of procedures, and the next transaction is often of the same one.
std::uint32_t History::Intern(std::string_view name) {
  const auto index = std::ranges::find(names_, name) - names_.begin();
  if (static_cast<std::size_t>(index) == names_.size()) names_.emplace_back(name);
  return static_cast<std::uint32_t>(index);
}

}  // namespace zeze::history
