// AesCfb: encrypts or decrypts one direction of a connection, AES-128 in CFB mode as a byte stream.
//
//   AesCfb encrypt(AesCfb::Mode::kEncrypt, {.key = key, .iv = key});
//   encrypt.Apply(bytes);   // In place; the next call continues where this one ended.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace zeze {

using AesBlock = std::array<std::uint8_t, 16>;

struct AesKey {
  AesBlock key = {};
  AesBlock iv = {};
};

class AesCfb {
 public:
  enum class Mode { kEncrypt, kDecrypt };

  AesCfb(Mode mode, const AesKey& key);
  ~AesCfb();

  AesCfb(AesCfb&&) noexcept;
  AesCfb& operator=(AesCfb&&) noexcept;

  // Any number of bytes: there are no blocks to fill.
  void Apply(std::span<char> bytes);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace zeze
