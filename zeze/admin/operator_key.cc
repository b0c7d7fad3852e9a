#include "zeze/admin/operator_key.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "zeze/base/check.h"
#include "zeze/base/result.h"

namespace zeze::admin {

namespace {

constexpr std::string_view kPublicPrefix = "ed25519:";
constexpr std::size_t kKeyFileBytesMax = 64 << 10;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using KeyHandle = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

std::string ErrnoText() {
  return std::generic_category().message(errno);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

// All of a small file that belongs to whoever reads it.
Result<std::string> ReadPrivateFile(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("opening the key file {}: {}", path, ErrnoText()));
  }
  struct stat about{};
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} is not a file", path));
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("others may read the key file {}: run \"chmod 600 {}\", and make a "
                             "new key if somebody did",
                             path, path));
  }
  std::string text(kKeyFileBytesMax, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("reading the key file {}: {}", path, ErrnoText()));
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace

struct OperatorKey::Handle {
  KeyHandle key;
};

OperatorKey::OperatorKey(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
OperatorKey::OperatorKey(OperatorKey&& other) noexcept = default;
OperatorKey& OperatorKey::operator=(OperatorKey&& other) noexcept = default;
OperatorKey::~OperatorKey() = default;

Result<OperatorKey> OperatorKey::Generate() {
  const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr));
  EVP_PKEY* made = nullptr;
  if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 ||
      EVP_PKEY_keygen(context.get(), &made) != 1) {
    return Error(ErrorCode::kUnavailable,
                 "making a key: the system's random numbers are unavailable");
  }
  auto handle = std::make_unique<Handle>();
  handle->key.reset(made);
  return OperatorKey(std::move(handle));
}

Result<OperatorKey> OperatorKey::Load(const std::string& path) {
  Result<std::string> text = ReadPrivateFile(path);
  if (!text.ok()) return text.error();
  const Bio in(BIO_new_mem_buf(text.value().data(), static_cast<int>(text.value().size())));
  ZEZE_CHECK(in != nullptr);
  auto handle = std::make_unique<Handle>();
  // Without a callback OpenSSL would ask for a password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  handle->key.reset(PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr));
  if (handle->key == nullptr || EVP_PKEY_get_id(handle->key.get()) != EVP_PKEY_ED25519) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a private Ed25519 key (PEM, without a password); \"zeze "
                             "admin keygen\" makes one",
                             path));
  }
  return OperatorKey(std::move(handle));
}

Result<void> OperatorKey::Save(const std::string& path) const {
  const Bio out(BIO_new(BIO_s_mem()));
  ZEZE_CHECK(out != nullptr);
  ZEZE_CHECK(PEM_write_bio_PrivateKey(out.get(), handle_->key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  char* data = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(out.get(), &data));
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0) {
    return Error(errno == EEXIST ? ErrorCode::kInUse : ErrorCode::kUnavailable,
                 fmt::format("making the key file {}: {}", path, ErrnoText()));
  }
  if (write(file.get(), data, size) != static_cast<ssize_t>(size) || fsync(file.get()) != 0) {
    const std::string why = ErrnoText();
    unlink(path.c_str());
    return Error(ErrorCode::kUnavailable, fmt::format("writing the key file {}: {}", path, why));
  }
  return {};
}

std::string OperatorKey::public_key() const {
  std::string bytes(kPublicKeyBytes, '\0');
  std::size_t size = bytes.size();
  ZEZE_CHECK(EVP_PKEY_get_raw_public_key(handle_->key.get(), Bytes(bytes), &size) == 1);
  return bytes;
}

std::string OperatorKey::public_text() const {
  return FormatPublicKey(public_key());
}

std::string OperatorKey::Sign(std::string_view text) const {
  const DigestContext context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  ZEZE_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, handle_->key.get()) == 1);
  ZEZE_CHECK(EVP_DigestSign(context.get(), Bytes(signature), &size, Bytes(text), text.size()) == 1);
  return signature;
}

bool VerifySignature(std::string_view public_key, std::string_view text,
                     std::string_view signature) {
  if (public_key.size() != kPublicKeyBytes || signature.size() != kSignatureBytes) return false;
  const KeyHandle key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key), public_key.size()));
  const DigestContext context(EVP_MD_CTX_new());
  return key != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                          text.size()) == 1;
}

std::string FormatPublicKey(std::string_view public_key) {
  return std::string(kPublicPrefix) + ToHex(public_key);
}

Result<std::string> ParsePublicKey(std::string_view text) {
  const Error wrong(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not a public key: expected \"ed25519:\" and 64 "
                                "hexadecimal digits, as \"zeze admin keygen\" prints them",
                                text));
  if (!text.starts_with(kPublicPrefix)) return wrong;
  text.remove_prefix(kPublicPrefix.size());
  std::optional<std::string> bytes = FromHex(text);
  if (!bytes || bytes->size() != kPublicKeyBytes) return wrong;
  return *std::move(bytes);
}

std::string ToHex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return text;
}

std::optional<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]);
    const int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(16 * high + low));
  }
  return bytes;
}

std::string NewRequestId() {
  std::string bytes(16, '\0');
  ZEZE_CHECK(RAND_bytes(Bytes(bytes), static_cast<int>(bytes.size())) == 1);
  return ToHex(bytes);
}

}  // namespace zeze::admin
