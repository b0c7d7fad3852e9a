// ByteReader: reads what ByteWriter (or another implementation of the formats) wrote.
//
//   ByteReader in(bytes);
//   int last_id = 0;
//   for (Tag tag = in.ReadTag(last_id); !tag.end; tag = in.ReadTag(last_id)) {
//     if (tag.id == 1) level = in.ReadIntegerAs<std::int32_t>(tag.type);
//     else in.Skip(tag);
//   }
//   if (!in.ok()) return in.ToError("reading a role");

#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeze/base/result.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/vector.h"

namespace zeze {

// What ReadTag found: a field (id, type), the mark of a base bean, or the end of the bean.
struct Tag {
  int id = 0;
  TypeCode type = TypeCode::kInteger;
  bool end = false;
  bool base = false;
};

// Bytes from a peer or a disk may be anything. A reader therefore never throws and never reads
// outside its bytes; the first failure sticks: from then on ok() is false, nothing remains, every
// read returns zero or empty, and ReadTag returns an end, so that the usual loops stop.
//
// Guarantees:
//   - Every form of a number that the formats allow is accepted, over-long ones too.
//   - No read allocates, except for the text of an error.
//   - A count returned by a header fits the bytes that are left: each element has its minimum of
//     bytes there. Reserving memory for that many elements is safe.
//   - Beans nested deeper than kDepthMax fail, if their decoders use a BeanScope.
//
// Requires that the bytes outlive the reader and the views that it returns.
class ByteReader {
 public:
  static constexpr int kDepthMax = kBeanDepthMax;

  explicit ByteReader(std::string_view bytes)
      : cursor_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        begin_(bytes.data()),
        size_(bytes.size()) {
    if (bytes.size() > kEncodedBytesMax) [[unlikely]]
      FailTooLong();
  }

  // The bytes would be gone before the first read.
  template <typename T>
    requires std::same_as<T, std::string>
  explicit ByteReader(T&& bytes) = delete;

  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  bool ok() const { return !failed_; }

  // What went wrong first and at which offset; empty while ok().
  std::string error_message() const;

  // kCorrupt with error_message(), "what: message at offset n of m"; call only when !ok().
  Error ToError(std::string_view what) const;

  // Reports a failure that the caller found, such as a value that its type forbids. Only the first
  // failure of a reader is kept.
  void Fail(std::string_view message);

  // Offset of the next byte; after a failure the offset where it was noticed.
  std::size_t position() const { return failed_ ? failed_at_ : Consumed(); }

