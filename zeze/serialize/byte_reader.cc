#include "zeze/serialize/byte_reader.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/serialize/type_code.h"
#include "zeze/serialize/vector.h"

namespace zeze {
namespace {

// Java's narrowing of a floating-point number: toward zero, saturating, NaN becomes 0.
template <typename T>
T Narrow(double value) {
  if (std::isnan(value)) return 0;
  // Both limits are powers of two and exact; the upper one is the first value that does not fit.
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  if (value <= kLow) return std::numeric_limits<T>::min();
  if (value >= -kLow) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

}  // namespace

std::string ByteReader::error_message() const {
  if (!failed_) return {};
  return fmt::format("{} at offset {} of {}", failure_, failed_at_, size_);
}

Error ByteReader::ToError(std::string_view what) const {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {}", what, error_message()));
}

void ByteReader::Fail(std::string_view message) {
  if (failed_) return;
  failed_ = true;
  failed_at_ = Consumed();
  failure_ = message;
  cursor_ = end_;
}

void ByteReader::FailTooLong() {
  Fail("the encoding is longer than the limit of 1 GiB");
}

std::uint8_t ByteReader::FailShort(std::size_t needed) {
  if (!failed_) Fail(fmt::format("{} bytes are needed, {} are left", needed, remaining()));
  return 0;
}

void ByteReader::FailType(std::string_view declared, TypeCode found) {
  if (failed_) return;
  Fail(fmt::format("a value of type {} was found where {} is declared", ToString(found), declared));
}

std::string_view ByteReader::Since(std::size_t begin) const {
  if (failed_ || begin > Consumed()) return {};
  return {begin_ + begin, Consumed() - begin};
}

// The next 8 bytes, which must be there.
std::uint64_t ByteReader::PeekBigEndian() const {
  std::uint64_t value = 0;
  std::memcpy(&value, cursor_, sizeof(value));
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

std::uint64_t ByteReader::TakeBigEndian(unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = (value << 8) | static_cast<std::uint8_t>(*cursor_++);
  return value;
}

// An unsigned number starts with as many ones as bytes follow its first one, and a zero unless
// there are eight of them.
std::uint64_t ByteReader::ReadLongUnsigned() {
  if (remaining() >= 8) [[likely]] {
    const std::uint64_t bits = PeekBigEndian();
    const auto more = static_cast<unsigned>(std::countl_one(bits));
    if (more < 8) {
      cursor_ += more + 1;
      return (bits << (more + 1)) >> (64 - 7 * (more + 1));
    }
  }
  if (cursor_ == end_) return FailShort(1);
  const auto first = static_cast<std::uint8_t>(*cursor_);
  const auto more = static_cast<unsigned>(std::countl_one(first));
  if (remaining() < 1 + more) return FailShort(1 + more);
  ++cursor_;
  if (more == 8) return TakeBigEndian(8);
  const std::uint64_t high = first & (0x7FU >> more);
  return (high << (8 * more)) | TakeBigEndian(more);
}

// A signed number starts with a zero, as many ones as bytes follow its first one, and a zero unless
// there are seven or eight of them: then the next bit tells the two apart. A negative number is the
// complement of what its complemented bits mean.
std::int64_t ByteReader::ReadLongSigned() {
  if (remaining() >= 8) [[likely]] {
    const std::uint64_t raw = PeekBigEndian();
    const auto sign = static_cast<std::uint64_t>(static_cast<std::int64_t>(raw) >> 63);
    const std::uint64_t bits = raw ^ sign;
    const auto more = static_cast<unsigned>(std::countl_one(bits << 1));
    if (more < 7) {
      cursor_ += more + 1;
      return static_cast<std::int64_t>(((bits << (more + 2)) >> (58 - 7 * more)) ^ sign);
    }
  }
  if (cursor_ == end_) return FailShort(1);
  const auto first = static_cast<std::int8_t>(*cursor_);
  const auto sign = static_cast<std::uint64_t>(std::int64_t{first} >> 63);
  const auto head = static_cast<std::uint8_t>(static_cast<std::uint8_t>(first) ^ (sign & 0xFF));
  const auto more = static_cast<unsigned>(std::countl_one(static_cast<std::uint8_t>(head << 1)));
  if (remaining() < 1 + more) return FailShort(1 + more);
  ++cursor_;
  if (more == 0) return first;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * more);
  std::uint64_t value = TakeBigEndian(more) ^ (sign & mask);
  if (more < 7) {
    value |= std::uint64_t{head & (0x3FU >> more)} << (8 * more);
  } else if (value >> 55 != 0) {
    if (cursor_ == end_) return FailShort(1);
    const std::uint64_t last = static_cast<std::uint8_t>(*cursor_++) ^ (sign & 0xFF);
    value = ((value ^ (std::uint64_t{1} << 55)) << 8) | last;
  }
  return static_cast<std::int64_t>(value ^ sign);
}

std::string_view ByteReader::ReadSize4() {
  return ReadRaw(static_cast<std::uint32_t>(ReadInt4()));
}

bool ByteReader::CheckTypeCode(unsigned code) {
  if (code <= kTypeCodeMax) return true;
  Fail(fmt::format("{} is no type code", code));
  return false;
}

// The end, the mark of a base, an id far from the last one, and everything that is wrong.
Tag ByteReader::ReadRareTag(int& last_id) {
  constexpr Tag kEnd{.id = 0, .type = TypeCode::kInteger, .end = true, .base = false};
  if (cursor_ == end_) {
    FailShort(1);
    return kEnd;
  }
  const auto byte = static_cast<std::uint8_t>(*cursor_++);
  if (byte < 0x10) {
    if (byte == 0x00) return kEnd;
    if (byte != 0x01) {
      Fail(fmt::format("byte {:#04x} is no tag", byte));
      return kEnd;
    }
    last_id = 0;
    return Tag{.id = 0, .type = TypeCode::kInteger, .end = false, .base = true};
  }
  const std::uint32_t nibble = byte >> 4;
  const std::uint64_t delta = nibble < 15 ? nibble : std::uint64_t{15} + ReadUint();
  const std::uint64_t id = static_cast<std::uint64_t>(last_id) + delta;
  if (id > static_cast<std::uint64_t>(kFieldIdMax)) {
    Fail(fmt::format("field id {} is above {}", id, kFieldIdMax));
    return kEnd;
  }
  if (!CheckTypeCode(byte & 0x0F) || failed_) return kEnd;
  last_id = static_cast<int>(id);
  return Tag{
      .id = last_id, .type = static_cast<TypeCode>(byte & 0x0F), .end = false, .base = false};
}

std::size_t ByteReader::CheckCount(std::uint64_t count, std::size_t element_bytes_min) {
  if (count <= remaining() / element_bytes_min) return static_cast<std::size_t>(count);
  if (!failed_) {
    Fail(fmt::format("{} elements of at least {} bytes are claimed, {} bytes are left", count,
                     element_bytes_min, remaining()));
  }
  return 0;
}

std::size_t ByteReader::ReadListHeader(TypeCode& element) {
  element = TypeCode::kInteger;
  const std::uint8_t byte = ReadByte();
  const std::uint32_t nibble = byte >> 4;
  const std::uint64_t count = nibble < 15 ? nibble : std::uint64_t{15} + ReadUint();
  if (!CheckTypeCode(byte & 0x0F)) return 0;
  element = static_cast<TypeCode>(byte & 0x0F);
  return CheckCount(count, MinEncodedBytes(element));
}

std::size_t ByteReader::ReadMapHeader(TypeCode& key, TypeCode& value) {
  key = value = TypeCode::kInteger;
  const std::uint8_t byte = ReadByte();
  const std::uint32_t count = ReadUint();
  if (!CheckTypeCode(byte >> 4) || !CheckTypeCode(byte & 0x0F)) return 0;
  key = static_cast<TypeCode>(byte >> 4);
  value = static_cast<TypeCode>(byte & 0x0F);
  return CheckCount(count, MinEncodedBytes(key) + MinEncodedBytes(value));
}

std::size_t ByteReader::ReadCount(std::size_t element_bytes_min) {
  const std::uint32_t count = ReadUint();
  return CheckCount(count, element_bytes_min == 0 ? 1 : element_bytes_min);
}

bool ByteReader::EnterBean() {
  if (++depth_ > kDepthMax) Fail(fmt::format("values are nested deeper than {}", kDepthMax));
  return !failed_;
}

// Counted apart from beans: every container of a schema is in a bean of its own, so that whatever
// can be decoded can be skipped, too.
template <typename SkipElements>
void ByteReader::SkipContainer(SkipElements skip_elements) {
  if (++container_depth_ > kDepthMax) {
    Fail(fmt::format("containers are nested deeper than {}", kDepthMax));
  }
  skip_elements();
  --container_depth_;
}

void ByteReader::SkipFields() {
  int last_id = 0;
  // The fields of a base bean follow its mark without nesting, so that no depth is counted.
  for (Tag tag = ReadTag(last_id); !tag.end; tag = ReadTag(last_id)) Skip(tag);
}

void ByteReader::Skip(TypeCode type) {
  switch (type) {
    case TypeCode::kInteger:
      ReadLong();
      return;
    case TypeCode::kFloat:
      ReadRaw(4);
      return;
    case TypeCode::kDouble:
    case TypeCode::kVector2:
      ReadRaw(8);
      return;
    case TypeCode::kVector3:
      ReadRaw(12);
      return;
    case TypeCode::kVector4:
      ReadRaw(16);
      return;
    case TypeCode::kBytes:
      ReadBytes();
      return;
    case TypeCode::kVector2Int:
      ReadVector<Vector2Int>();
      return;
    case TypeCode::kVector3Int:
      ReadVector<Vector3Int>();
      return;
    case TypeCode::kList:
      return SkipContainer([this] {
        TypeCode element = TypeCode::kInteger;
        for (std::size_t n = ReadListHeader(element); n > 0 && ok(); --n) Skip(element);
      });
    case TypeCode::kMap:
      return SkipContainer([this] {
        TypeCode key = TypeCode::kInteger;
        TypeCode value = TypeCode::kInteger;
        for (std::size_t n = ReadMapHeader(key, value); n > 0 && ok(); --n) {
          Skip(key);
          Skip(value);
        }
      });
    case TypeCode::kDynamic:
      ReadLong();
      [[fallthrough]];
    case TypeCode::kBean: {
      BeanScope scope(*this);
      SkipFields();
      return;
    }
  }
  CheckTypeCode(static_cast<unsigned>(type));
}

bool ByteReader::ReadBoolAs(TypeCode type) {
  switch (type) {
    case TypeCode::kInteger:
      return ReadBool();
    case TypeCode::kFloat:
      return ReadFloat() != 0;
    case TypeCode::kDouble:
      return ReadDouble() != 0;
    default:
      FailType("bool", type);
      return false;
  }
}

std::int32_t ByteReader::ReadInt32As(TypeCode type) {
  switch (type) {
    case TypeCode::kInteger:
      return static_cast<std::int32_t>(ReadLong());
    case TypeCode::kFloat:
      return Narrow<std::int32_t>(ReadFloat());
    case TypeCode::kDouble:
      return Narrow<std::int32_t>(ReadDouble());
    default:
      FailType("an integer", type);
      return 0;
  }
}

std::int64_t ByteReader::ReadInt64As(TypeCode type) {
  switch (type) {
    case TypeCode::kInteger:
      return ReadLong();
    case TypeCode::kFloat:
      return Narrow<std::int64_t>(ReadFloat());
    case TypeCode::kDouble:
      return Narrow<std::int64_t>(ReadDouble());
    default:
      FailType("long", type);
      return 0;
  }
}

float ByteReader::ReadFloatAs(TypeCode type) {
  switch (type) {
    case TypeCode::kFloat:
      return ReadFloat();
    case TypeCode::kDouble:
      return static_cast<float>(ReadDouble());
    case TypeCode::kInteger:
      return static_cast<float>(ReadLong());
    default:
      FailType("float", type);
      return 0;
  }
}

double ByteReader::ReadDoubleAs(TypeCode type) {
  switch (type) {
    case TypeCode::kDouble:
      return ReadDouble();
    case TypeCode::kFloat:
      return ReadFloat();
    case TypeCode::kInteger:
      return static_cast<double>(ReadLong());
    default:
      FailType("double", type);
      return 0;
  }
}

std::string_view ByteReader::ReadBytesAs(TypeCode type) {
  if (type == TypeCode::kBytes) return ReadBytes();
  FailType("string or binary", type);
  return {};
}

namespace {

// How many components an encoded value has, 0 if it cannot become a vector.
unsigned ComponentCount(TypeCode type) {
  switch (type) {
    case TypeCode::kInteger:
    case TypeCode::kFloat:
    case TypeCode::kDouble:
      return 1;
    case TypeCode::kVector2:
    case TypeCode::kVector2Int:
      return 2;
    case TypeCode::kVector3:
    case TypeCode::kVector3Int:
      return 3;
    case TypeCode::kVector4:
      return 4;
    default:
      return 0;
  }
}

// The type of one component of such a value.
TypeCode ComponentType(TypeCode type) {
  switch (type) {
    case TypeCode::kVector2:
    case TypeCode::kVector3:
    case TypeCode::kVector4:
      return TypeCode::kFloat;
    case TypeCode::kVector2Int:
    case TypeCode::kVector3Int:
      return TypeCode::kInteger;
    default:
      return type;
  }
}

}  // namespace

void ByteReader::ReadFloatComponents(TypeCode type, float* components) {
  const unsigned count = ComponentCount(type);
  if (count == 0) FailType("a vector", type);
  // The components of an integer vector are 32 bits wide, a plain integer 64.
  const bool is_int_vector = type == TypeCode::kVector2Int || type == TypeCode::kVector3Int;
  for (unsigned i = 0; i < count; ++i) {
    components[i] = is_int_vector ? static_cast<float>(static_cast<std::int32_t>(ReadLong()))
                                  : ReadFloatAs(ComponentType(type));
  }
}

void ByteReader::ReadIntComponents(TypeCode type, std::int32_t* components) {
  const unsigned count = ComponentCount(type);
  if (count == 0) FailType("a vector", type);
  for (unsigned i = 0; i < count; ++i) components[i] = ReadInt32As(ComponentType(type));
}

}  // namespace zeze
