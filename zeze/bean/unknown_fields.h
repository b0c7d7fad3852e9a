// UnknownFields: the fields of a bean that this program's schema does not have, kept as they came,
// so that an old server hands on what a newer one wrote. A bean that wants it declares
//
//   zeze::UnknownFields unknown_fields;
//
// and the codec does the rest: decoding fills it, encoding merges it back in order of ids.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "zeze/bean/internal/slot.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

// One pointer, null when empty; copies share the bytes, which never change. Thread-safety: as a
// plain value.
class UnknownFields {
 public:
  struct Entry {
    int id = 0;
    TypeCode type = TypeCode::kInteger;
    std::string_view payload;
  };

  // Walks the fields in ascending order of ids; the UnknownFields must live as long.
  class Walk {
   public:
    explicit Walk(const UnknownFields* fields);

    // False at the end; then entry() is not to be used.
    bool has_entry() const { return has_entry_; }
    const Entry& entry() const { return entry_; }
    void Next();

   private:
    ByteReader in_;
    Entry entry_;
    bool has_entry_ = true;
  };

  UnknownFields() noexcept = default;
  UnknownFields(const UnknownFields& other) noexcept;
  UnknownFields(UnknownFields&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  UnknownFields& operator=(UnknownFields other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~UnknownFields() { Clear(); }

  bool empty() const { return box_ == nullptr; }
  std::size_t count() const;
  // At most so many bytes of an encoding.
  std::size_t encoded_bytes() const { return bytes().size(); }
  void Clear();

  // Adds a field behind those that are there; ids ascend.
  void Append(int id, TypeCode type, std::string_view payload);

  friend bool operator==(const UnknownFields& a, const UnknownFields& b) {
    return a.box_ == b.box_ || a.bytes() == b.bytes();
  }

 private:
  std::string_view bytes() const {
    return box_ == nullptr ? std::string_view() : std::string_view(box_->value);
  }

  // Repeated: uint id, type byte, uint size, payload.
  internal::Box<std::string>* box_ = nullptr;
};

}  // namespace zeze
