// RpcTable: the calls of one connection that wait for their answers.
//
//   std::optional<std::int64_t> id = table.Add(std::move(call), now, timeout);
//   std::optional<RpcTable::Call> call = table.Take(answer.session_id);
//
// No I/O, no clock and no lock of its own: the connection has them.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeze/net/rpc.h"
#include "zeze/net/service_options.h"

namespace zeze::internal {

// Session ids are a slot and how often it was used, so that an answer that comes after its call has
// ended never meets a later one. All operations take constant time as long as time-outs are of few
// different lengths.
class RpcTable {
 public:
  static constexpr std::size_t kCallsMax = std::size_t{1} << 20;

  struct Call {
    std::int64_t type_id = 0;
    Dispatch dispatch = Dispatch::kInline;
    RawCompletion completion = {};
  };

  explicit RpcTable(std::size_t calls_max);

  // The id to send, or none if the table is full; the call is untouched then.
  std::optional<std::int64_t> Add(Call&& call, std::chrono::nanoseconds now,
                                  std::chrono::nanoseconds timeout);

  // Removes a call; none if it has ended before.
  std::optional<Call> Take(std::int64_t session_id);

  // Null if it has ended before.
  const Call* Find(std::int64_t session_id) const;

  // Removes the calls whose time is over, the oldest first within a length of time-out.
  std::vector<Call> TakeExpired(std::chrono::nanoseconds now);

  // Removes all, in the order in which they were added.
  std::vector<Call> TakeAll();

  // When TakeExpired has something to do next.
  std::optional<std::chrono::nanoseconds> NextDeadline() const;

  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kListCount = 16;

  struct Slot {
    Call call;
    std::uint64_t use = 0;       // How often it was used before.
    std::uint64_t sequence = 0;  // Among all calls of the table.
    std::chrono::nanoseconds deadline{0};
    std::uint32_t previous = kNone;  // In the list of its time-out, or of free slots (next only).
    std::uint32_t next = kNone;
    std::uint8_t list = 0;
    bool used = false;
  };

  // In the order of deadlines. Equal time-outs share a list, so a new call goes to its end.
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  static std::int64_t SessionId(std::uint32_t index, const Slot& slot);
  std::uint32_t IndexOf(std::int64_t session_id) const;
  void Insert(std::uint32_t index, std::size_t list);
  Call Remove(std::uint32_t index);

  std::size_t calls_max_;
  std::size_t size_ = 0;
  std::uint64_t added_ = 0;
  std::uint32_t first_free_ = kNone;
  std::vector<Slot> slots_;
  std::array<List, kListCount> lists_;
};

}  // namespace zeze::internal
