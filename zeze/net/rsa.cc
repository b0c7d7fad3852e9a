#include "zeze/net/rsa.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"
#include "zeze/net/aes_cfb.h"
#include "zeze/net/dh.h"
#include "zeze/serialize/type_code.h"

namespace zeze {
namespace {

constexpr int kModulusBitsMin = 2048;
constexpr int kModulusBitsMax = 16384;
constexpr unsigned long kExponent = 65537;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using ContextHandle = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Deleter<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Deleter<OSSL_PARAM_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

Error NoRandomness() {
  return Error(ErrorCode::kUnavailable,
               "drawing session keys: the system's random numbers are unavailable");
}

KeyHandle MakePublicKey(const BIGNUM* modulus) {
  const Number exponent(BN_new());
  const Builder builder(OSSL_PARAM_BLD_new());
  const ContextHandle context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  ZEZE_CHECK(exponent != nullptr && builder != nullptr && context != nullptr);
  ZEZE_CHECK(BN_set_word(exponent.get(), kExponent) == 1);
  ZEZE_CHECK(OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus) == 1);
  ZEZE_CHECK(OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) == 1);
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  ZEZE_CHECK(parameters != nullptr);
  EVP_PKEY* key = nullptr;
  ZEZE_CHECK(EVP_PKEY_fromdata_init(context.get()) == 1);
  if (EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) return {};
  return KeyHandle(key);
}

// The four blocks that both sides take from the 64 bytes.
SessionKeys SplitSecret(std::string_view secret) {
  const auto block = [secret](std::size_t index) {
    AesBlock bytes;
    std::copy_n(secret.begin() + static_cast<std::ptrdiff_t>(index * bytes.size()), bytes.size(),
                bytes.begin());
    return bytes;
  };
  return {.to_server = {.key = block(1), .iv = block(0)},
          .to_client = {.key = block(3), .iv = block(2)}};
}

}  // namespace

struct RsaPublicKey::Key {
  KeyHandle handle;
};
struct RsaPrivateKey::Key {
  KeyHandle handle;
};

RsaPublicKey::RsaPublicKey(std::unique_ptr<Key> key) : key_(std::move(key)) {}
RsaPublicKey::~RsaPublicKey() = default;
RsaPublicKey::RsaPublicKey(RsaPublicKey&&) noexcept = default;
RsaPublicKey& RsaPublicKey::operator=(RsaPublicKey&&) noexcept = default;

RsaPrivateKey::RsaPrivateKey(std::unique_ptr<Key> key) : key_(std::move(key)) {}
RsaPrivateKey::~RsaPrivateKey() = default;
RsaPrivateKey::RsaPrivateKey(RsaPrivateKey&&) noexcept = default;
RsaPrivateKey& RsaPrivateKey::operator=(RsaPrivateKey&&) noexcept = default;

Result<RsaPublicKey> RsaPublicKey::FromModulusHex(std::string_view hex) {
  const bool is_hex = !hex.empty() && std::ranges::all_of(hex, [](char digit) {
    return std::isxdigit(static_cast<unsigned char>(digit)) != 0;
  });
  BIGNUM* parsed = nullptr;
  if (is_hex && hex.size() <= kModulusBitsMax / 4 + 2) {
    ZEZE_CHECK(BN_hex2bn(&parsed, std::string(hex).c_str()) != 0);
  }
  const Number modulus(parsed);
  KeyHandle handle;
  if (modulus != nullptr && BN_num_bits(modulus.get()) >= kModulusBitsMin &&
      BN_is_odd(modulus.get()) == 1) {
    handle = MakePublicKey(modulus.get());
  }
  if (handle == nullptr) {
    return Error(
        ErrorCode::kInvalidArgument,
        "the RSA public key must be a modulus of 2048 to 16384 bits in hexadecimal digits");
  }
  auto key = std::make_unique<Key>();
  key->handle = std::move(handle);
  return RsaPublicKey(std::move(key));
}

Result<std::string> RsaPublicKey::Encrypt(std::string_view data) const {
  const ContextHandle context(EVP_PKEY_CTX_new(key_->handle.get(), nullptr));
  ZEZE_CHECK(context != nullptr);
  ZEZE_CHECK(EVP_PKEY_encrypt_init(context.get()) == 1);
  ZEZE_CHECK(EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) == 1);
  std::string block(static_cast<std::size_t>(EVP_PKEY_get_size(key_->handle.get())), '\0');
  std::size_t bytes = block.size();
  if (EVP_PKEY_encrypt(context.get(), Bytes(block), &bytes, Bytes(data), data.size()) != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "the data is too long to be encrypted by this RSA key");
  }
  block.resize(bytes);
  return block;
}

