// Choices: the beans that a dynamic variable may hold. Generated code writes
//
//   struct BRole {
//     using ExtraDynamic =
//         zeze::Dynamic<zeze::Choices<zeze::Choice<BSword, 1>, zeze::Choice<BShield, 2>>>;
//     ExtraDynamic extra = {};
//   };
//
// in order of the ids, so that variables with equal choices have one type.

#pragma once

#include "zeze/bean/dynamic.h"

namespace zeze {

template <typename... ChoiceTypes>
struct Choices {
  using List = TypeList<ChoiceTypes...>;
};

}  // namespace zeze
