#include "zeze/net/tls_settings.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/net/tls.h"

namespace zeze {
namespace {

Result<void> Needs(const TlsSettings::One& set, const TlsSettings::One& needed) {
  if (set.value.empty() || !needed.value.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{} is set, but {} is missing: set both, or neither for a connection "
                           "that is not encrypted",
                           set.name, needed.name));
}

Result<void> CheckPair(const TlsSettings& settings) {
  Result<void> checked = Needs(settings.key, settings.certificate);
  if (checked.ok()) checked = Needs(settings.certificate, settings.key);
  return checked;
}

}  // namespace

Result<TlsContextPtr> ServerTls(const TlsSettings& settings) {
  Result<void> checked = CheckPair(settings);
  if (checked.ok()) checked = Needs(settings.authorities, settings.certificate);
  if (!checked.ok()) return checked.error();
  if (settings.certificate.value.empty()) return TlsContextPtr();
  return TlsContext::ForServer({.certificate_file = settings.certificate.value,
                                .private_key_file = settings.key.value,
                                .authorities_file = settings.authorities.value,
                                .require_client_certificate = !settings.authorities.value.empty()});
}

Result<std::optional<TlsOptions>> ClientTlsOptions(const TlsSettings& settings) {
  Result<void> checked = CheckPair(settings);
  if (checked.ok()) checked = Needs(settings.certificate, settings.authorities);
  if (checked.ok()) checked = Needs(settings.peer_name, settings.authorities);
  if (!checked.ok()) return checked.error();
  const std::string& authorities = settings.authorities.value;
  if (authorities.empty()) return std::optional<TlsOptions>();
  return std::optional<TlsOptions>(
      {.certificate_file = settings.certificate.value,
       .private_key_file = settings.key.value,
       .authorities_file = authorities == "system" ? "" : authorities});
}

Result<TlsContextPtr> ClientTls(const TlsSettings& settings) {
  const Result<std::optional<TlsOptions>> options = ClientTlsOptions(settings);
  if (!options.ok()) return options.error();
  if (!options.value().has_value()) return TlsContextPtr();
  return TlsContext::ForClient(*options.value());
}

}  // namespace zeze
