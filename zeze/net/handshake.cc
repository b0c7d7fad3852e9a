#include "zeze/net/handshake.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze {
namespace {

// Far more types than there can be; more is an attempt to make us work.
constexpr std::size_t kSupportedTypesMax = 64;

template <typename T>
T ReadType(ByteReader& in) {
  return static_cast<T>(in.ReadLong());
}

template <typename T>
void WriteType(T type, ByteWriter& out) {
  out.WriteLong(static_cast<std::int64_t>(type));
}

template <typename T>
std::vector<T> ReadTypes(ByteReader& in) {
  const std::int64_t count = in.ReadLong();
  if (count < 0 || static_cast<std::uint64_t>(count) > kSupportedTypesMax) {
    in.Fail("the list of supported types has a length outside 0 to 64");
    return {};
  }
  std::vector<T> types;
  for (std::int64_t i = 0; i < count && in.ok(); ++i) types.push_back(ReadType<T>(in));
  return types;
}

template <typename T>
void WriteTypes(const std::vector<T>& types, ByteWriter& out) {
  out.WriteLong(static_cast<std::int64_t>(types.size()));
  for (const T type : types) WriteType(type, out);
}

// What a peer too old to say so does: it compresses whenever it encrypts.
CompressType CompressOfOldPeer(EncryptType encrypt) {
  return encrypt == EncryptType::kNone ? CompressType::kNone : CompressType::kMppc;
}

}  // namespace

void ServerHello::Encode(ByteWriter& out) const {
  WriteType(encrypt, out);
  WriteTypes(supported_encrypt, out);
  WriteType(compress_to_client, out);
  WriteType(compress_to_server, out);
  WriteTypes(supported_compress, out);
}

void ServerHello::Decode(ByteReader& in) {
  encrypt = ReadType<EncryptType>(in);
  if (in.remaining() == 0) {
    supported_encrypt.clear();
    supported_compress.clear();
    compress_to_client = compress_to_server = CompressOfOldPeer(encrypt);
    return;
  }
  supported_encrypt = ReadTypes<EncryptType>(in);
  compress_to_client = ReadType<CompressType>(in);
  compress_to_server = ReadType<CompressType>(in);
  supported_compress = ReadTypes<CompressType>(in);
}

void ClientChoice::Encode(ByteWriter& out) const {
  WriteType(encrypt, out);
  out.WriteBytes(encrypt_parameter);
  WriteType(compress_to_client, out);
  WriteType(compress_to_server, out);
}

void ClientChoice::Decode(ByteReader& in) {
  encrypt = ReadType<EncryptType>(in);
  encrypt_parameter = in.ReadBytes();
  if (in.remaining() == 0) {
    compress_to_client = compress_to_server = CompressOfOldPeer(encrypt);
    return;
  }
  compress_to_client = ReadType<CompressType>(in);
  compress_to_server = ReadType<CompressType>(in);
}

void ServerChoice::Encode(ByteWriter& out) const {
  out.WriteBytes(encrypt_parameter);
  WriteType(compress_to_client, out);
  WriteType(compress_to_server, out);
  WriteType(encrypt, out);
}

void ServerChoice::Decode(ByteReader& in) {
  encrypt_parameter = in.ReadBytes();
  compress_to_client = ReadType<CompressType>(in);
  compress_to_server = ReadType<CompressType>(in);
  if (in.remaining() == 0) {
    encrypt = encrypt_parameter.empty() ? EncryptType::kNone : EncryptType::kAesWithIp;
    return;
  }
  encrypt = ReadType<EncryptType>(in);
}

}  // namespace zeze
