// ByteaArray: many byte strings as one parameter.
//
//   ByteaArray keys(2, 8);
//   keys.Add("key1");
//   keys.Add("key2");
//   connection.Run("... WHERE id = ANY($1::bytea[])", {keys.parameter()});

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/storage/sql/sql_connection.h"

namespace zeze {

// The wire form of bytea[]: big-endian counts, then length and bytes of each.
class ByteaArray {
 public:
  explicit ByteaArray(std::size_t count, std::size_t bytes) {
    text_.reserve(20 + count * 4 + bytes);
    AddInteger(1);   // Dimensions.
    AddInteger(0);   // No nulls.
    AddInteger(17);  // The type bytea.
    AddInteger(static_cast<std::uint32_t>(count));
    AddInteger(1);  // The first index.
  }

  void Add(std::string_view bytes) {
    AddInteger(static_cast<std::uint32_t>(bytes.size()));
    text_.append(bytes);
  }

  SqlParameter parameter() const { return SqlParameter::Bytes(text_); }

 private:
  void AddInteger(std::uint32_t value) {
    const char bytes[4] = {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                           static_cast<char>(value >> 8), static_cast<char>(value)};
    text_.append(bytes, 4);
  }

  std::string text_;
};

}  // namespace zeze
