// IdAllocator: hands out blocks of ids, each id of a name at most once, whatever crashes when.
//
//   allocator.Allocate(request, "Shop.tOrder", 100);   // GrantIds now, or after SaveIdLimit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "zeze/registry/messages.h"
#include "zeze/registry/registry_output.h"

namespace zeze::registry {

// Nothing is granted at or above the limit that was last saved for a name. After a restart ids
// begin above the limit: those between are burnt.
class IdAllocator {
 public:
  struct Options {
    IdKind kind = IdKind::k64;
    Id128 first = {.high = 0, .low = 1};
    Id128 last = {.high = 0, .low = std::uint64_t{INT64_MAX}};
    std::size_t names_max = 100'000;
    std::size_t name_bytes_max = 512;
    std::size_t waiting_max = 10'000;     // Requests of one name.
    std::uint32_t count_max = 1'000'000;  // Whoever asks for more gets so many.
  };

  IdAllocator(Options options, RegistryOutput& output) : options_(options), output_(output) {}

  // What was saved before the restart. Before the first Allocate.
  void Restore(const std::string& name, const Id128& limit);

  // Ends in one GrantIds or RefuseIds. 0 ids: where the next block begins. Below 0: one id.
  void Allocate(std::uint64_t request, const std::string& name, std::int64_t count);

  // The answer to SaveIdLimit.
  void OnSaved(const std::string& name, const Id128& limit, bool saved);

 private:
  struct Waiting {
    std::uint64_t request = 0;
    std::uint32_t count = 0;
  };
  struct Name {
    Id128 next;
    Id128 limit;  // Saved; next <= limit unless nothing was saved yet.
    bool saving = false;
    std::deque<Waiting> waiting;
  };

  void Serve(const std::string& name, Name& state);

  const Options options_;
  RegistryOutput& output_;
  std::map<std::string, Name> names_;
};

}  // namespace zeze::registry