  // 0 after a failure.
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - cursor_); }

  // The bytes already read from `begin`, an earlier position(); empty after a failure.
  std::string_view Since(std::size_t begin) const;

  std::uint8_t ReadByte() {
    if (cursor_ == end_) [[unlikely]]
      return FailShort(1);
    return static_cast<std::uint8_t>(*cursor_++);
  }

  // Any varint but 0 is true.
  bool ReadBool() { return ReadLong() != 0; }

  // A number above 32 bits keeps its low 32 bits.
  std::uint32_t ReadUint() { return static_cast<std::uint32_t>(ReadUlong()); }
  std::uint64_t ReadUlong() {
    if (cursor_ != end_ && static_cast<std::int8_t>(*cursor_) >= 0) [[likely]] {
      return static_cast<std::uint8_t>(*cursor_++);
    }
    return ReadLongUnsigned();
  }
  std::int64_t ReadLong() {
    if (cursor_ != end_) [[likely]] {
      const auto first = static_cast<std::int8_t>(*cursor_);
      if (first < 0x40 && first >= -0x40) {
        ++cursor_;
        return first;
      }
    }
    return ReadLongSigned();
  }

  std::int32_t ReadInt4() { return std::bit_cast<std::int32_t>(ReadFixed<std::uint32_t>()); }
  std::int64_t ReadLong8() { return std::bit_cast<std::int64_t>(ReadFixed<std::uint64_t>()); }
  std::int32_t ReadInt4BigEndian() {
    return std::bit_cast<std::int32_t>(__builtin_bswap32(ReadFixed<std::uint32_t>()));
  }
  std::int64_t ReadLong8BigEndian() {
    return std::bit_cast<std::int64_t>(__builtin_bswap64(ReadFixed<std::uint64_t>()));
  }

  float ReadFloat() { return std::bit_cast<float>(ReadFixed<std::uint32_t>()); }
  double ReadDouble() { return std::bit_cast<double>(ReadFixed<std::uint64_t>()); }

  // Length and bytes. Text is not checked to be UTF-8: what was written comes back unchanged; use
  // RepairUtf8 where well-formed text matters.
  std::string_view ReadBytes() { return ReadRaw(ReadUint()); }

  // Exactly this many bytes.
  std::string_view ReadRaw(std::size_t bytes) {
    if (bytes > remaining()) [[unlikely]] {
      FailShort(bytes);
      return {};
    }
    const std::string_view view(cursor_, bytes);
    cursor_ += bytes;
    return view;
  }

  // A block behind its length as 4 bytes little-endian.
  std::string_view ReadSize4();

  template <VectorValue V>
  V ReadVector();

  // The next tag; last_id must be 0 before the first field of a bean. Leaves the id of a field in
  // last_id, and 0 after the mark of a base bean. Fails on an id above kFieldIdMax, on an
  // unassigned type and on a byte 02 to 0F.
  Tag ReadTag(int& last_id) {
    if (cursor_ != end_) [[likely]] {
      const auto byte = static_cast<std::uint8_t>(*cursor_);
      const int id = last_id + (byte >> 4);
      if (byte >= 0x10 && byte < 0xF0 && (byte & 0x0F) <= kTypeCodeMax && id <= kFieldIdMax) {
        ++cursor_;
        last_id = id;
        return {.id = id, .type = static_cast<TypeCode>(byte & 0x0F), .end = false, .base = false};
      }
    }
    return ReadRareTag(last_id);
  }

  // Number of elements, and their type. 0 after a failure.
  std::size_t ReadListHeader(TypeCode& element);

  // Number of pairs, and their types. 0 after a failure.
  std::size_t ReadMapHeader(TypeCode& key, TypeCode& value);

  // A `uint` count of elements that take at least element_bytes_min each; 0 after a failure.
  std::size_t ReadCount(std::size_t element_bytes_min = 1);

  // Passes over a value. Of a bean it passes everything up to its end, base beans included.
  void Skip(TypeCode type);

  // Passes over the value of a field. After the mark of a base bean there is nothing to pass: the
  // fields of the base follow.
  void Skip(const Tag& tag) {
    if (!tag.end && !tag.base) Skip(tag.type);
  }

  // Reads of a declared type from whatever the writer's schema had: numbers convert among each
  // other as in Java (toward zero, saturating, NaN becomes 0, then the low bits), vectors among
  // each other and from numbers; everything else fails.
  bool ReadBoolAs(TypeCode type);
  template <typename T>
  T ReadIntegerAs(TypeCode type);
  float ReadFloatAs(TypeCode type);
  double ReadDoubleAs(TypeCode type);
  std::string_view ReadBytesAs(TypeCode type);
  template <VectorValue V>
  V ReadVectorAs(TypeCode type);

  // Fails when the beans being read are nested too deep. Prefer BeanScope.
  bool EnterBean();
  void LeaveBean() { --depth_; }

  // Spans the decoding of one bean: EnterBean and LeaveBean.
  class BeanScope {
   public:
    explicit BeanScope(ByteReader& in) : in_(in) { in_.EnterBean(); }
    ~BeanScope() { in_.LeaveBean(); }
    BeanScope(const BeanScope&) = delete;
    BeanScope& operator=(const BeanScope&) = delete;

   private:
    ByteReader& in_;
  };

  // Fails because a field declared as `declared` cannot hold a value of this type.
  void FailType(std::string_view declared, TypeCode found);

 private:
  template <typename T>
  T ReadFixed() {
    if (remaining() < sizeof(T)) [[unlikely]]
      return FailShort(sizeof(T));
    T value;
    std::memcpy(&value, cursor_, sizeof(T));
    cursor_ += sizeof(T);
    if constexpr (std::endian::native == std::endian::big) {
      return sizeof(T) == 4 ? __builtin_bswap32(value) : __builtin_bswap64(value);
    }
    return value;
  }

  std::size_t Consumed() const { return static_cast<std::size_t>(cursor_ - begin_); }

  Tag ReadRareTag(int& last_id);
  std::uint64_t ReadLongUnsigned();
  std::int64_t ReadLongSigned();
  std::uint64_t PeekBigEndian() const;
  std::uint64_t TakeBigEndian(unsigned bytes);
  std::int64_t ReadInt64As(TypeCode type);
  std::int32_t ReadInt32As(TypeCode type);
  std::size_t CheckCount(std::uint64_t count, std::size_t element_bytes_min);
  bool CheckTypeCode(unsigned code);
  void SkipFields();
  template <typename SkipElements>
  void SkipContainer(SkipElements skip_elements);
  void FailTooLong();
  std::uint8_t FailShort(std::size_t needed);
  void ReadFloatComponents(TypeCode type, float* components);
  void ReadIntComponents(TypeCode type, std::int32_t* components);

  const char* cursor_;
  const char* end_;
  const char* begin_;
  std::size_t size_;
  std::size_t failed_at_ = 0;
  std::string failure_;
  int depth_ = 0;
  int container_depth_ = 0;
  bool failed_ = false;
};

template <VectorValue V>
V ByteReader::ReadVector() {
  V vector;
  for (std::size_t i = 0; i < V::kDimension; ++i) {
    if constexpr (std::is_same_v<typename V::Component, float>) {
      ComponentOf(vector, i) = ReadFloat();
    } else {
      ComponentOf(vector, i) = static_cast<std::int32_t>(ReadLong());
    }
  }
  return vector;
}

template <typename T>
T ByteReader::ReadIntegerAs(TypeCode type) {
  static_assert(std::is_integral_v<T> && std::is_signed_v<T> && !std::is_same_v<T, bool>);
  if (type == TypeCode::kInteger) [[likely]]
    return static_cast<T>(ReadLong());
  if constexpr (sizeof(T) == sizeof(std::int64_t)) {
    return ReadInt64As(type);
  } else {
    return static_cast<T>(ReadInt32As(type));
  }
}

template <VectorValue V>
V ByteReader::ReadVectorAs(TypeCode type) {
  if (type == V::kTypeCode) [[likely]]
    return ReadVector<V>();
  typename V::Component components[4] = {};
  if constexpr (std::is_same_v<typename V::Component, float>) {
    ReadFloatComponents(type, components);
  } else {
    ReadIntComponents(type, components);
  }
  V vector;
  for (std::size_t i = 0; i < V::kDimension; ++i) ComponentOf(vector, i) = components[i];
  return vector;
}

}  // namespace zeze
