// The tables of the test of large commits: each commit writes a document and its seal, so every
// document in the database has one, and every seal a document.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "zeze/base/result.h"
#include "zeze/bean/codec.h"
#include "zeze/bean/field.h"
#include "zeze/bean/list.h"
#include "zeze/serialize/binary.h"
#include "zeze/storage/rocksdb/rocksdb_storage.h"
#include "zeze/storage/storage.h"
#include "zeze/storage/storage_driver.h"
#include "zeze/transaction/engine.h"
#include "zeze/transaction/table.h"
#include "zeze/transaction/table_descriptor.h"

namespace zeze::fault {

struct BDocument {
  static constexpr std::int64_t kTypeId = 31;
  static constexpr std::string_view kFullName = "fault.BDocument";
  List<Binary> parts;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "parts"}, &BDocument::parts);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

struct BSeal {
  static constexpr std::int64_t kTypeId = 32;
  static constexpr std::string_view kFullName = "fault.BSeal";
  std::int64_t bytes = 0;

  template <typename Visitor>
  static constexpr void ForEachField(Visitor&& visit) {
    visit(Field{1, "bytes"}, &BSeal::bytes);
  }
  void Encode(ByteWriter& out) const { EncodeFields(*this, out); }
  void Decode(ByteReader& in) { DecodeFields(*this, in); }
};

struct LargeTables {
  Result<void> AddTo(Engine& engine, bool groups) {
    if (Result<void> added = engine.AddTable(documents); !added.ok()) return added;
    return engine.AddTable(seals, {.durable_at_commit = groups});
  }

  Table<std::int64_t, BDocument> documents{TableDescriptor{.id = 1, .name = "fault_documents"}};
  Table<std::int64_t, BSeal> seals{TableDescriptor{.id = 2, .name = "fault_seals"}};
};

// What is in the document of a key.
inline std::string DocumentText(std::int64_t key, std::size_t bytes) {
  std::string text = std::to_string(key);
  text.resize(bytes, static_cast<char>('a' + key % 26));
  return text;
}

// An SQL database by its address, or a directory for RocksDB.
inline Result<std::unique_ptr<Storage>> OpenPlace(const std::string& place) {
  return OpenStorage({.url = place.find("://") == std::string::npos ? "rocksdb:" + place : place});
}

}  // namespace zeze::fault
