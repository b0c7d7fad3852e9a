// ByteWriter: the growing output that keys, beans and messages are encoded into.
//
//   ByteWriter out;
//   int last_id = 0;
//   out.WriteTag(last_id, 1, TypeCode::kInteger);
//   out.WriteLong(42);
//   out.WriteTag(last_id, 3, TypeCode::kBytes);
//   out.WriteBytes("sword");
//   out.WriteEnd();
//   Send(out.view());   // 10 2a 23 05 73 77 6f 72 64 00

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/base/check.h"
#include "zeze/base/usage_error.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/vector.h"

namespace zeze {

// Thrown by a writer instead of writing what no reader would accept: beans nested deeper than
// kBeanDepthMax, more than kEncodedBytesMax, a decimal that is not a number. A procedure that
// throws it is rolled back, as after every exception.
class EncodeError : public UsageError {
 public:
  using UsageError::UsageError;
};

// Numbers take the shortest form. The first bytes go into the writer itself, so that encoding a key
// on the stack allocates nothing; Clear() keeps the memory, so that a writer can be used again and
// again. What can be written can be read: the limits of readers are those of writers (EncodeError).
//
// Not thread-safe, not copyable. Views into it end with the next write.
class ByteWriter {
 public:
  ByteWriter() : cursor_(inline_buffer_), end_(inline_buffer_ + kInlineBytes) {}

  ByteWriter(const ByteWriter&) = delete;
  ByteWriter& operator=(const ByteWriter&) = delete;

  // Outside a tag: one byte 00 or 01.
  void WriteBool(bool value) { WriteByte(value ? 1 : 0); }
  void WriteByte(std::uint8_t value) {
    Reserve(1);
    *cursor_++ = static_cast<char>(value);
  }

  // Unsigned varints, 1 to 5 and 1 to 9 bytes.
  void WriteUint(std::uint32_t value) { WriteUlong(value); }
  void WriteUlong(std::uint64_t value);

  // The signed varint of every integer field and key, 1 to 9 bytes.
  void WriteLong(std::int64_t value);

  // Fixed size, two's complement.
  void WriteInt4(std::int32_t value) {
    WriteFixed(LittleEndian(std::bit_cast<std::uint32_t>(value)));
  }
  void WriteLong8(std::int64_t value) {
    WriteFixed(LittleEndian(std::bit_cast<std::uint64_t>(value)));
  }
  void WriteInt4BigEndian(std::int32_t value) {
    WriteFixed(BigEndian(std::bit_cast<std::uint32_t>(value)));
  }
  void WriteLong8BigEndian(std::int64_t value) {
    WriteFixed(BigEndian(std::bit_cast<std::uint64_t>(value)));
  }

  // IEEE 754 bits, little-endian; the payload of a NaN is kept.
  void WriteFloat(float value) { WriteFixed(LittleEndian(std::bit_cast<std::uint32_t>(value))); }
  void WriteDouble(double value) { WriteFixed(LittleEndian(std::bit_cast<std::uint64_t>(value))); }

  // Length and bytes: strings (UTF-8), binaries, decimals.
  void WriteBytes(std::string_view bytes);

  // The bytes alone.
  void WriteRaw(std::string_view bytes);

  // The components alone: floats, or signed varints.
  template <VectorValue V>
  void WriteVector(const V& vector);

  // The tag of a field. Fields are written in ascending order of their ids, starting with last_id
  // 0; the call leaves id in last_id.
  void WriteTag(int& last_id, int id, TypeCode type);

  // Spans the encoding of one bean, as ByteReader::BeanScope does its decoding.
  class BeanScope {
   public:
    explicit BeanScope(ByteWriter& out) : out_(out) {
      out_.CheckDepth(1);
      if (++out_.depth_ > out_.deepest_) out_.deepest_ = out_.depth_;
    }
    ~BeanScope() { --out_.depth_; }
    BeanScope(const BeanScope&) = delete;
    BeanScope& operator=(const BeanScope&) = delete;

   private:
    ByteWriter& out_;
  };

  // Throws unless this many more levels of beans can be read here.
  void CheckDepth(int levels) const {
    if (depth_ + levels > kBeanDepthMax) [[unlikely]]
      ThrowTooDeep();
  }
  // The deepest nesting of beans since the writer was made or cleared.
  int deepest() const { return deepest_; }

  // The end of a bean; of a bean with a base: what follows is the complete base bean.
  void WriteEnd() { WriteByte(0x00); }
  void WriteBaseMark() { WriteByte(0x01); }

  // Then follow the elements, without tags; for a map key, value, key, value.
  void WriteListHeader(std::size_t count, TypeCode element);
  void WriteMapHeader(std::size_t count, TypeCode key, TypeCode value);

  // A block behind its length as 4 bytes little-endian. Begin returns what End needs.
  std::size_t BeginSize4();
  void EndSize4(std::size_t begin);

  std::string_view view() const { return {data(), size()}; }
  const char* data() const { return heap_buffer_ ? heap_buffer_.get() : inline_buffer_; }
  std::size_t size() const { return static_cast<std::size_t>(cursor_ - data()); }

