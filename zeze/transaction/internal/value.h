// Value: a committed or working copy of a bean, as the transaction layer keeps it.

#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "zeze/bean/any_bean.h"
#include "zeze/bean/field.h"
#include "zeze/bean/hash.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/decimal.h"
#include "zeze/serialize/id128.h"
#include "zeze/serialize/vector.h"
#include "zeze/transaction/internal/reclaimer.h"
#include "zeze/transaction/internal/record.h"
#include "zeze/transaction/internal/value_operations.h"

namespace zeze::internal {

template <typename V>
struct Value final : ValueHeader {
  explicit Value(V&& v) : value(std::move(v)) {}
  explicit Value(const V& v) : value(v) {}
  V value;
};

// Small flat values live in their records, behind the key: a transaction that looks at a record has
// its value with it, and a commit makes no garbage. As words, each written with release and read
// with acquire: whoever reads one that a commit has written sees that commit's lock on the record
// as well, or what came after it, and knows that the copy is torn.
inline constexpr std::size_t kInRecordBytesMax = 128;

template <typename V>
inline constexpr bool kLivesInRecord =
    std::is_trivially_copyable_v<V> && sizeof(V) <= kInRecordBytesMax;

// The words of a flat value. Copies of copies follow each other within nanoseconds: whole registers
// of 8 bytes, because a wider load would wait until the narrower stores before it have left the
// core.
template <typename V>
struct FlatWords {
  static constexpr std::size_t kCount = (sizeof(V) + 7) / 8;

  static std::uint64_t Get(const V& value, std::size_t i) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&value) + i * 8, BytesOf(i));
    asm volatile("" : "+r"(word));
    return word;
  }
  static void Set(V& value, std::size_t i, std::uint64_t word) {
    asm volatile("" : "+r"(word));
    std::memcpy(reinterpret_cast<char*>(&value) + i * 8, &word, BytesOf(i));
  }
  static void Copy(V& to, const V& from) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount; ++i) Set(to, i, Get(from, i));
  }

 private:
  static constexpr std::size_t BytesOf(std::size_t i) {
    return i + 1 < kCount ? 8 : sizeof(V) - i * 8;
  }
};

template <typename V>
struct ValueInRecord {
  using Words = FlatWords<V>;

  void Store(const V& value) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Words::kCount; ++i) {
      words[i].store(Words::Get(value, i), std::memory_order_release);
    }
  }
  void Fetch(V& value) const {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Words::kCount; ++i) {
      Words::Set(value, i, words[i].load(std::memory_order_acquire));
    }
  }

  // Perhaps torn, as Fetch.
  bool Holds(const V& value) const {
    for (std::size_t i = 0; i < Words::kCount; ++i) {
      if (words[i].load(std::memory_order_acquire) != Words::Get(value, i)) return false;
    }
    return true;
  }

  std::array<std::atomic<std::uint64_t>, Words::kCount> words;
};

// What a table allocates for a record.
template <typename K, typename V, bool in_record = kLivesInRecord<V>>
struct RecordWithValue;

template <typename K, typename V>
struct RecordWithValue<K, V, false> final : RecordOf<K> {
  using RecordOf<K>::RecordOf;
};

template <typename K, typename V>
struct RecordWithValue<K, V, true> final : RecordOf<K> {
  using RecordOf<K>::RecordOf;
  ValueInRecord<V> value_in_record;
};

template <typename V>
Value<V>* NewValue(Participant& by, V&& value) {
  return new (by.Allocate(sizeof(Value<V>))) Value<V>(std::forward<V>(value));
}

// To be written as a whole.
template <typename V>
Value<V>* NewFlatValue(Participant& by) {
  static_assert(std::is_trivially_copyable_v<Value<V>>);
  return static_cast<Value<V>*>(by.Allocate(sizeof(Value<V>)));
}

template <typename V>
void DisposeValue(Participant& by, void* object) {
  auto* value = static_cast<Value<V>*>(static_cast<ValueHeader*>(object));
  value->~Value<V>();
  by.Free(value, sizeof(Value<V>));
}

// Whether two variables are equal, if that can be told without walking through them: containers are
// if they share their contents.
template <typename T>
bool CertainlySame(const T& a, const T& b) {
  if constexpr (requires { a.IsSameAs(b); }) {
    return a.IsSameAs(b);
  } else if constexpr (BeanType<T>) {
    bool same = true;
    T::ForEachField(
        [&](const Field&, auto member) { same = same && CertainlySame(a.*member, b.*member); });
    if constexpr (HasBaseBean<T>) same = same && CertainlySame(a.base, b.base);
    if constexpr (HasUnknownFields<T>) same = same && a.unknown_fields == b.unknown_fields;
    return same;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || VectorValue<T> ||
                       std::same_as<T, std::string> || std::same_as<T, Binary> ||
                       std::same_as<T, Decimal> || std::same_as<T, Id128> ||
                       std::same_as<T, AnyBean>) {
    return SameKey(a, b);
  } else {
    return false;
  }
}

template <typename K, typename V>
const ValueOperations& ValueOperationsOf() {
  static const ValueOperations operations = [] {
    ValueOperations o{};
    o.copy = [](Participant& by, const ValueHeader& from) -> ValueHeader* {
      const V& value = static_cast<const Value<V>&>(from).value;
      if constexpr (kLivesInRecord<V>) {
        Value<V>* copy = NewFlatValue<V>(by);
        FlatWords<V>::Copy(copy->value, value);
        return copy;
      } else {
        return new (by.Allocate(sizeof(Value<V>))) Value<V>(value);
      }
    };
    o.assign = [](ValueHeader& to, const ValueHeader& from) {
      static_cast<Value<V>&>(to).value = static_cast<const Value<V>&>(from).value;
    };
    o.dispose = &DisposeValue<V>;
    o.unchanged = [](const Record& record, const ValueHeader& edited,
                     [[maybe_unused]] const ValueHeader* committed) {
      const V& value = static_cast<const Value<V>&>(edited).value;
      if constexpr (kLivesInRecord<V>) {
        return static_cast<const RecordWithValue<K, V>&>(record).value_in_record.Holds(value);
      } else {
        (void)record;
        return CertainlySame(value, static_cast<const Value<V>*>(committed)->value);
      }
    };
    if constexpr (requires { V::kVersion; }) {
      o.raise_version = [](ValueHeader& to, const ValueHeader* old) {
        const auto before =
            old == nullptr ? 0 : static_cast<const Value<V>*>(old)->value.*V::kVersion;
        static_cast<Value<V>&>(to).value.*V::kVersion = before + 1;
      };
    }
    if constexpr (kLivesInRecord<V>) {
      o.store = [](Record& record, const ValueHeader& value) {
        static_cast<RecordWithValue<K, V>&>(record).value_in_record.Store(
            static_cast<const Value<V>&>(value).value);
      };
      o.fetch = [](Participant& by, const Record& record) -> ValueHeader* {
        Value<V>* copy = NewFlatValue<V>(by);
        static_cast<const RecordWithValue<K, V>&>(record).value_in_record.Fetch(copy->value);
        return copy;
      };
    }
    return o;
  }();
  return operations;
}

}  // namespace zeze::internal
