// Certificates: an authority, a server certificate signed by it, and a foreign authority, made
// afresh for each run of the tests.
//
//   Certificates::Get().server_certificate   // A PEM file, for "zeze.test" and 127.0.0.1.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "zeze/base/check.h"

namespace zeze::testing {

class Certificates {
 public:
  static const Certificates& Get() {
    static const Certificates certificates;
    return certificates;
  }

  std::string authority;
  std::string other_authority;
  std::string server_certificate;
  std::string server_key;

  ~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

 private:
  using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

  Certificates() {
    std::string pattern = std::filesystem::temp_directory_path() / "zeze_certificates_XXXXXX";
    ZEZE_CHECK(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    authority = directory_ + "/authority.pem";
    other_authority = directory_ + "/other.pem";
    server_certificate = directory_ + "/server.pem";
    server_key = directory_ + "/server.key";

    const KeyPtr authority_key = NewKey();
    const CertificatePtr root = NewCertificate("zeze authority", *authority_key, true);
    Sign(*root, *root, *authority_key);
    Save(*root, authority);
    const KeyPtr other_key = NewKey();
    const CertificatePtr other = NewCertificate("other authority", *other_key, true);
    Sign(*other, *other, *other_key);
    Save(*other, other_authority);
    const KeyPtr key = NewKey();
    const CertificatePtr server = NewCertificate("zeze.test", *key, false);
    Sign(*server, *root, *authority_key);
    Save(*server, server_certificate);
    FILE* file = std::fopen(server_key.c_str(), "w");
    ZEZE_CHECK(PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
    std::fclose(file);
  }

  static KeyPtr NewKey() {
    KeyPtr key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    ZEZE_CHECK(key != nullptr);
    return key;
  }

  static void AddExtension(X509& certificate, int kind, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    ZEZE_CHECK(extension != nullptr);
    ZEZE_CHECK(X509_add_ext(&certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
  }

  static CertificatePtr NewCertificate(const char* name, EVP_PKEY& key, bool is_authority) {
    CertificatePtr certificate(X509_new(), &X509_free);
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), is_authority ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24L * 3600);
    X509_set_pubkey(certificate.get(), &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    AddExtension(*certificate, NID_basic_constraints, is_authority ? "CA:TRUE" : "CA:FALSE");
    if (!is_authority) {
      AddExtension(*certificate, NID_subject_alt_name, "DNS:zeze.test,IP:127.0.0.1");
    }
    return certificate;
  }

  static void Sign(X509& certificate, const X509& issuer, EVP_PKEY& key) {
    ZEZE_CHECK(X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1);
    ZEZE_CHECK(X509_sign(&certificate, &key, EVP_sha256()) > 0);
  }

  static void Save(X509& certificate, const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "w");
    ZEZE_CHECK(file != nullptr);
    ZEZE_CHECK(PEM_write_X509(file, &certificate) == 1);
    std::fclose(file);
  }

  std::string directory_;
};

}  // namespace zeze::testing
