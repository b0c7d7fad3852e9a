#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/base/result.h"
#include "zeze/components/collections/linked_map/any_linked_map.h"
#include "zeze/components/collections/linked_map/linked_map.h"
#include "zeze/components/delay_remove/delay_remove.h"
#include "zeze/transaction/transaction.h"

namespace zeze {

// Ids of nodes are never used again: nobody writes a node that was removed.
LinkedMaps::LinkedMaps(DelayRemove& delay_remove) : delay_remove_(delay_remove) {
  delay_remove.Serve(tLinkedMapNodes, Rewrites::kNever);
  delay_remove.OnJob(kClearJob, [this](Transaction& tx, std::string& state) {
    return AnyLinkedMap::RemoveCleared(*this, tx, state);
  });
}

LinkedMaps::~LinkedMaps() = default;

Result<void> LinkedMaps::CheckName(std::string_view name) {
  if (name.empty()) return Error(ErrorCode::kInvalidArgument, "a linked map needs a name");
  if (name.find('@') != std::string_view::npos) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("linked map name '{}': '@' is reserved for the parts of hash maps", name));
  }
  return {};
}

}  // namespace zeze
