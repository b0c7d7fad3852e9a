#include "zeze/net/service_settings.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/base/text.h"
#include "zeze/base/url.h"
#include "zeze/config/config.h"
#include "zeze/config/section.h"
#include "zeze/config/setting.h"
#include "zeze/net/acceptor.h"
#include "zeze/net/connector.h"
#include "zeze/net/handshake.h"
#include "zeze/net/internal/websocket_upgrade.h"
#include "zeze/net/net_address.h"
#include "zeze/net/rsa.h"
#include "zeze/net/service_options.h"
#include "zeze/net/tls.h"
#include "zeze/net/tls_settings.h"
#include "zeze/net/websocket_options.h"

namespace zeze {
namespace {

Error Wrong(const ConfigSection& section, std::string_view setting, std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: {}: {}", section.Find(setting).source, setting, what)};
}

// For an error that names the setting itself.
Error Wrong(const ConfigSection& section, const Error& error) {
  const std::string place = section.location().ToString();
  return {error.code(), fmt::format("{}{}<{}>: {}", place, place.empty() ? "" : ": ",
                                    ElementName(section.kind()), error.message())};
}

TlsSettings::One TlsSetting(const ConfigSection& section, std::string_view name) {
  return {.name = name, .value = section.Text(name)};
}

Result<std::shared_ptr<const RsaPrivateKey>> LoadKey(const ConfigSection& section) {
  const std::string& path = section.Text("RsaPriKeyFile");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Wrong(section, "RsaPriKeyFile", fmt::format("'{}' cannot be read", path));
  const std::string der((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Result<RsaPrivateKey> key = RsaPrivateKey::FromPkcs8(der);
  if (!key.ok()) return Wrong(section, "RsaPriKeyFile", key.error().message());
  return std::make_shared<const RsaPrivateKey>(std::move(key).value());
}

Result<HandshakeOptions> ReadHandshake(const ConfigSection& section) {
  HandshakeOptions options;
  options.encrypt = static_cast<EncryptType>(section.Integer("EncryptType"));
  options.compress_to_client = static_cast<CompressType>(section.Integer("CompressS2c"));
  options.compress_to_server = static_cast<CompressType>(section.Integer("CompressC2s"));
  options.server_key_hex = section.Text("RsaPubKey");
  if (!options.server_key_hex.empty()) {
    Result<RsaPublicKey> key = RsaPublicKey::FromModulusHex(options.server_key_hex);
    if (!key.ok()) return Wrong(section, "RsaPubKey", key.error().message());
  }
  if (!section.Text("RsaPriKeyFile").empty()) {
    Result<std::shared_ptr<const RsaPrivateKey>> key = LoadKey(section);
    if (!key.ok()) return key.error();
    options.server_private_key = std::move(key).value();
  }
  if (const std::string& ip = section.Text("SecureIp"); !ip.empty()) {
    Result<NetAddress> address = NetAddress::FromText(ip, 0);
    if (!address.ok()) return Wrong(section, "SecureIp", address.error().message());
    options.secure_ip = address.value();
  }
  return options;
}

void ReadSocketAndLimits(const ConfigSection& section, ServiceOptions& options) {
  if (section.IsSet("NoDelay")) options.socket.no_delay = section.Bool("NoDelay");
  if (section.IsSet("SendBuffer")) {
    options.socket.send_buffer_bytes = static_cast<int>(section.Size("SendBuffer"));
  }
  if (section.IsSet("ReceiveBuffer")) {
    options.socket.receive_buffer_bytes = static_cast<int>(section.Size("ReceiveBuffer"));
  }
  options.frame_bytes_max = static_cast<std::size_t>(section.Size("InputBufferMaxProtocolSize"));
  options.output_bytes_max = static_cast<std::size_t>(section.Size("OutputBufferMaxSize"));
  options.close_when_no_handler = section.Bool("CloseWhenMissHandle");
  options.keep_alive = {.check_period = section.Duration("KeepCheckPeriod"),
                        .receive_timeout = section.Duration("KeepRecvTimeout"),
                        .send_timeout = section.Duration("KeepSendTimeout")};
}

Result<WebSocketAcceptOptions> ReadWebSocket(const ConfigSection& section) {
  WebSocketAcceptOptions options;
  if (const std::string& path = section.Text("Path"); !path.empty()) options.path = path;
  Result<void> checked = internal::CheckWebSocketPath(options.path);
  if (!checked.ok()) return Wrong(section, "Path", checked.error().message());
  for (const std::string_view origin : Split(section.Text("AllowedOrigins"), ',')) {
    if (origin.find("://") == std::string_view::npos || origin.ends_with('/')) {
      return Wrong(
          section, "AllowedOrigins",
          fmt::format("'{}' is no origin: expected https://host or https://host:port", origin));
    }
    options.allowed_origins.emplace_back(origin);
  }
  return options;
}

// Of an <Acceptor>, or of a <Websocket> with a port.
Result<AcceptorOptions> ReadAcceptor(const ConfigSection& service, const ConfigSection& section) {
  AcceptorOptions options;
  if (section.kind() == ElementKind::kWebsocket) {
    Result<WebSocketAcceptOptions> websocket = ReadWebSocket(section);
    if (!websocket.ok()) return websocket.error();
    options.websocket = std::move(websocket).value();
  }
  options.ip = section.Text("Ip");
  if (!options.ip.empty() && options.ip != "@internal" && options.ip != "@external") {
    Result<NetAddress> address = NetAddress::FromText(options.ip, 0);
    if (!address.ok()) return Wrong(section, "Ip", address.error().message());
  }
  options.port = static_cast<std::uint16_t>(section.Integer("Port"));
  options.backlog = static_cast<int>(service.Integer("Backlog"));
  options.proxy_protocol = service.IsSet("HaProxyKey");
  Result<TlsContextPtr> tls =
      ServerTls({.certificate = TlsSetting(section, "TlsCertificateFile"),
                 .key = TlsSetting(section, "TlsKeyFile"),
                 .authorities = TlsSetting(section, "TlsClientAuthoritiesFile")});
  if (!tls.ok()) return Wrong(section, tls.error());
  options.tls = std::move(tls).value();
  return options;
}

// "host", or "host:port" with the port in place of the other attribute.
Result<void> ReadHost(const ConfigSection& section, ConnectorOptions& options) {
  const std::string& text = section.Text("HostNameOrAddress");
  options.host = text;
  options.port = static_cast<std::uint16_t>(section.Integer("Port"));
  const std::size_t colon = text.rfind(':');
  // More than one colon: an IPv6 address.
  if (colon != std::string::npos && text.find(':') == colon) {
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + colon + 1, end, options.port);
    if (error != std::errc() || parsed != end) {
      return Wrong(section, "HostNameOrAddress", fmt::format("'{}' has no valid port", text));
    }
    options.host = text.substr(0, colon);
  }
  if (!options.host.empty() && options.port != 0) return {};
  return Wrong(section, "HostNameOrAddress", "a connector needs a host and a port");
}

// A WebSocket. `authorities` are those of wss unless the file names others.
Result<void> ReadUrl(const ConfigSection& section, ConnectorOptions& options,
                     std::string& authorities) {
  if (section.IsSet("HostNameOrAddress") || section.IsSet("Port")) {
    return Wrong(section, "Url", "a connector has either a Url or a host and a port");
  }
  Result<Url> url = ParseUrl(section.Text("Url"), {{"ws", 80}, {"wss", 443}});
  if (!url.ok()) return Wrong(section, "Url", url.error().message());
  options.host = url.value().host;
  options.port = url.value().port;
  options.websocket = WebSocketConnectOptions{.path = url.value().target};
  if (url.value().scheme == "ws") {
    if (authorities.empty()) return {};
    return Wrong(section, "Url", "ws is not encrypted: write wss, or leave TlsAuthoritiesFile out");
  }
  if (authorities.empty()) authorities = "system";
  return {};
}

Result<ConnectorOptions> ReadConnector(const ConfigSection& section) {
  ConnectorOptions options;
  std::string authorities = section.Text("TlsAuthoritiesFile");
  const Result<void> read = section.Text("Url").empty() ? ReadHost(section, options)
                                                        : ReadUrl(section, options, authorities);
  if (!read.ok()) return read.error();
  options.reconnect = section.Bool("IsAutoReconnect");
  options.delay_max = section.Duration("MaxReconnectDelay");
  options.tls_name = section.Text("TlsName");
  Result<TlsContextPtr> tls = ClientTls({.certificate = TlsSetting(section, "TlsCertificateFile"),
                                         .key = TlsSetting(section, "TlsKeyFile"),
                                         .authorities = {"TlsAuthoritiesFile", authorities},
                                         .peer_name = TlsSetting(section, "TlsName")});
  if (!tls.ok()) return Wrong(section, tls.error());
  options.tls = std::move(tls).value();
  return options;
}

// A server that asks for type 3 and has no key lets no client in. Services that a program connects
// by itself have neither acceptor nor connector here, but the key of their server.
Result<void> CheckRsaKey(const ConfigSection& section, const ServiceSettings& settings) {
  const std::optional<HandshakeOptions>& handshake = settings.options.handshake;
  if (!handshake || handshake->encrypt != EncryptType::kRsaAes) return {};
  const bool listens = !settings.acceptors.empty() ||
                       (settings.connectors.empty() && handshake->server_key_hex.empty());
  if (!listens || handshake->server_private_key != nullptr) return {};
  return Wrong(section, "EncryptType", "3 needs the key of the server: set RsaPriKeyFile");
}

}  // namespace

Result<ServiceSettings> SettingsFromConfig(const Config& config, std::string_view service_name,
                                           ServiceKind kind) {
  const ServiceConfig& service = config.Service(service_name);
  const ConfigSection& section = service.section;
  ServiceSettings settings;
  settings.options.name = service_name;
  ReadSocketAndLimits(section, settings.options);
  if (kind == ServiceKind::kHandshake) {
    Result<HandshakeOptions> handshake = ReadHandshake(section);
    if (!handshake.ok()) return handshake.error();
    settings.options.handshake = std::move(handshake).value();
  }
  if (service.name != service_name) return settings;  // The one without a name.
  settings.options.connections_max = static_cast<std::size_t>(section.Integer("maxConnections"));
  for (const ConfigSection& child : section.children) {
    const bool is_websocket = child.kind() == ElementKind::kWebsocket;
    if (child.kind() == ElementKind::kAcceptor || (is_websocket && child.IsSet("Port"))) {
      Result<AcceptorOptions> acceptor = ReadAcceptor(section, child);
      if (!acceptor.ok()) return acceptor.error();
      settings.acceptors.push_back(std::move(acceptor).value());
    } else if (child.kind() == ElementKind::kConnector) {
      Result<ConnectorOptions> connector = ReadConnector(child);
      if (!connector.ok()) return connector.error();
      settings.connectors.push_back(std::move(connector).value());
    }
  }
  if (Result<void> keyed = CheckRsaKey(section, settings); !keyed.ok()) return keyed.error();
  return settings;
}

}  // namespace zeze
