// AnyBean: a variable of the schema's type dynamic that names no beans: it holds a bean of any
// type, which only the code at hand knows, or nothing.
//
//   BTimer timer;
//   timer.CustomData.Set(BBuff{.power = 3});
//   if (std::optional<BBuff> buff = timer.CustomData.As<BBuff>()) Use(*buff);
//
// It keeps the id of the type and the encoded bean, stored and sent like every dynamic. A server
// that does not know the bean hands it on as it came.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

// Copies share the bytes, which never change. Thread-safety: as a plain value.
class AnyBean {
 public:
  // So that a table whose own beans are not nested deeper than this can always be read.
  static constexpr int kDepthMax = kBeanDepthMax / 2;

  AnyBean() = default;

  template <typename Bean>
  static AnyBean Of(const Bean& bean) {
    AnyBean any;
    any.Set(bean);
    return any;
  }

  // 0 when empty, else the type id of the bean.
  std::int64_t type_id() const { return held_ == nullptr ? 0 : held_->type_id; }
  bool empty() const { return held_ == nullptr; }

  // The full name of its type in the schema, if it was made here; empty if it came encoded.
  std::string_view type_name() const {
    return held_ == nullptr ? std::string_view() : held_->type_name;
  }

  // Levels of beans in it; 0 if it came encoded.
  int depth() const { return held_ == nullptr ? 0 : held_->depth; }

  // The encoded bean, with its end.
  std::string_view bytes() const { return held_ == nullptr ? std::string_view() : held_->bytes; }

  template <typename Bean>
  bool Is() const {
    return type_id() == Bean::kTypeId;
  }

  // A copy of the bean; none when the variable is empty, holds another type, or bytes that are no
  // such bean.
  template <typename Bean>
  std::optional<Bean> As() const {
    if (!Is<Bean>()) return std::nullopt;
    ByteReader in(held_->bytes);
    Bean bean;
    bean.Decode(in);
    if (!in.ok()) return std::nullopt;
    return bean;
  }

  // Throws EncodeError if beans are nested deeper than kDepthMax in it.
  template <typename Bean>
  void Set(const Bean& bean) {
    ByteWriter out;
    bean.Encode(out);
    const int depth = out.deepest();
    if (depth > kDepthMax) ThrowTooDeep(depth);
    held_ = std::make_shared<const Held>(Bean::kTypeId, out.Release(), NameOf<Bean>(), depth);
  }

  // For decoders. An id of 0 empties the variable.
  void SetEncoded(std::int64_t type_id, std::string bytes) {
    held_ = type_id == 0 ? nullptr : std::make_shared<const Held>(type_id, std::move(bytes), "", 0);
  }

  void Clear() { held_ = nullptr; }

  friend bool operator==(const AnyBean& a, const AnyBean& b) {
    return a.held_ == b.held_ || (a.type_id() == b.type_id() && a.bytes() == b.bytes());
  }

 private:
  struct Held {
    Held(std::int64_t id, std::string encoded, std::string_view name, int levels)
        : type_id(id), depth(levels), bytes(std::move(encoded)), type_name(name) {}

    std::int64_t type_id;
    int depth;
    std::string bytes;
    std::string_view type_name;  // Of a constant.
  };

  [[noreturn]] static void ThrowTooDeep(int depth) {
    throw EncodeError("a bean with " + std::to_string(depth) +
                      " levels of beans cannot be held by a dynamic variable, which takes " +
                      std::to_string(kDepthMax));
  }

  template <typename Bean>
  static constexpr std::string_view NameOf() {
    if constexpr (requires { Bean::kFullName; }) return Bean::kFullName;
    return {};
  }

  std::shared_ptr<const Held> held_;
};

}  // namespace zeze
