#include "tests/history/analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tests/history/checker.h"
#include "tests/history/history.h"
#include "tests/history/index_map.h"
#include "zeze/base/check.h"

namespace zeze::history::internal {

void AnomalyList::Add(AnomalyKind kind, std::vector<TransactionId> transactions,
                      const std::function<std::string()>& text) {
  ++count;
  const bool is_of_state = std::ranges::find(transactions, kStateId) != transactions.end();
  if (++count_of_kind_[static_cast<std::size_t>(kind)] > max_ && !is_of_state) return;
  anomalies.push_back(
      {.kind = kind, .transactions = std::move(transactions), .cycle = {}, .text = text()});
}

// What one transaction did to one key, up to the operation being looked at.
struct Analysis::Group {
  std::uint32_t transaction = 0;
  std::uint32_t key = 0;
  std::uint32_t read = kNone;
  std::vector<std::uint32_t> own;   // Its appends so far, the undone included.
  std::vector<std::uint32_t> live;  // Those of them that the operation must see.
};

Analysis::Analysis(const History& history, const Options& options)
    : anomalies(options.anomalies_max), history_(history), options_(options) {
  ZEZE_CHECK(history.operations().size() < (1u << 29));
  RegisterAppends();
  ChooseRoles();
  ReadTransactions();
  GroupByKey();
  for (std::uint32_t key = 0; key < keys_.size(); ++key) OrderKey(key);
}

std::span<const std::uint32_t> Analysis::AppendsOf(std::uint32_t key) const {
  return std::span(appends_by_key_)
      .subspan(append_begin_[key], append_begin_[key + 1] - append_begin_[key]);
}

std::span<const std::uint32_t> Analysis::ReadsOf(std::uint32_t key) const {
  return std::span(reads_by_key_)
      .subspan(read_begin_[key], read_begin_[key + 1] - read_begin_[key]);
}

std::span<const std::uint32_t> Analysis::OrderOf(std::uint32_t key) const {
  return std::span(order_).subspan(append_begin_[key], order_length_[key]);
}

std::string Analysis::Name(std::uint32_t transaction) const {
  const Transaction& named = history_.transactions()[transaction];
  if (named.id == kStateId) return std::string(history_.name(named));
  return fmt::format("T{} `{}`", named.id, history_.name(named));
}

std::string Analysis::KeyName(Key key) const {
  return options_.key_name ? options_.key_name(key) : fmt::format("key {}", key);
}

// ---- Appends of all transactions, also of those that were rolled back.

void Analysis::RegisterAppends() {
  const auto operations = history_.operations();
  std::size_t append_count = 0;
  for (const Operation& operation : operations) {
    append_count += operation.kind == OperationKind::kAppend ? 1 : 0;
  }
  appends_.reserve(append_count);
  append_index_ = IndexMap(append_count);
  append_of_operation_.assign(operations.size(), kNone);
  for (std::uint32_t i = 0; i < history_.transactions().size(); ++i) {
    SortByKey(i);
    std::uint32_t last = kNone;  // Of the current key, not undone.
    for (const std::uint32_t operation : sorted_) {
      if (operations[operation].kind != OperationKind::kAppend) continue;
      RegisterAppend(i, operation);
      Append& append = appends_.back();
      if (append.undone) continue;
      if (last != kNone && appends_[last].key == append.key) appends_[last].last = false;
      append.last = true;
      last = static_cast<std::uint32_t>(appends_.size() - 1);
    }
  }
}

void Analysis::RegisterAppend(std::uint32_t transaction, std::uint32_t operation) {
  const Operation& appended = history_.operations()[operation];
  const auto index = static_cast<std::uint32_t>(appends_.size());
  const std::uint32_t key =
      key_index_.Insert(appended.key, 0, static_cast<std::uint32_t>(keys_.size()));
  if (key == keys_.size()) keys_.push_back(appended.key);
  appends_.push_back({.transaction = transaction,
                      .operation = operation,
                      .key = key,
                      .undone = appended.detail != 0});
  append_of_operation_[operation] = index;
  const std::uint32_t first = append_index_.Insert(appended.key, appended.element, index);
  if (first == index) return;
  anomalies.Add(AnomalyKind::kDuplicateAppend, {Id(appends_[first].transaction), Id(transaction)},
                [&] {
                  return fmt::format(
                      "{} and {} both appended element {} to {}: elements must be "
                      "unique, also across retries",
                      Name(appends_[first].transaction), Name(transaction), appended.element,
                      KeyName(appended.key));
                });
}

// The operations of a transaction into sorted_: by key, then as they happened.
void Analysis::SortByKey(std::uint32_t transaction) {
  const Transaction& sorting = history_.transactions()[transaction];
  sorted_.resize(sorting.operation_count);
  std::iota(sorted_.begin(), sorted_.end(), static_cast<std::uint32_t>(sorting.first_operation));
  const auto operations = history_.operations();
  std::ranges::sort(sorted_, [&](std::uint32_t left, std::uint32_t right) {
    const Key left_key = operations[left].key;
    const Key right_key = operations[right].key;
    return left_key != right_key ? left_key < right_key : left < right;
  });
}

// ---- Who takes part, and what they read.

void Analysis::ChooseRoles() {
  const auto transactions = history_.transactions();
  roles_.assign(transactions.size(), Role::kOutside);
  for (std::uint32_t i = 0; i < transactions.size(); ++i) {
    const Outcome outcome = transactions[i].outcome;
    if (outcome == Outcome::kCommitted) {
      roles_[i] = Role::kWriter;
    } else if (outcome == Outcome::kFailed
                   ? options_.readers != Options::Readers::kCommitted
                   : outcome != Outcome::kLost && options_.readers == Options::Readers::kAll) {
      roles_[i] = Role::kReader;
    }
    if (roles_[i] != Role::kOutside) to_read_.push_back(i);
  }
}

void Analysis::ReadTransactions() {
  // By index: a transaction of unknown outcome joins when somebody has seen one of its elements.
  for (std::size_t i = 0; i < to_read_.size(); ++i) ReadTransaction(to_read_[i]);
  to_read_ = {};
}

void Analysis::ReadTransaction(std::uint32_t transaction) {
  SortByKey(transaction);
  const auto operations = history_.operations();
  for (std::size_t begin = 0; begin < sorted_.size();) {
    std::size_t end = begin + 1;
    while (end < sorted_.size() && operations[sorted_[end]].key == operations[sorted_[begin]].key) {
      ++end;
    }
    ReadGroup(transaction, std::span(sorted_).subspan(begin, end - begin));
    begin = end;
  }
}

void Analysis::ReadGroup(std::uint32_t transaction, std::span<const std::uint32_t> operations) {
  const Key key = history_.operations()[operations.front()].key;
  Group group;
  group.transaction = transaction;
  group.key = key_index_.Insert(key, 0, static_cast<std::uint32_t>(keys_.size()));
  if (group.key == keys_.size()) keys_.push_back(key);
  const std::uint64_t first = history_.transactions()[transaction].first_operation;
  for (const std::uint32_t operation : operations) {
    if (history_.operations()[operation].kind == OperationKind::kAppend) {
      group.own.push_back(append_of_operation_[operation]);
      continue;
    }
    group.live.clear();
    for (const std::uint32_t append : group.own) {
      const std::uint64_t undone = history_.operations()[appends_[append].operation].detail;
      if (undone == 0 || operation - first < undone - 1) group.live.push_back(append);
    }
    if (!CheckOwnAppends(group, operation)) continue;
    if (group.read == kNone) {
      ReadFirst(group, operation);
    } else {
      ReadAgain(group, operation);
    }
  }
  for (const std::uint32_t append : group.own) appends_[append].read = group.read;
}

// What a transaction appended itself must stand at the end of what it reads.
bool Analysis::CheckOwnAppends(const Group& group, std::uint32_t operation) {
  const Operation& read = history_.operations()[operation];
  std::uint32_t missing = kNone;
  for (std::size_t i = 0; i < group.live.size(); ++i) {
    const std::size_t behind = group.live.size() - i;  // 1 for the last.
    const Element own = ElementOf(group.live[i]);
    const bool seen =
        read.length >= behind && (read.kind == OperationKind::kReadList
                                      ? history_.elements(read)[read.length - behind] == own
                                      : behind != 1 || read.element == own);
    if (!seen) {
      missing = group.live[i];
      break;
    }
  }
  if (missing == kNone) return true;
  anomalies.Add(AnomalyKind::kInternal, {Id(group.transaction)}, [&] {
    return fmt::format(
        "{} read the list of {} (length {}) without its own element {}, which it "
        "had appended before",
        Name(group.transaction), KeyName(read.key), read.length, ElementOf(missing));
  });
  return false;
}

void Analysis::ReadFirst(Group& group, std::uint32_t operation) {
  const Operation& seen = history_.operations()[operation];
  const auto own_count = static_cast<std::uint32_t>(group.live.size());
  Read read{.transaction = group.transaction,
            .operation = operation,
            .key = group.key,
            .length = seen.length - own_count};
  if (seen.kind == OperationKind::kReadList) {
    const auto elements = history_.elements(seen).first(read.length);
    read.hash = ListState::Of(elements).hash;
    read.has_hash = true;
    for (std::size_t i = 0; i < elements.size() && !read.broken; ++i) {
      CheckElement(read, elements[i], i + 1 == elements.size());
    }
  } else if (own_count == 0) {
    read.hash = seen.detail;
    read.has_hash = true;
    if (read.length > 0) CheckElement(read, seen.element, true);
  }
  group.read = static_cast<std::uint32_t>(reads_.size());
  reads_.push_back(read);
}

// A list that a transaction has read changes only by its own appends.
void Analysis::ReadAgain(const Group& group, std::uint32_t operation) {
  const Operation& seen = history_.operations()[operation];
  const Read& first = reads_[group.read];
  bool same = seen.length - group.live.size() == first.length;
  if (same && first.has_hash) {
    ListState expected{first.length, 0, first.hash};
    for (const std::uint32_t append : group.live) expected = expected.Extended(ElementOf(append));
    same = expected.hash == (seen.kind == OperationKind::kReadList
                                 ? ListState::Of(history_.elements(seen)).hash
                                 : seen.detail);
  }
  if (same) return;
  anomalies.Add(AnomalyKind::kInternal, {Id(group.transaction)}, [&] {
    const Operation& before = history_.operations()[first.operation];
    return fmt::format(
        "{} read the list of {} twice and it changed in between, not by its own appends: length {} "
        "and last element {}, then length {} and last element {}",
        Name(group.transaction), KeyName(seen.key), before.length, before.element, seen.length,
        seen.element);
  });
}

void Analysis::CheckElement(Read& read, Element element, bool is_last) {
  const Key key = keys_[read.key];
  const std::uint32_t found = append_index_.Find(key, element);
  if (found == kNone) {
    read.broken = true;
    ReportUnknownElement(read, element);
    return;
  }
  const Append& append = appends_[found];
  if (is_last) read.last_append = found;
  if (append.transaction == read.transaction) {
    read.broken = true;
    anomalies.Add(AnomalyKind::kInternal, {Id(read.transaction)}, [&] {
      return fmt::format(
          "{} read its own element {} of {}, which it had not appended yet or had "
          "undone",
          Name(read.transaction), element, KeyName(key));
    });
    return;
  }
  const Outcome outcome = history_.transactions()[append.transaction].outcome;
  if (outcome == Outcome::kUnknown && !append.undone) {
    if (roles_[append.transaction] == Role::kOutside) to_read_.push_back(append.transaction);
    roles_[append.transaction] = Role::kWriter;
  } else if (outcome != Outcome::kCommitted || append.undone) {
    anomalies.Add(AnomalyKind::kAbortedRead, {Id(read.transaction), Id(append.transaction)}, [&] {
      return fmt::format("{} read element {} of {}, which {} appended and {}",
                         Name(read.transaction), element, KeyName(key), Name(append.transaction),
                         outcome == Outcome::kLost ? "a crash took away" : "rolled back");
    });
    return;
  }
  if (!is_last || append.last) return;
  anomalies.Add(AnomalyKind::kIntermediateRead, {Id(read.transaction), Id(append.transaction)},
                [&] {
                  return fmt::format(
                      "{} read the list of {} ending with element {}, in the middle of the "
                      "appends of {}",
                      Name(read.transaction), KeyName(key), element, Name(append.transaction));
                });
}

void Analysis::ReportUnknownElement(const Read& read, Element element) {
  const Key key = keys_[read.key];
  anomalies.Add(AnomalyKind::kUnknownElement, {Id(read.transaction)}, [&] {
    std::string hint;
    for (const Append& append : appends_) {
      if (ElementOf(static_cast<std::uint32_t>(&append - appends_.data())) != element) continue;
      hint = fmt::format(" ({} appended it to {})", Name(append.transaction),
                         KeyName(keys_[append.key]));
      break;
    }
    return fmt::format("{} read element {} of {}, which nobody appended there{}",
                       Name(read.transaction), element, KeyName(key), hint);
  });
}

}  // namespace zeze::history::internal
