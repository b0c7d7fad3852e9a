// NotifyReceiver: puts the reliable notifies of a login into their order, and drops those that it
// has seen.
//
//   receiver.Add(index, frame);
//   while (const std::string* frame = receiver.Front()) { Handle(*frame); receiver.PopFront(); }
//   if (receiver.HasGap()) ...                                    // Ask for what is missing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "zeze/messages/notify_hash.h"

namespace zeze::internal {

class NotifyReceiver {
 public:
  // What comes too early is kept up to these limits. The server sends the rest again on request.
  static constexpr std::size_t kFramesMax = 1024;
  static constexpr std::size_t kBytesMax = 1 << 20;

  // A fresh login: the server counts from 0.
  void Reset() { *this = NotifyReceiver(); }

  // False: there is no room for it, it has to come again.
  bool Add(std::int64_t index, std::string frame) {
    if (index < next_ || frames_.contains(index)) return true;
    const bool room = frames_.size() < kFramesMax && bytes_ + frame.size() <= kBytesMax;
    // The next one can be handled and forgotten.
    if (!room && index != next_) return false;
    bytes_ += frame.size();
    frames_.emplace(index, std::move(frame));
    return true;
  }

  // The notify to handle now, null if there is none. It counts as handled after PopFront.
  const std::string* Front() const {
    const auto first = frames_.find(next_);
    return first == frames_.end() ? nullptr : &first->second;
  }
  void PopFront() {
    const auto first = frames_.find(next_);
    hash_ = ExtendNotifyHash(hash_, first->second);
    bytes_ -= first->second.size();
    frames_.erase(first);
    ++next_;
  }

  // A later notify has come, but not the next one.
  bool HasGap() const { return !frames_.empty() && frames_.begin()->first != next_; }

  // What was handled: everything below the index, and its hash.
  std::int64_t next() const { return next_; }
  std::int64_t hash() const { return hash_; }

 private:
  std::map<std::int64_t, std::string> frames_;  // By index, from next_ on.
  std::size_t bytes_ = 0;
  std::int64_t next_ = 0;
  std::int64_t hash_ = kNotifyHashAtLogin;
};

}  // namespace zeze::internal
