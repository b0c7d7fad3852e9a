// The names of the ServiceConfs and CustomizeConfs that programs and components of zeze read. An
// application may have others; these are what a name with a typing error is compared with.

#pragma once

#include <string_view>

namespace zeze::known_names {

inline constexpr std::string_view kLinkdService = "LinkdService";        // For clients.
inline constexpr std::string_view kProviderService = "ProviderService";  // For servers.
inline constexpr std::string_view kRedoQueueServer = "RedoQueueServer";
inline constexpr std::string_view kRegistryService = "Zeze.Services.ServiceManager";
inline constexpr std::string_view kRegistryAgent = "Zeze.Services.ServiceManager.Agent";
inline constexpr std::string_view kLinkd = "Zeze.Linkd";

inline constexpr std::string_view kServices[] = {kLinkdService, kProviderService, kRedoQueueServer,
                                                 kRegistryService, kRegistryAgent};
inline constexpr std::string_view kCustomizes[] = {kLinkd, kRegistryService};

}  // namespace zeze::known_names
