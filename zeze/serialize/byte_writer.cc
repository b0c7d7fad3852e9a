#include "zeze/serialize/byte_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/check.h"
#include "zeze/serialize/type_code.h"

namespace zeze {

void ByteWriter::Grow(std::size_t bytes) {
  if (bytes > kEncodedBytesMax) ThrowTooLong();
  const std::size_t used = size();
  const std::size_t needed = used + bytes;
  // Writers ask for up to 9 bytes where they need one, so the limit is on what is used.
  if (needed > kEncodedBytesMax + 16) ThrowTooLong();
  const std::size_t capacity = std::max(needed, 2 * static_cast<std::size_t>(end_ - data()));

  auto buffer = std::make_unique_for_overwrite<char[]>(capacity);
  std::memcpy(buffer.get(), data(), used);
  heap_buffer_ = std::move(buffer);
  cursor_ = heap_buffer_.get() + used;
  end_ = heap_buffer_.get() + capacity;
}

void ByteWriter::ThrowTooDeep() {
  throw EncodeError(fmt::format(
      "beans are nested deeper than {} and could not be read again: keep the inner ones in records "
      "of their own, or in a list with indexes",
      kBeanDepthMax));
}

void ByteWriter::ThrowTooLong() {
  throw EncodeError("the encoding would be longer than the limit of 1 GiB: split the value");
}

void ByteWriter::WriteListHeader(std::size_t count, TypeCode element) {
  if (count > kEncodedBytesMax) ThrowTooLong();
  const auto code = static_cast<std::size_t>(element);
  if (count < 15) {
    WriteByte(static_cast<std::uint8_t>((count << 4) | code));
  } else {
    WriteByte(static_cast<std::uint8_t>(0xF0 | code));
    WriteUlong(count - 15);
  }
}

void ByteWriter::WriteMapHeader(std::size_t count, TypeCode key, TypeCode value) {
  if (count > kEncodedBytesMax) ThrowTooLong();
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
