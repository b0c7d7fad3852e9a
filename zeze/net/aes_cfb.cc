#include "zeze/net/aes_cfb.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include <openssl/evp.h>

#include "zeze/base/check.h"

namespace zeze {

struct AesCfb::Context {
  Context() : cipher(EVP_CIPHER_CTX_new()) { ZEZE_CHECK(cipher != nullptr); }
  ~Context() { EVP_CIPHER_CTX_free(cipher); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EVP_CIPHER_CTX* cipher;
};

AesCfb::AesCfb(Mode mode, const AesKey& key) : context_(std::make_unique<Context>()) {
  const int encrypt = mode == Mode::kEncrypt ? 1 : 0;
  ZEZE_CHECK(EVP_CipherInit_ex(context_->cipher, EVP_aes_128_cfb128(), nullptr, key.key.data(),
                               key.iv.data(), encrypt) == 1);
}

AesCfb::~AesCfb() = default;
AesCfb::AesCfb(AesCfb&&) noexcept = default;
AesCfb& AesCfb::operator=(AesCfb&&) noexcept = default;

void AesCfb::Apply(std::span<char> bytes) {
  // OpenSSL counts in int.
  constexpr std::size_t kPieceMax = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kPieceMax);
    auto* data = reinterpret_cast<unsigned char*>(bytes.data());
    int written = 0;
    ZEZE_CHECK(EVP_CipherUpdate(context_->cipher, data, &written, data, static_cast<int>(piece)) ==
               1);
    ZEZE_CHECK(static_cast<std::size_t>(written) == piece);
    bytes = bytes.subspan(piece);
  }
}

}  // namespace zeze
