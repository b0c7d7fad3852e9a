// RedirectMethod: how a module declares which of its methods other servers may call.
//
//   class ModuleRank final : public ModuleRankBase {
//    public:
//     std::int64_t Update(Transaction& tx, std::int32_t hash, const BKey& key, std::int64_t role);
//     std::int64_t Top(Transaction& tx, std::int32_t hash, std::int32_t count, BTop& result);
//     std::int64_t Ping(std::int32_t server_id);                  // Outside a transaction.
//
//     using Redirects = arch::RedirectMethods<                    // Behind the methods.
//         arch::RedirectMethod<&ModuleRank::Update, "update">,
//         arch::RedirectMethod<&ModuleRank::Top, "top", arch::RedirectMethodOptions{.version = 2}>,
//         arch::RedirectMethod<&ModuleRank::Ping, "ping">>;
//   };
//
// A method takes, in this order: Transaction& (without it the method runs outside a transaction),
// the std::int32_t that it was called with (hash, server id or group), its parameters by value or
// const&, and, if it has a result, a reference to it. It returns a code (0 commits) or nothing.

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "zeze/app/module.h"
#include "zeze/arch/redirect/redirect_codec.h"
#include "zeze/base/check.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/transaction/transaction.h"

namespace zeze::arch {

struct RedirectMethodOptions {
  // A server that has another version of the method refuses with redirect_code::kVersion. Raise it
  // when parameters or meaning change.
  std::int32_t version = 0;
};

// A text as a template argument.
template <std::size_t N>
struct RedirectName {
  consteval RedirectName(const char (&literal)[N]) {  // NOLINT: implicit
    std::copy_n(literal, N, text);
  }
  constexpr std::string_view view() const { return {text, N - 1}; }

  char text[N] = {};
};

// The name is "method", behind the module's full name and ':' on the wire, or, for modules that
// other implementations call differently, the whole "Full.Name:method".
template <auto Method, RedirectName Name, RedirectMethodOptions Options = RedirectMethodOptions{}>
struct RedirectMethod {
  static constexpr auto kMethod = Method;
  static constexpr std::string_view kName = Name.view();
  static constexpr RedirectMethodOptions kOptions = Options;
};

template <typename... Methods>
struct RedirectMethods {};

namespace internal {

// --- What a method's type says. ---

template <typename... T>
struct RedirectTypes {};

template <typename F>
struct RedirectFunction {
  static_assert(!std::is_same_v<F, F>, "a redirected method is a non-static member function");
};
template <typename C, typename R, typename... A>
struct RedirectFunction<R (C::*)(A...)> {
  using Class = C;
  using Return = R;
  using Arguments = RedirectTypes<A...>;
};
template <typename C, typename R, typename... A>
struct RedirectFunction<R (C::*)(A...) const> : RedirectFunction<R (C::*)(A...)> {};
template <typename C, typename R, typename... A>
struct RedirectFunction<R (C::*)(A...) noexcept> : RedirectFunction<R (C::*)(A...)> {};
template <typename C, typename R, typename... A>
struct RedirectFunction<R (C::*)(A...) const noexcept> : RedirectFunction<R (C::*)(A...)> {};

template <typename A>
inline constexpr bool kIsRedirectOutput =
    std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>;

// Parameters, and behind them perhaps the result.
template <typename Done, typename Rest>
struct RedirectParameters;
template <typename... P>
struct RedirectParameters<RedirectTypes<P...>, RedirectTypes<>> {
  using Values = std::tuple<P...>;
  using Result = RedirectNothing;
};
template <typename... P, typename Last>
  requires kIsRedirectOutput<Last>
struct RedirectParameters<RedirectTypes<P...>, RedirectTypes<Last>> {
  using Values = std::tuple<P...>;
  using Result = std::remove_reference_t<Last>;
  static_assert(RedirectResult<Result>,
                "the result of a redirected method must be a signed integer, bool, std::string, "
                "zeze::Binary, a bean, or a struct with RedirectFields()");
};
template <typename... P, typename A, typename... Rest>
struct RedirectParameters<RedirectTypes<P...>, RedirectTypes<A, Rest...>>
    : RedirectParameters<RedirectTypes<P..., std::remove_cvref_t<A>>, RedirectTypes<Rest...>> {
  static_assert(!kIsRedirectOutput<A>,
                "parameters of a redirected method are values or const&; only its last one, the "
                "result, is a plain reference");
  static_assert(RedirectValue<std::remove_cvref_t<A>>,
                "a parameter of a redirected method must be a bool, a signed integer, float, "
                "double, std::string, zeze::Binary, a bean, a Dynamic, or a std::vector, std::set, "
                "std::map, List, Set, Map or SortedMap of them");
};

template <typename Arguments>
struct RedirectArguments {
  static_assert(!std::is_same_v<Arguments, Arguments>,
                "a redirected method takes Transaction& (or not), then the std::int32_t that it "
                "was called with: hash, server id or group; then its parameters");
};
template <typename... A>
struct RedirectArguments<RedirectTypes<std::int32_t, A...>>
    : RedirectParameters<RedirectTypes<>, RedirectTypes<A...>> {
  static constexpr bool kInTransaction = false;
};
template <typename... A>
struct RedirectArguments<RedirectTypes<Transaction&, std::int32_t, A...>>
    : RedirectParameters<RedirectTypes<>, RedirectTypes<A...>> {
  static constexpr bool kInTransaction = true;
};

template <auto Method>
struct RedirectSignature {
  using Function = RedirectFunction<decltype(Method)>;
  using Class = typename Function::Class;
  using Arguments = RedirectArguments<typename Function::Arguments>;
  using Values = typename Arguments::Values;
  using Result = typename Arguments::Result;
  static constexpr bool kInTransaction = Arguments::kInTransaction;

