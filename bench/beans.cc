#include "bench/beans.h"

#include <string>

#include "zeze/bean/codec.h"

namespace zeze::bench {

#define ZEZE_BENCH_BEAN(Bean)                      \
  void Bean::Encode(ByteWriter& out) const {       \
    EncodeFields(*this, out);                      \
  }                                                \
  void Bean::Decode(ByteReader& in) {              \
    DecodeFields(*this, in);                       \
  }                                                \
  bool Bean::operator==(const Bean& other) const { \
    return EqualFields(*this, other);              \
  }                                                \
  std::string Bean::ToString() const {             \
    return FormatFields(*this);                    \
  }

ZEZE_BENCH_BEAN(BSmall)
ZEZE_BENCH_BEAN(BNamed)
ZEZE_BENCH_BEAN(BRow)
ZEZE_BENCH_BEAN(BItem)
ZEZE_BENCH_BEAN(BBag)
ZEZE_BENCH_BEAN(BDemo)

#undef ZEZE_BENCH_BEAN

BSmall SmallValue() {
  return {.id = 1, .owner = 2, .time = 3, .kind = 4, .level = 5, .x = 6, .y = 7, .counter = 0};
}

BNamed NamedValue() {
  return {.id = 1, .owner = 2, .time = 3, .name = "twelve chars", .counter = 0};
}

}  // namespace zeze::bench
