// OperatorKey: the personal key with which an operator signs requests; Ed25519.
//
//   OperatorKey key = OperatorKey::Generate();
//   key.Save("alice.key");                              // Readable by its owner only.
//   std::string line = "alice " + key.public_text();    // For the file of operators.
//   std::string signature = key.Sign(text);
//   bool hers = VerifySignature(public_key, text, signature);

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeze/base/result.h"

namespace zeze::admin {

inline constexpr std::size_t kPublicKeyBytes = 32;
inline constexpr std::size_t kSignatureBytes = 64;

class OperatorKey {
 public:
  // Fails only if the system has no random numbers.
  static Result<OperatorKey> Generate();
  // PEM. Errors say what is wrong with the file; a file that others may read is refused.
  static Result<OperatorKey> Load(const std::string& path);

  OperatorKey(OperatorKey&& other) noexcept;
  OperatorKey& operator=(OperatorKey&& other) noexcept;
  ~OperatorKey();

  // A new file with mode 0600; never over one that is there.
  Result<void> Save(const std::string& path) const;

  std::string public_key() const;   // kPublicKeyBytes.
  std::string public_text() const;  // As the file of operators has it.
  std::string Sign(std::string_view text) const;

 private:
  struct Handle;
  explicit OperatorKey(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

bool VerifySignature(std::string_view public_key, std::string_view text,
                     std::string_view signature);

// "ed25519:" and 64 hexadecimal digits.
std::string FormatPublicKey(std::string_view public_key);
// The bytes, or an error that says what was expected.
Result<std::string> ParsePublicKey(std::string_view text);

std::string ToHex(std::string_view bytes);
// None if the text is anything but pairs of hexadecimal digits.
std::optional<std::string> FromHex(std::string_view text);
// A random name that nobody can guess or meet twice: 32 hexadecimal digits.
std::string NewRequestId();

}  // namespace zeze::admin
