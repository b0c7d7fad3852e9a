#include "zeze/net/dh.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/aes_cfb.h"

namespace zeze {
namespace {

constexpr int kGenerator = 2;
constexpr int kExponentBits = 128;
constexpr std::size_t kNumberBytesMax = 97;  // 768 bits and a leading 00.

struct NumberDeleter {
  void operator()(BIGNUM* number) const { BN_clear_free(number); }
};
using Number = std::unique_ptr<BIGNUM, NumberDeleter>;

struct ContextDeleter {
  void operator()(BN_CTX* context) const { BN_CTX_free(context); }
};

Number NewNumber() {
  Number number(BN_new());
  ZEZE_CHECK(number != nullptr);
  return number;
}

// The First Oakley Group.
const BIGNUM* Prime() {
  static const Number prime([] {
    BIGNUM* number = BN_get_rfc2409_prime_768(nullptr);
    ZEZE_CHECK(number != nullptr);
    return number;
  }());
  return prime.get();
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Null for a negative number, for nothing at all and for more bytes than any peer sends.
Number ParseNumber(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > kNumberBytesMax) return nullptr;
  if ((static_cast<unsigned char>(bytes[0]) & 0x80) != 0) return nullptr;
  Number number(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
  ZEZE_CHECK(number != nullptr);
  return number;
}

std::string FormatNumber(const BIGNUM* number) {
  const auto bytes = static_cast<std::size_t>(BN_num_bits(number)) / 8 + 1;
  std::string text(bytes, '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(text.data()), static_cast<int>(bytes));
  return text;
}

// The exponent is secret, so that the time must not depend on it.
Number Power(const BIGNUM* base, BIGNUM* exponent) {
  const std::unique_ptr<BN_CTX, ContextDeleter> context(BN_CTX_new());
  ZEZE_CHECK(context != nullptr);
  BN_set_flags(exponent, BN_FLG_CONSTTIME);
  Number result = NewNumber();
  ZEZE_CHECK(BN_mod_exp_mont_consttime(result.get(), base, exponent, Prime(), context.get(),
                                       nullptr) == 1);
  return result;
}

}  // namespace

struct DiffieHellman::Secret {
  Number exponent;
};

DiffieHellman::DiffieHellman(std::unique_ptr<Secret> secret) : secret_(std::move(secret)) {
  const Number generator = NewNumber();
  ZEZE_CHECK(BN_set_word(generator.get(), kGenerator) == 1);
  public_value_ = FormatNumber(Power(generator.get(), secret_->exponent.get()).get());
}

DiffieHellman::~DiffieHellman() = default;
DiffieHellman::DiffieHellman(DiffieHellman&&) noexcept = default;
DiffieHellman& DiffieHellman::operator=(DiffieHellman&&) noexcept = default;

Result<DiffieHellman> DiffieHellman::Generate() {
  auto secret = std::make_unique<Secret>();
  secret->exponent = NewNumber();
  if (BN_priv_rand(secret->exponent.get(), kExponentBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) !=
      1) {
    return Error(ErrorCode::kUnavailable,
                 "drawing a Diffie-Hellman exponent: the system's random numbers are unavailable");
  }
  return DiffieHellman(std::move(secret));
}

Result<DiffieHellman> DiffieHellman::FromExponent(std::string_view exponent) {
  auto secret = std::make_unique<Secret>();
  secret->exponent = ParseNumber(exponent);
  if (secret->exponent == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 "a Diffie-Hellman exponent is a positive number of at most 97 bytes");
  }
  return DiffieHellman(std::move(secret));
}

Result<std::string> DiffieHellman::SharedMaterial(std::string_view peer_public_value) const {
  const Number peer = ParseNumber(peer_public_value);
  const Number largest(BN_dup(Prime()));
  ZEZE_CHECK(largest != nullptr);
  ZEZE_CHECK(BN_sub_word(largest.get(), 2) == 1);
  if (peer == nullptr || BN_cmp(peer.get(), BN_value_one()) <= 0 ||
      BN_cmp(peer.get(), largest.get()) > 0) {
    return Error(
        ErrorCode::kCorrupt,
        "the peer's Diffie-Hellman value is not between 2 and p - 2; refuse the connection");
  }
  return FormatNumber(Power(peer.get(), secret_->exponent.get()).get());
}

AesBlock Md5(std::string_view data) {
  AesBlock digest;
  unsigned int bytes = 0;
  ZEZE_CHECK(EVP_Digest(data.data(), data.size(), digest.data(), &bytes, EVP_md5(), nullptr) == 1);
  ZEZE_CHECK(bytes == digest.size());
  return digest;
}

AesBlock HmacMd5(std::string_view key, std::string_view data) {
  AesBlock digest;
  unsigned int bytes = 0;
  ZEZE_CHECK(HMAC(EVP_md5(), key.data(), static_cast<int>(key.size()), Bytes(data), data.size(),
                  digest.data(), &bytes) != nullptr);
  ZEZE_CHECK(bytes == digest.size());
  return digest;
}

SessionSecrets DeriveSessionSecrets(std::string_view material,
                                    std::optional<std::string_view> server_address) {
  const std::string_view first = material.substr(0, material.size() / 2);
  const std::string_view second = material.substr(first.size());
  const auto secret = [&](std::string_view half) {
    if (!server_address) return std::string(half);
    const AesBlock digest = HmacMd5(*server_address, half);
    return std::string(digest.begin(), digest.end());
  };
  return {.to_server = secret(first), .to_client = secret(second)};
}

SessionKeys DeriveSessionKeys(std::string_view material,
                              std::optional<std::string_view> server_address) {
  const SessionSecrets secrets = DeriveSessionSecrets(material, server_address);
  const AesBlock to_server = Md5(secrets.to_server);
  const AesBlock to_client = Md5(secrets.to_client);
  return {.to_server = {.key = to_server, .iv = to_server},
          .to_client = {.key = to_client, .iv = to_client}};
}

}  // namespace zeze