  // Makes room, so that the next writes of this many bytes in all do not allocate.
  void Reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - cursor_) < bytes) [[unlikely]]
      Grow(bytes);
  }

  // For who writes a header when he knows what stands behind it: room for so many bytes, whose
  // contents are left open; and everything behind the first `begin` bytes, to be changed in place.
  void Extend(std::size_t bytes) {
    Reserve(bytes);
    cursor_ += bytes;
  }
  std::span<char> Tail(std::size_t begin) {
    ZEZE_CHECK(begin <= size());
    const std::size_t bytes = size() - begin;
    return {cursor_ - bytes, bytes};
  }

  // Forgets everything behind the first `size` bytes.
  void Truncate(std::size_t size);
  void Clear() {
    Truncate(0);
    deepest_ = depth_;
  }

  // The bytes, in a string of exactly their size; the writer is then empty and can be used again.
  std::string Release();

 private:
  // A key, a small record or a message header: what is encoded most often fits.
  static constexpr std::size_t kInlineBytes = 128;

  static constexpr std::uint32_t LittleEndian(std::uint32_t value) {
    return std::endian::native == std::endian::little ? value : __builtin_bswap32(value);
  }
  static constexpr std::uint64_t LittleEndian(std::uint64_t value) {
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
  }
  static constexpr std::uint32_t BigEndian(std::uint32_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap32(value);
  }
  static constexpr std::uint64_t BigEndian(std::uint64_t value) {
    return std::endian::native == std::endian::big ? value : __builtin_bswap64(value);
  }

  template <typename T>
  void WriteFixed(T value) {
    Reserve(sizeof(value));
    std::memcpy(cursor_, &value, sizeof(value));
    cursor_ += sizeof(value);
  }

  // Writes the low `count` bytes of value, most significant first; 8 bytes of room are needed.
  void PutBigEndian(std::uint64_t value, unsigned count) {
    const std::uint64_t bytes = BigEndian(value << (64 - 8 * count));
    std::memcpy(cursor_, &bytes, sizeof(bytes));
    cursor_ += count;
  }

  void Grow(std::size_t bytes);
  [[noreturn]] static void ThrowTooDeep();
  [[noreturn]] static void ThrowTooLong();

  std::unique_ptr<char[]> heap_buffer_;  // Null while inline_buffer_ is enough.
  char* cursor_;                         // Where the next byte goes.
  char* end_;
  int depth_ = 0;
  int deepest_ = 0;
  char inline_buffer_[kInlineBytes];
};

inline void ByteWriter::WriteUlong(std::uint64_t value) {
  Reserve(9);
  if (value < 0x80) {
    *cursor_++ = static_cast<char>(value);
    return;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(value));
  if (bits > 56) {
    *cursor_++ = '\xFF';
    PutBigEndian(value, 8);
    return;
  }
  // As many leading ones as bytes follow.
  const unsigned count = (bits + 6) / 7;
  const std::uint64_t prefix = (0xFFU << (9 - count)) & 0xFFU;
  PutBigEndian(value | (prefix << (8 * (count - 1))), count);
}

inline void ByteWriter::WriteLong(std::int64_t value) {
  Reserve(9);
  // The encoding of a negative number is the complement of that of its complement.
  const std::uint64_t sign = static_cast<std::uint64_t>(value >> 63);
  const std::uint64_t magnitude = static_cast<std::uint64_t>(value) ^ sign;
  if (magnitude < 0x40) {
    *cursor_++ = static_cast<char>(value);
    return;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(magnitude));
  if (bits > 55) {
    *cursor_++ = static_cast<char>(0x7F ^ sign);
    PutBigEndian(magnitude ^ sign ^ (std::uint64_t{1} << 63), 8);
    return;
  }
  // A zero bit, as many ones as bytes follow, and (below 8 bytes) another zero bit.
  const unsigned count = (bits + 7) / 7;
  const std::uint64_t prefix = (0x7FU << (8 - count)) & 0x7FU;
  PutBigEndian((magnitude | (prefix << (8 * (count - 1)))) ^ sign, count);
}

inline std::size_t ByteWriter::BeginSize4() {
  const std::size_t begin = size();
  WriteInt4(0);
  return begin;
}

inline void ByteWriter::EndSize4(std::size_t begin) {
  ZEZE_CHECK(begin + sizeof(std::uint32_t) <= size());
  const std::size_t block = size() - begin - sizeof(std::uint32_t);
  if (block > kEncodedBytesMax) [[unlikely]]
    ThrowTooLong();
  const std::uint32_t bytes = LittleEndian(static_cast<std::uint32_t>(block));
  std::memcpy(cursor_ - block - sizeof(bytes), &bytes, sizeof(bytes));
}

inline void ByteWriter::WriteRaw(std::string_view bytes) {
  if (bytes.empty()) return;
  Reserve(bytes.size());
  std::memcpy(cursor_, bytes.data(), bytes.size());
  cursor_ += bytes.size();
}

inline void ByteWriter::WriteBytes(std::string_view bytes) {
  if (bytes.size() > kEncodedBytesMax) [[unlikely]]
    ThrowTooLong();
  Reserve(9 + bytes.size());
  WriteUlong(bytes.size());
  WriteRaw(bytes);
}

template <VectorValue V>
void ByteWriter::WriteVector(const V& vector) {
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    if constexpr (std::is_same_v<typename V::Component, float>) {
      WriteFloat(ComponentOf(vector, i));
    } else {
      WriteLong(ComponentOf(vector, i));
    }
  }
}

inline void ByteWriter::WriteTag(int& last_id, int id, TypeCode type) {
  ZEZE_CHECK(id > last_id);
  ZEZE_CHECK(id <= kFieldIdMax);
  const auto delta = static_cast<std::uint32_t>(id - last_id);
  const auto code = static_cast<std::uint32_t>(type);
  last_id = id;
  if (delta < 15) {
    WriteByte(static_cast<std::uint8_t>((delta << 4) | code));
  } else {
    WriteByte(static_cast<std::uint8_t>(0xF0 | code));
    WriteUint(delta - 15);
  }
}

}  // namespace zeze
