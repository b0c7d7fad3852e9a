// KeyRange: which keys of a table a walk gives.
//
//   using Roles = zeze::KeyRange<std::int64_t>;
//   roles.Walk(Roles::Between(1000, 2000), visit);               // 1000 .. 1999, ascending.
//   names.Walk(zeze::KeyRange<std::string>::Prefix("guild/"), visit);

#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeze/bean/codec.h"
#include "zeze/serialize/binary.h"

namespace zeze {

namespace internal {

// Encoded keys from `from` on (null: from the first), below `to` (null: to the last).
struct KeySpan {
  std::optional<std::string> from = std::nullopt;
  std::optional<std::string> to = std::nullopt;

  bool Contains(std::string_view key) const {
    return (!from || key >= *from) && (!to || key < *to);
  }
};

// The spans of a range, in the order in which an ascending walk gives them; or, if there is a
// prefix, one span for each length that keys have.
struct KeySpans {
  std::optional<std::string> prefix = std::nullopt;
  std::vector<KeySpan> spans = {};
};

// The encoded texts of this length that begin with the prefix.
KeySpan PrefixSpan(const std::string& prefix, std::size_t length);

}  // namespace internal

// A storage keeps rows in the order of their encoded keys, and walks follow it:
//   - Integers: 0, 1, 2 ... and after the largest the negative ones, ascending. Between knows this
//     and gives integers in the order of numbers.
//   - Texts and binaries: shorter ones first, those of one length by their bytes. Prefix finds all
//     keys that begin so, whatever their length.
//   - Beans: by their variables as they are encoded, where zeros are left out: no order that would
//     be of use, except to go on where a walk ended.
// Memory tables have no order: a walk gives what is in the range as it comes.
template <typename K>
class KeyRange {
 public:
  static constexpr bool kIsInteger = std::is_integral_v<K> && !std::is_same_v<K, bool>;
  static constexpr bool kHasPrefixes = std::is_same_v<K, std::string> || std::is_same_v<K, Binary>;

  KeyRange() = default;  // All keys.

  // From `from` on, without `to`.
  static KeyRange Between(K from, K to) { return KeyRange(std::move(from), std::move(to)); }
  static KeyRange From(K from) { return KeyRange(std::move(from), std::nullopt); }
  static KeyRange Below(K to) { return KeyRange(std::nullopt, std::move(to)); }

  static KeyRange Prefix(std::string prefix)
    requires kHasPrefixes
  {
    KeyRange range;
    range.prefix_ = std::move(prefix);
    return range;
  }

  bool Contains(const K& key) const {
    if constexpr (kHasPrefixes) {
      if (prefix_) return BytesOf(key).starts_with(*prefix_);
    }
    if constexpr (kIsInteger) {
      return (!from_ || key >= *from_) && (!to_ || key < *to_);
    } else {
      return EncodedSpan().Contains(EncodeKey(key));
    }
  }

  // Below: for Table.

  internal::KeySpans Spans() const {
    if (prefix_) return {.prefix = prefix_};
    if constexpr (kIsInteger && std::is_signed_v<K>) {
      if (!from_ && !to_) return {.spans = {{}}};  // As the storage has it.
      internal::KeySpans spans;
      const bool negative = !from_ || *from_ < 0;
      const bool positive = !to_ || *to_ > 0;
      if (negative) {
        internal::KeySpan& span = spans.spans.emplace_back();
        span.from = EncodeKey(from_ ? *from_ : std::numeric_limits<K>::min());
        if (to_ && *to_ < 0) span.to = EncodeKey(*to_);
      }
      if (positive) {
        internal::KeySpan& span = spans.spans.emplace_back();
        span.from = EncodeKey(from_ && *from_ > 0 ? *from_ : K{0});
        span.to = EncodeKey(to_ ? *to_ : std::numeric_limits<K>::min());
      }
      return spans;
    } else {
      return {.spans = {EncodedSpan()}};
    }
  }

  static std::string_view BytesOf(const K& key)
    requires kHasPrefixes
  {
    if constexpr (std::is_same_v<K, std::string>) {
      return key;
    } else {
      return key.bytes;
    }
  }

 private:
  KeyRange(std::optional<K> from, std::optional<K> to)
      : from_(std::move(from)), to_(std::move(to)) {
    static_assert(!std::is_floating_point_v<K>,
                  "encoded floating-point numbers have no useful order");
  }

  internal::KeySpan EncodedSpan() const {
    internal::KeySpan span;
    if (from_) span.from = EncodeKey(*from_);
    if (to_) span.to = EncodeKey(*to_);
    return span;
  }

  std::optional<K> from_;
  std::optional<K> to_;
  std::optional<std::string> prefix_;
};

}  // namespace zeze
