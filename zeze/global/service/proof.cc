#include "zeze/global/service/proof.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "zeze/base/check.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::global {

namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Hmac(std::string_view secret, const ByteWriter& message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  ZEZE_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                  Bytes(message.view()), message.view().size(), digest.data(), &length) != nullptr);
  return {reinterpret_cast<const char*>(digest.data()), length};
}

void Write(ByteWriter& out, std::string_view who, const Claim& claim) {
  out.WriteBytes(who);
  out.WriteBytes(claim.server_nonce);
  out.WriteBytes(claim.global_nonce);
  out.WriteBytes(claim.cluster);
  out.WriteLong(claim.shard);
}

}  // namespace

std::string NewSecret() {
  std::array<unsigned char, 16> bytes;
  ZEZE_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ProofOfTerm(std::string_view secret, const Claim& claim, std::int64_t term) {
  ByteWriter message;
  Write(message, "global", claim);
  message.WriteLong(term);
  return Hmac(secret, message);
}

std::string ProofOfEpoch(std::string_view secret, const Claim& claim, std::int32_t server_id,
                         std::int64_t epoch) {
  ByteWriter message;
  Write(message, "server", claim);
  message.WriteLong(server_id);
  message.WriteLong(epoch);
  return Hmac(secret, message);
}

bool SameProof(std::string_view expected, std::string_view given) {
  return !expected.empty() && expected.size() == given.size() &&
         CRYPTO_memcmp(expected.data(), given.data(), expected.size()) == 0;
}

}  // namespace zeze::global