  static_assert(std::derived_from<Class, Module>, "a redirected method belongs to a module");
  static_assert(std::is_void_v<typename Function::Return> ||
                    std::is_same_v<typename Function::Return, std::int64_t>,
                "a redirected method returns its code, std::int64_t, or nothing");

  // The parameters are not moved from: a transaction may run again.
  static std::int64_t Call(Class& module, Transaction* tx, std::int32_t hash, const Values& values,
                           Result& result) {
    result = Result{};
    return std::apply(
        [&](const auto&... value) -> std::int64_t {
          auto call = [&](auto&... before) {
            if constexpr (std::is_same_v<Result, RedirectNothing>) {
              return (module.*Method)(before..., hash, value...);
            } else {
              return (module.*Method)(before..., hash, value..., result);
            }
          };
          auto run = [&] {
            if constexpr (kInTransaction) {
              ZEZE_CHECK(tx != nullptr);
              return call(*tx);
            } else {
              return call();
            }
          };
          if constexpr (std::is_void_v<typename Function::Return>) {
            run();
            return 0;
          } else {
            return run();
          }
        },
        values);
  }
};

// --- Which methods a module declares. ---

template <auto Left, auto Right>
constexpr bool SameMethod() {
  if constexpr (std::is_same_v<decltype(Left), decltype(Right)>) {
    return Left == Right;
  } else {
    return false;
  }
}

template <auto Method, typename List>
inline constexpr bool kDeclaresRedirect = false;
template <auto Method, typename... M>
inline constexpr bool kDeclaresRedirect<Method, RedirectMethods<M...>> =
    (false || ... || SameMethod<Method, M::kMethod>());

template <typename C>
concept HasRedirects = requires { typename C::Redirects; };

template <auto Method>
constexpr void CheckDeclared() {
  using Class = typename RedirectSignature<Method>::Class;
  static_assert(HasRedirects<Class>,
                "the module of this method declares no redirected methods: give it a public "
                "`using Redirects = zeze::arch::RedirectMethods<...>`");
  if constexpr (HasRedirects<Class>) {
    static_assert(kDeclaresRedirect<Method, typename Class::Redirects>,
                  "this method is not among the redirected methods of its module: add it to its "
                  "`Redirects`");
  }
}

// --- The same without types. ---

// One call at the server that runs it: its parameters and room for the result. Runs any number of
// times, so that a transaction can be repeated.
class RedirectInvocation {
 public:
  RedirectInvocation() = default;
  RedirectInvocation(const RedirectInvocation&) = delete;
  RedirectInvocation& operator=(const RedirectInvocation&) = delete;
  virtual ~RedirectInvocation() = default;

  // `tx` is null exactly if the method runs outside transactions.
  virtual std::int64_t Run(Module* module, Transaction* tx, std::int32_t hash) = 0;
  // Of the last run.
  virtual void EncodeResult(ByteWriter& out) const = 0;
};

template <auto Method>
class TypedRedirectInvocation final : public RedirectInvocation {
  using Signature = RedirectSignature<Method>;

 public:
  // Whether the bytes were good is the reader's ok().
  explicit TypedRedirectInvocation(ByteReader& in) { ReadRedirectParameters(in, values_); }

  std::int64_t Run(Module* module, Transaction* tx, std::int32_t hash) override {
    return Signature::Call(static_cast<typename Signature::Class&>(*module), tx, hash, values_,
                           result_);
  }
  void EncodeResult(ByteWriter& out) const override { WriteRedirectResult(out, result_); }

 private:
  typename Signature::Values values_;
  typename Signature::Result result_;
};

// Its address names the method.
template <auto Method>
inline constexpr char kRedirectKey = 0;

struct RedirectDescriptor {
  const void* key = nullptr;
  std::string_view name = {};
  RedirectMethodOptions options = {};
  bool in_transaction = true;
  std::unique_ptr<RedirectInvocation> (*decode)(ByteReader& parameters) = nullptr;
};

template <typename M>
RedirectDescriptor DescribeRedirect() {
  static_assert(!M::kName.empty(), "a redirected method has a name");
  using Signature = RedirectSignature<M::kMethod>;
  return {.key = &kRedirectKey<M::kMethod>,
          .name = M::kName,
          .options = M::kOptions,
          .in_transaction = Signature::kInTransaction,
          .decode = [](ByteReader& in) -> std::unique_ptr<RedirectInvocation> {
            return std::make_unique<TypedRedirectInvocation<M::kMethod>>(in);
          }};
}

}  // namespace internal

}  // namespace zeze::arch
