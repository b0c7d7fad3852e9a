// DecodeCall: joins a generated protocol with the virtual function that handles it.
//
//   constexpr zeze::ProtocolHandler kHandlers[] = {
//       {&Login::kDescriptor,
//        &zeze::DecodeCall<ModuleGameBase, Login, &ModuleGameBase::ProcessLogin>},
//   };
//
// A handler takes, in this order and only as far as the protocol has them: Transaction& (unless its
// level is kNone), Session&, const Argument&, Result&.

#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "zeze/app/module.h"
#include "zeze/base/check.h"
#include "zeze/bean/empty_bean.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {

namespace internal {

template <typename ModuleT, typename Protocol, auto Method>
class TypedProtocolCall final : public ProtocolCall {
 public:
  using Argument = typename Protocol::Argument;
  using Result = typename Protocol::Result;

  explicit TypedProtocolCall(ByteReader& in) { argument_.Decode(in); }

  std::int64_t Run(Module& module, Transaction* transaction, Session& session) override {
    auto& target = static_cast<ModuleT&>(module);
    if constexpr (Protocol::kDescriptor.level == HandlerLevel::kNone) {
      return CallWithArgument(target, session);
    } else {
      ZEZE_CHECK(transaction != nullptr);
      return CallWithArgument(target, *transaction, session);
    }
  }

  void EncodeResult(ByteWriter& out) const override {
    if constexpr (Protocol::kDescriptor.is_rpc) result_.Encode(out);
  }

 private:
  template <typename... Before>
  std::int64_t CallWithArgument(ModuleT& target, Before&... before) {
    if constexpr (std::is_same_v<Argument, EmptyBean>) {
      return CallWithResult(target, before...);
    } else {
      return CallWithResult(target, before..., static_cast<const Argument&>(argument_));
    }
  }

  template <typename... Before>
  std::int64_t CallWithResult(ModuleT& target, Before&... before) {
    result_ = Result{};
    if constexpr (std::is_same_v<Result, EmptyBean>) {
      return (target.*Method)(before...);
    } else {
      return (target.*Method)(before..., result_);
    }
  }

  Argument argument_;
  Result result_;
};

}  // namespace internal

template <typename ModuleT, typename Protocol, auto Method>
std::unique_ptr<ProtocolCall> DecodeCall(ByteReader& argument) {
  return std::make_unique<internal::TypedProtocolCall<ModuleT, Protocol, Method>>(argument);
}

}  // namespace zeze
