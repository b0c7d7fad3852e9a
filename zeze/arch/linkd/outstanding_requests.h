// OutstandingRequests: the requests of one client that servers have got and not answered yet.
//
//   outstanding.Add({.type = type, .call = 7, .provider = link->id}, 64);
//   outstanding.Answered(type, 7);
//   for (const auto& request : outstanding.TakeOf(link->id)) ...     // That server is lost.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeze/arch/linkd/provider_directory.h"

namespace zeze::arch {

// In the order in which they were sent. Small: a gateway has one for each of its clients, and most
// of them have no request under way. Not thread-safe.
class OutstandingRequests {
 public:
  struct Request {
    std::int64_t type = 0;  // Of the protocol.
    std::int64_t call = 0;  // The client's number for it.
    ProviderId provider = 0;

    bool operator==(const Request&) const = default;
  };

  std::size_t size() const { return requests_.size(); }

  // When there are `max` of them, the oldest is forgotten.
  void Add(const Request& request, std::size_t max) {
    if (requests_.size() >= max) requests_.erase(requests_.begin());
    requests_.push_back(request);
  }

  // False: there is no such request, or it was answered before.
  bool Answered(std::int64_t type, std::int64_t call) {
    const auto found = std::ranges::find_if(requests_, [type, call](const Request& request) {
      return request.call == call && request.type == type;
    });
    if (found == requests_.end()) return false;
    requests_.erase(found);
    return true;
  }

  // Those that this server will not answer any more.
  std::vector<Request> TakeOf(ProviderId provider) {
    std::vector<Request> taken;
    std::erase_if(requests_, [&](const Request& request) {
      if (request.provider != provider) return false;
      taken.push_back(request);
      return true;
    });
    return taken;
  }

  void Clear() { requests_.clear(); }

 private:
  std::vector<Request> requests_;
};

}  // namespace zeze::arch
