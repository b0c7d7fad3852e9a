#include "zeze/transaction/key_range.h"

#include <cstddef>
#include <string>

#include "zeze/serialize/byte_writer.h"

namespace zeze::internal {

namespace {

std::string EncodedLength(std::size_t length) {
  ByteWriter out;
  out.WriteUlong(length);
  return out.Release();
}

}  // namespace

KeySpan PrefixSpan(const std::string& prefix, std::size_t length) {
  KeySpan span;
  span.from = EncodedLength(length) + prefix;
  std::string next = prefix;
  while (!next.empty() && next.back() == '\xff') next.pop_back();
  if (next.empty()) {
    span.to = EncodedLength(length + 1);
  } else {
    next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
    span.to = EncodedLength(length) + next;
  }
  return span;
}

}  // namespace zeze::internal
