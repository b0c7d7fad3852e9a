// What a RedoStore writes to its disk. Beans, so that newer programs may add to them; field ids are
// never used again.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/serialize/binary.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::redo {

// One for each store.
struct StoreRecord {
  static constexpr std::string_view kFullName = "zeze.redo.StoreRecord";

  std::int64_t store_id = 0;
  std::int32_t queues = 0;  // Numbers given to queues so far.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "store_id"}, &StoreRecord::store_id);
    visit(Field{2, "queues"}, &StoreRecord::queues);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// One for each queue, under its name.
struct QueueRecord {
  static constexpr std::string_view kFullName = "zeze.redo.QueueRecord";

  std::int32_t number = 0;
  // Tasks up to this one are deleted; and the chain there.
  std::int64_t floor_id = 0;
  std::int64_t floor_chain = 0;
  std::int64_t confirmed_id = 0;
  std::int64_t saved_id = 0;
  // A server has been asked, and had done nothing before.
  bool bound = false;
  // The first task behind this one tells the server that an operator lets this store go on.
  std::int64_t adopted_id = -1;
  // A server has said what it has saved: saved_id counts, also if it is 0.
  bool says_saved = false;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "number"}, &QueueRecord::number);
    visit(Field{2, "floor_id"}, &QueueRecord::floor_id);
    visit(Field{3, "floor_chain"}, &QueueRecord::floor_chain);
    visit(Field{4, "confirmed_id"}, &QueueRecord::confirmed_id);
    visit(Field{5, "saved_id"}, &QueueRecord::saved_id);
    visit(Field{6, "bound"}, &QueueRecord::bound);
    visit(Field{7, "adopted_id", /*zero_when_absent=*/true}, &QueueRecord::adopted_id);
    visit(Field{8, "says_saved"}, &QueueRecord::says_saved);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// One for each task, under the queue's number and its id.
struct TaskRecord {
  static constexpr std::string_view kFullName = "zeze.redo.TaskRecord";

  std::int32_t type = 0;
  Binary param = {};
  std::int64_t added_ms = 0;
  std::int64_t chain = 0;  // Behind this task.
  bool skip = false;       // An operator said so.

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "type"}, &TaskRecord::type);
    visit(Field{2, "param"}, &TaskRecord::param);
    visit(Field{3, "added_ms"}, &TaskRecord::added_ms);
    visit(Field{4, "chain"}, &TaskRecord::chain);
    visit(Field{5, "skip"}, &TaskRecord::skip);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// Up to which task a queue was confirmed at a time, under the queue's number and that time.
struct MarkRecord {
  static constexpr std::string_view kFullName = "zeze.redo.MarkRecord";

  std::int64_t confirmed_id = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "confirmed_id"}, &MarkRecord::confirmed_id);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

// The key of a row: the queue's number and a number of eight bytes, big-endian, so that rows are in
// the order of both.
inline std::string RowKey(std::int32_t queue, std::int64_t number) {
  ByteWriter out;
  out.WriteInt4BigEndian(queue);
  out.WriteLong8BigEndian(number);
  return out.Release();
}

struct ParsedRowKey {
  std::int32_t queue = 0;
  std::int64_t number = 0;
};

inline Result<ParsedRowKey> ParseRowKey(std::string_view bytes) {
  ByteReader in(bytes);
  const ParsedRowKey key{.queue = in.ReadInt4BigEndian(), .number = in.ReadLong8BigEndian()};
  if (!in.ok() || in.remaining() != 0) {
    return Error(ErrorCode::kCorrupt, "a row of the redo store has a key that it never wrote");
  }
  return key;
}

}  // namespace zeze::redo
