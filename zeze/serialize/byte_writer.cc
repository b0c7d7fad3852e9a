#include "zeze/serialize/byte_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "zeze/base/check.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

void ByteWriter::Grow(std::size_t bytes) {
  ZEZE_REQUIRE(bytes <= kEncodedBytesMax, internal::kTooLong);
  const std::size_t used = size();
  const std::size_t needed = used + bytes;
  // Writers ask for up to 9 bytes where they need one, so the limit is on what is used.
  ZEZE_REQUIRE(needed <= kEncodedBytesMax + 16, internal::kTooLong);
  const std::size_t capacity = std::max(needed, 2 * static_cast<std::size_t>(end_ - data()));

  auto buffer = std::make_unique_for_overwrite<char[]>(capacity);
  std::memcpy(buffer.get(), data(), used);
  heap_buffer_ = std::move(buffer);
  cursor_ = heap_buffer_.get() + used;
  end_ = heap_buffer_.get() + capacity;
}

void ByteWriter::WriteListHeader(std::size_t count, TypeCode element) {
  ZEZE_REQUIRE(count <= kEncodedBytesMax, internal::kTooLong);
  const auto code = static_cast<std::size_t>(element);
  if (count < 15) {
    WriteByte(static_cast<std::uint8_t>((count << 4) | code));
  } else {
    WriteByte(static_cast<std::uint8_t>(0xF0 | code));
    WriteUlong(count - 15);
  }
}

void ByteWriter::WriteMapHeader(std::size_t count, TypeCode key, TypeCode value) {
  ZEZE_REQUIRE(count <= kEncodedBytesMax, internal::kTooLong);
  const auto codes = (static_cast<unsigned>(key) << 4) | static_cast<unsigned>(value);
  WriteByte(static_cast<std::uint8_t>(codes));
  WriteUlong(count);
}

void ByteWriter::Truncate(std::size_t size) {
  ZEZE_CHECK(size <= this->size());
  cursor_ -= this->size() - size;
}

std::string ByteWriter::Release() {
  std::string bytes(view());
  Clear();
  return bytes;
}

}  // namespace zeze