Result<RsaPrivateKey> RsaPrivateKey::FromPkcs8(std::string_view der) {
  const unsigned char* cursor = Bytes(der);
  auto key = std::make_unique<Key>();
  if (der.size() <= kEncodedBytesMax) {
    key->handle.reset(d2i_AutoPrivateKey(nullptr, &cursor, static_cast<long>(der.size())));
  }
  if (key->handle == nullptr || EVP_PKEY_get_base_id(key->handle.get()) != EVP_PKEY_RSA ||
      EVP_PKEY_get_bits(key->handle.get()) < kModulusBitsMin) {
    return Error(ErrorCode::kInvalidArgument,
                 "the RSA private key must be a key of at least 2048 bits in a PKCS#8 file in DER "
                 "form; make one with: openssl genpkey -algorithm RSA -outform DER -out key.der");
  }
  return RsaPrivateKey(std::move(key));
}

Result<RsaPrivateKey> RsaPrivateKey::Generate() {
  auto key = std::make_unique<Key>();
  key->handle.reset(EVP_RSA_gen(static_cast<std::size_t>(kModulusBitsMin)));
  if (key->handle == nullptr) return NoRandomness();
  return RsaPrivateKey(std::move(key));
}

std::string RsaPrivateKey::ModulusHex() const {
  BIGNUM* found = nullptr;
  ZEZE_CHECK(EVP_PKEY_get_bn_param(key_->handle.get(), OSSL_PKEY_PARAM_RSA_N, &found) == 1);
  const Number modulus(found);
  const std::unique_ptr<char, void (*)(char*)> hex(BN_bn2hex(modulus.get()),
                                                   [](char* text) { OPENSSL_free(text); });
  return hex.get();
}

std::string RsaPrivateKey::ToPkcs8() const {
  const std::unique_ptr<PKCS8_PRIV_KEY_INFO, Deleter<PKCS8_PRIV_KEY_INFO_free>> info(
      EVP_PKEY2PKCS8(key_->handle.get()));
  ZEZE_CHECK(info != nullptr);
  const int bytes = i2d_PKCS8_PRIV_KEY_INFO(info.get(), nullptr);
  ZEZE_CHECK(bytes > 0);
  std::string der(static_cast<std::size_t>(bytes), '\0');
  unsigned char* cursor = Bytes(der);
  i2d_PKCS8_PRIV_KEY_INFO(info.get(), &cursor);
  return der;
}

Result<RsaSessionSecret> RsaSessionSecret::Generate(const RsaPublicKey& server_key) {
  std::string secret(kRsaSecretBytes, '\0');
  if (RAND_priv_bytes(Bytes(secret), static_cast<int>(secret.size())) != 1) return NoRandomness();
  Result<std::string> encrypted = server_key.Encrypt(secret);
  if (!encrypted.ok()) return encrypted.error();
  RsaSessionSecret session;
  session.encrypted_ = std::move(encrypted.value());
  session.keys_ = SplitSecret(secret);
  return session;
}

Result<SessionKeys> AcceptRsaSessionSecret(const RsaPrivateKey& key, std::string_view encrypted) {
  // Drawn in any case, so that failing takes no longer than succeeding.
  std::string secret(kRsaSecretBytes, '\0');
  if (RAND_priv_bytes(Bytes(secret), static_cast<int>(secret.size())) != 1) return NoRandomness();

  EVP_PKEY* handle = key.key_->handle.get();
  const ContextHandle context(EVP_PKEY_CTX_new(handle, nullptr));
  ZEZE_CHECK(context != nullptr);
  ZEZE_CHECK(EVP_PKEY_decrypt_init(context.get()) == 1);
  ZEZE_CHECK(EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) == 1);
  std::string plain(static_cast<std::size_t>(EVP_PKEY_get_size(handle)), '\0');
  std::size_t bytes = plain.size();
  const bool decrypted = EVP_PKEY_decrypt(context.get(), Bytes(plain), &bytes, Bytes(encrypted),
                                          encrypted.size()) == 1;
  const bool usable = decrypted && bytes == kRsaSecretBytes;
  return SplitSecret(usable ? std::string_view(plain).substr(0, kRsaSecretBytes) : secret);
}

}  // namespace zeze
