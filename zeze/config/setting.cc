#include "zeze/config/setting.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "zeze/base/result.h"
#include "zeze/base/text.h"

namespace zeze {

namespace {

using enum SettingKind;

constexpr std::chrono::nanoseconds kSeconds = std::chrono::seconds(1);

constexpr Setting kZezeSettings[] = {
    // Identity.
    {.name = "name", .help = "free text", .used = false},
    {.name = "ServerId",
     .kind = kInteger,
     .default_value = "0",
     .help = "number of this process, unique in its cluster; negative means NoDatabase",
     .min = INT32_MIN,
     .max = 16383},
    {.name = "AppVersion",
     .default_value = "0",
     .help = "a.b.c.d, each part below 65536; the first is the main version"},
    {.name = "NoDatabase",
     .kind = kBool,
     .default_value = "false",
     .help = "a process without tables and transactions",
     .used = false},
    // Threads.
    {.name = "WorkerThreads",
     .kind = kInteger,
     .default_value = "0",
     .help = "threads that run procedures; 0 means 30 for each core",
     .min = 0,
     .max = 100'000},
    {.name = "CriticalThreads",
     .kind = kInteger,
     .default_value = "0",
     .help = "threads for short work that others wait for; 0 means 2",
     .min = 0,
     .max = 10'000},
    {.name = "ScheduledThreads",
     .kind = kInteger,
     .default_value = "0",
     .help = "threads for scheduled work; 0: it runs on the workers",
     .min = 0,
     .max = 10'000},
    {.name = "WorkerQueueLength",
     .kind = kSize,
     .default_value = "1m",
     .help = "tasks that may wait for a worker before new ones are refused",
     .min = 1},
    {.name = "OneByOneLanes",
     .kind = kInteger,
     .default_value = "1024",
     .help = "lanes of the one-by-one-by-key executor",
     .min = 1,
     .max = 1 << 20},
    // Checkpoints.
    {.name = "CheckpointPeriod",
     .kind = kDuration,
     .default_value = "60000",
     .help = "how often changes are saved, so how much a crash may lose; 0: only on demand",
     .min = 0},
    {.name = "CheckpointMode",
     .kind = kChoice,
     .default_value = "Table",
     .help = "there is one mode left",
     .choices = "Table"},
    {.name = "CheckpointFlushMode",
     .kind = kChoice,
     .default_value = "MultiThreadMerge",
     .help = "every checkpoint is one atomic cut here",
     .used = false,
     .choices = "SingleThread MultiThread SingleThreadMerge MultiThreadMerge"},
    {.name = "CheckpointModeTableFlushSetCount",
     .kind = kInteger,
     .default_value = "50",
     .help = "groups merged into one flush",
     .used = false,
     .min = 1},
    {.name = "CheckpointTransactionPeriod",
     .kind = kInteger,
     .default_value = "300000",
     .help = "a COUNT in spite of its name: a checkpoint after so many transactions; <= 0 never",
     .used = false},
    {.name = "DirtyRecordsMax",
     .kind = kSize,
     .default_value = "2000000",
     .help = "transactions wait while more records than this are unsaved",
     .min = 1000},
    // Procedures.
    {.name = "ProcedureAttemptsMax",
     .kind = kInteger,
     .default_value = "256",
     .help = "runs of one procedure before it fails because of conflicts",
     .min = 1,
     .max = 1'000'000},
    {.name = "LongProcedureTime",
     .kind = kDuration,
     .default_value = "10s",
     .help = "the watchdog names what runs longer",
     .min = 1},
    {.name = "ProcessReturnErrorLogLevel",
     .kind = kChoice,
     .default_value = "INFO",
     .help = "log level for procedures that return an error",
     .used = false,
     .choices = "OFF FATAL ERROR WARN INFO DEBUG TRACE ALL"},
    {.name = "ProcedureLockWatcherMin",
     .kind = kInteger,
     .default_value = "50",
     .help = "warn about procedures that touch so many records",
     .used = false,
     .min = 0},
    {.name = "FastRedoWhenConflict",
     .kind = kBool,
     .default_value = "true",
     .help = "conflicts are found at commit here, and repeated at once",
     .used = false},
    {.name = "DeadLockBreakerPeriod",
     .kind = kDuration,
     .default_value = "60000",
     .help = "records are never locked in a way that can deadlock here",
     .used = false,
     .min = 0},
    {.name = "AllowReadWhenRecordNotAccessed",
     .kind = kBool,
     .default_value = "true",
     .help = "no version has used it",
     .used = false},
    // Log.
    {.name = "LogLevel",
     .kind = kChoice,
     .default_value = "",
     .help = "lines below are not written; absent: ZEZE_LOG_LEVEL, else info",
     .choices = "trace debug info warning error critical off"},
    {.name = "LogFile", .default_value = "", .help = "absent: standard error"},
    // Schema.
    {.name = "AllowSchemasReuseVariableIdWithSameType",
     .kind = kBool,
     .default_value = "true",
     .help = "a deleted variable id may come back with a compatible type"},
    {.name = "AutoResetTable",
     .kind = kBool,
     .default_value = "false",
     .help = "no version has used it",
     .used = false},
    // Cluster.
    {.name = "GlobalCacheManagerHostNameOrAddress",
     .default_value = "",
     .help = "empty: this server is alone; else hosts separated by ; each host:port or host_port",
     .used = false},
    {.name = "GlobalCacheManagerPort",
     .kind = kInteger,
     .default_value = "0",
     .help = "for hosts above without a port of their own",
     .used = false,
     .min = 0,
     .max = 65535},
    {.name = "EnableGlobalFastFail",
     .kind = kBool,
     .default_value = "false",
     .help = "after a failure to acquire a record fail at once for a while",
     .used = false},
    {.name = "ServiceManager",
     .kind = kChoice,
     .default_value = "",
     .help = "absent: the stand-alone one",
     .used = false,
     .choices = "raft disable"},
    {.name = "OnlineLogoutDelay",
     .kind = kDuration,
     .default_value = "60000",
     .help = "from a broken link to the logout",
     .used = false,
     .min = 0},
    {.name = "OfflineTimerLimit",
     .kind = kInteger,
     .default_value = "200",
     .help = "offline timers for each role or account",
     .used = false,
     .min = 0},
    {.name = "ProviderThreshold",
     .kind = kDuration,
     .default_value = "2000",
     .help = "delay in the worker pool that means busy",
     .used = false,
     .min = 0},
    {.name = "ProviderOverload",
     .kind = kDuration,
     .default_value = "4000",
     .help = "delay in the worker pool that means overload",
     .used = false,
     .min = 0},
    {.name = "DelayRemoveHourStart",
     .kind = kInteger,
     .default_value = "3",
     .help = "delayed removal: not before this hour",
     .used = false,
     .min = 0,
     .max = 24},
    {.name = "DelayRemoveHourEnd",
     .kind = kInteger,
     .default_value = "7",
     .help = "delayed removal: not after this hour",
     .used = false,
     .min = 0,
     .max = 24},
    {.name = "DelayRemoveDays",
     .kind = kInteger,
     .default_value = "7",
     .help = "delayed removal: days kept",
     .used = false,
     .min = 0},
    {.name = "History",
     .default_value = "",
     .help = "name of the id sequence of the change history; empty: no history",
     .used = false},
    // Of other implementations.
    {.name = "HotWorkingDir", .default_value = "", .help = "hot modules", .used = false},
    {.name = "HotDistributeDir",
     .default_value = "distributes",
     .help = "hot modules",
     .used = false},
    {.name = "Dbh2LocalCommit",
     .kind = kBool,
     .default_value = "true",
     .help = "commit coordinator inside the process",
     .used = false},
    {.name = "CompletionPortThreads",
     .kind = kInteger,
     .default_value = "0",
     .help = "no version has used it",
     .used = false},
    {.name = "ProcedureStatisticsReportPeriod",
     .kind = kDuration,
     .default_value = "60000",
     .help = "no version has used it",
     .used = false},
    {.name = "TableStatisticsReportPeriod",
     .kind = kDuration,
     .default_value = "60000",
     .help = "no version has used it",
     .used = false},
};

constexpr Setting kDatabaseSettings[] = {
    {.name = "Name", .default_value = "", .help = "empty: the default database"},
    {.name = "DatabaseType",
     .kind = kChoice,
     .default_value = "Memory",
     .help = "required; Memory and RocksDB can be opened by this version",
     .choices = "Memory MySql SqlServer PostgreSQL Tikv RocksDB DynamoDB Dbh2 Redis MongoDB"},
    {.name = "DatabaseUrl",
     .default_value = "",
     .help = "RocksDB: a directory, db if empty; others: their connection text"},
    {.name = "DatabaseName",
     .default_value = "zeze_mongodb",
     .help = "MongoDB only",
     .used = false},
    {.name = "distTxn",
     .kind = kBool,
     .default_value = "false",
     .help = "Tikv: transactional client",
     .used = false},
    {.name = "DisableOperates",
     .kind = kBool,
     .default_value = "false",
     .help = "for read-only copies",
     .used = false},
    {.name = "DriverClassName", .default_value = "", .help = "SQL", .used = false},
    {.name = "UserName", .default_value = "", .help = "SQL", .used = false},
    {.name = "Password",
     .kind = kSecret,
     .default_value = "",
     .help = "SQL; better in the environment than in the file",
     .used = false},
    {.name = "InitialSize",
     .kind = kInteger,
     .default_value = "4",
     .help = "SQL connections at the start",
     .used = false,
     .min = 0},
    {.name = "MinIdle",
     .kind = kInteger,
     .default_value = "4",
     .help = "SQL connections kept",
     .used = false,
     .min = 0},
    {.name = "MaxActive",
     .kind = kInteger,
     .default_value = "8",
     .help = "SQL connections at most",
     .used = false,
     .min = 1},
    {.name = "MaxWait",
     .kind = kDuration,
     .default_value = "-1",
     .help = "for a free SQL connection; negative: without end",
     .used = false},
    {.name = "MaxOpenPreparedStatements",
     .kind = kInteger,
     .default_value = "256",
     .help = "SQL",
     .used = false},
    {.name = "PhyMaxUseCount",
     .kind = kInteger,
     .default_value = "-1",
     .help = "SQL: uses of one connection",
     .used = false},
    {.name = "PhyTimeoutMillis",
     .kind = kDuration,
     .default_value = "-1",
     .help = "SQL: age of one connection",
     .used = false},
    {.name = "region", .default_value = "CN_NORTH_1", .help = "DynamoDB", .used = false},
};

constexpr Setting kTableSettings[] = {
    {.name = "Name",
     .default_value = "",
     .help = "storage, dotted or short name; empty: all others"},
    {.name = "Inherit",
     .kind = kBool,
     .default_value = "false",
     .help = "start from the TableConf without a name instead of from the defaults"},
    {.name = "Base", .default_value = "", .help = "start from the TableConf of this name"},
    {.name = "CacheCapacity",
     .kind = kSize,
     .default_value = "20000",
     .help = "records in memory, times CacheFactor; negative: no limit"},
    {.name = "CacheFactor",
     .kind = kNumber,
     .default_value = "5.0",
     .help = "multiplies CacheCapacity"},
    {.name = "CheckpointWhenCommit",
     .kind = kBool,
     .default_value = "false",
     .help = "a transaction that writes this table is saved before it is answered"},
    {.name = "DatabaseName", .default_value = "", .help = "name of a DatabaseConf"},
    {.name = "DatabaseOldName",
     .default_value = "",
     .help = "database to migrate from",
     .used = false},
    {.name = "DatabaseOldMode",
     .kind = kInteger,
     .default_value = "0",
     .help = "1: migrate on access",
     .used = false,
     .min = 0,
     .max = 1},
    {.name = "CacheInitialCapacity",
     .kind = kSize,
     .default_value = "0",
     .help = "the cache grows as needed here",
     .used = false,
     .min = 0},
    {.name = "CacheNewAccessHotThreshold",
     .kind = kSize,
     .default_value = "0",
     .help = "the cache has no generations here",
     .used = false},
    {.name = "CacheCleanPeriod",
     .kind = kDuration,
     .default_value = "10000",
     .help = "the cache is cleaned when it grows here",
     .used = false},
    {.name = "CacheCleanPeriodWhenExceedCapacity",
     .kind = kDuration,
     .default_value = "1000",
     .help = "the cache is cleaned when it grows here",
     .used = false},
    {.name = "CacheMaxLruInitialCapacity",
     .kind = kSize,
     .default_value = "100000",
     .help = "the cache has no generations here",
     .used = false},
};

constexpr Setting kServiceSettings[] = {
    {.name = "Name", .default_value = "", .help = "empty: services without their own"},
    {.name = "Inherit",
     .kind = kBool,
     .default_value = "false",
     .help = "start from the ServiceConf without a name instead of from the defaults"},
    {.name = "Base", .default_value = "", .help = "start from the ServiceConf of this name"},
    {.name = "NoDelay",
     .kind = kBool,
     .default_value = "",
     .help = "absent: the system's",
     .used = false},
    {.name = "SendBuffer",
     .kind = kSize,
     .default_value = "",
     .help = "bytes; absent: the system's",
     .used = false,
     .min = 0},
    {.name = "ReceiveBuffer",
     .kind = kSize,
     .default_value = "",
     .help = "bytes; absent: the system's",
     .used = false,
     .min = 0},
    {.name = "Backlog",
     .kind = kInteger,
     .default_value = "4096",
     .help = "connections that wait to be accepted",
     .used = false,
     .min = 1,
     .max = 65535},
    {.name = "InputBufferMaxProtocolSize",
     .kind = kSize,
     .default_value = "2m",
     .help = "a larger protocol closes its connection",
     .used = false,
     .min = 1},
    {.name = "OutputBufferMaxSize",
     .kind = kSize,
     .default_value = "2m",
     .help = "more pending output is dropped",
     .used = false,
     .min = 1},
    {.name = "maxConnections",
     .kind = kInteger,
     .default_value = "1024",
     .help = "further ones are refused",
     .used = false,
     .min = 0},
    {.name = "CloseWhenMissHandle",
     .kind = kBool,
     .default_value = "false",
     .help = "close instead of answering that there is no handler",
     .used = false},
    {.name = "TimeThrottle",
     .kind = kChoice,
     .default_value = "",
     .help = "absent: no limit for a connection; needs the three below",
     .used = false,
     .choices = "queue counter"},
    {.name = "TimeThrottleSeconds",
     .kind = kDuration,
     .default_value = "",
     .help = "window",
     .used = false,
     .min = 1,
     .unit = kSeconds},
    {.name = "TimeThrottleLimit",
     .kind = kInteger,
     .default_value = "",
     .help = "protocols per second",
     .used = false,
     .min = 1},
    {.name = "TimeThrottleBandwidth",
     .kind = kSize,
     .default_value = "",
     .help = "bytes per second",
     .used = false,
     .min = 1},
    {.name = "OverBandwidth",
     .kind = kSize,
     .default_value = "",
     .help = "gateway: output bytes per second that mean full",
     .used = false,
     .min = 1},
    {.name = "OverBandwidthFusingRate",
     .kind = kNumber,
     .default_value = "1.0",
     .help = "gateway: above it all input is discarded",
     .used = false},
    {.name = "OverBandwidthNormalRate",
     .kind = kNumber,
     .default_value = "0.7",
     .help = "gateway: below it none is",
     .used = false},
    {.name = "EncryptType",
     .kind = kInteger,
     .default_value = "0",
     .help = "0 none, 1 AES with DH and server address, 2 AES with DH, 3 AES with RSA",
     .used = false,
     .min = 0,
     .max = 3},
    {.name = "CompressS2c",
     .kind = kInteger,
     .default_value = "0",
     .help = "0 none, 1 MPPC, 2 Zstd",
     .used = false,
     .min = 0,
     .max = 2},
    {.name = "CompressC2s",
     .kind = kInteger,
     .default_value = "0",
     .help = "0 none, 1 MPPC, 2 Zstd",
     .used = false,
     .min = 0,
     .max = 2},
    {.name = "DhGroups", .default_value = "1,2,5", .help = "allowed ones", .used = false},
    {.name = "SecureIp",
     .default_value = "",
     .help = "address mixed into the AES key",
     .used = false},
    {.name = "RsaPubKey", .default_value = "", .help = "hex modulus, for clients", .used = false},
    {.name = "RsaPriKeyFile", .default_value = "", .help = "for servers", .used = false},
    {.name = "KeepCheckPeriod",
     .kind = kDuration,
     .default_value = "0",
     .help = "0: no keep-alive",
     .used = false,
     .min = 0,
     .unit = kSeconds},
    {.name = "KeepRecvTimeout",
     .kind = kDuration,
     .default_value = "0",
     .help = "close when nothing was received for so long; 0: never",
     .used = false,
     .min = 0,
     .unit = kSeconds},
    {.name = "KeepSendTimeout",
     .kind = kDuration,
     .default_value = "0",
     .help = "send a keep-alive after so long; 0: never",
     .used = false,
     .min = 0,
     .unit = kSeconds},
    {.name = "HaProxyKey",
     .default_value = "",
     .help = "present: expect a proxy header",
     .used = false},
};

constexpr Setting kAcceptorSettings[] = {
    {.name = "Ip",
     .default_value = "",
     .help = "empty: any; @internal, @external: chosen",
     .used = false},
    {.name = "Port",
     .kind = kInteger,
     .default_value = "0",
     .help = "0: any",
     .used = false,
     .min = 0,
     .max = 65535},
};

constexpr Setting kConnectorSettings[] = {
    {.name = "HostNameOrAddress", .default_value = "", .help = "host, or host:port", .used = false},
    {.name = "Port",
     .kind = kInteger,
     .default_value = "0",
     .help = "of the host",
     .used = false,
     .min = 0,
     .max = 65535},
    {.name = "Url",
     .default_value = "",
     .help = "websocket, instead of host and port",
     .used = false},
    {.name = "IsAutoReconnect",
     .kind = kBool,
     .default_value = "false",
     .help = "after a break",
     .used = false},
    {.name = "MaxReconnectDelay",
     .kind = kDuration,
     .default_value = "8",
     .help = "the delay doubles from 1 s to this",
     .used = false,
     .min = 1,
     .unit = kSeconds},
    {.name = "Class", .default_value = "", .help = "Java subclass", .used = false},
};

constexpr Setting kWebsocketSettings[] = {
    {.name = "Path",
     .default_value = "",
     .help = "on the HTTP server of the application",
     .used = false},
};

constexpr Setting kServiceManagerSettings[] = {
    {.name = "sessionName", .default_value = "", .help = "empty: project#ServerId", .used = false},
    {.name = "raftXml", .default_value = "", .help = "raft configuration", .used = false},
    {.name = "loginTimeout",
     .kind = kDuration,
     .default_value = "12000",
     .help = "",
     .used = false,
     .min = 0},
};

constexpr Setting kHostSettings[] = {
    {.name = "name", .default_value = "", .help = "host:port or host_port", .used = false},
};

constexpr Setting kPropertySettings[] = {
    {.name = "Key", .default_value = "", .help = "of a process property"},
    {.name = "Value", .default_value = "", .help = ""},
};

constexpr Setting kCustomizeSettings[] = {
    {.name = "Name", .default_value = "", .help = "who reads it"},
};

Error WrongValue(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> CheckRange(const Setting& setting, std::int64_t value, std::string_view text) {
  if (value < setting.min) {
    return WrongValue(fmt::format("{} is too small, at least {}", text, setting.min));
  }
  if (value > setting.max) {
    return WrongValue(fmt::format("{} is too large, at most {}", text, setting.max));
  }
  return {};
}

template <typename T>
Result<void> Outcome(const Result<T>& parsed) {
  if (parsed.ok()) return {};
  return parsed.error();
}

}  // namespace

std::string_view ElementName(ElementKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "zeze",        "DatabaseConf",       "TableConf",
      "ServiceConf", "Acceptor",           "Connector",
      "Websocket",   "ServiceManagerConf", "GlobalCacheManagersConf",
      "host",        "Property",           "CustomizeConf"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const Setting> SettingsOf(ElementKind kind) {
  switch (kind) {
    case ElementKind::kZeze:
      return kZezeSettings;
    case ElementKind::kDatabase:
      return kDatabaseSettings;
    case ElementKind::kTable:
      return kTableSettings;
    case ElementKind::kService:
      return kServiceSettings;
    case ElementKind::kAcceptor:
      return kAcceptorSettings;
    case ElementKind::kConnector:
      return kConnectorSettings;
    case ElementKind::kWebsocket:
      return kWebsocketSettings;
    case ElementKind::kServiceManager:
      return kServiceManagerSettings;
    case ElementKind::kGlobalCacheManagers:
      return {};
    case ElementKind::kHost:
      return kHostSettings;
    case ElementKind::kProperty:
      return kPropertySettings;
    case ElementKind::kCustomize:
      return kCustomizeSettings;
  }
  return {};
}

const Setting* FindSetting(ElementKind kind, std::string_view name) {
  const std::span<const Setting> settings = SettingsOf(kind);
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [name](const Setting& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

Result<void> CheckSetting(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case kText:
    case kSecret:
      return {};
    case kBool:
      return Outcome(ParseBool(text));
    case kInteger:
      return Outcome(ParseInteger(text, setting.min, setting.max));
    case kNumber: {
      const Result<double> number = ParseNumber(text);
      if (!number.ok()) return number.error();
      if (number.value() < 0) return WrongValue(fmt::format("{} is negative", text));
      return {};
    }
    case kSize: {
      const Result<std::int64_t> size = ParseSize(text);
      if (!size.ok()) return size.error();
      return CheckRange(setting, size.value(), text);
    }
    case kDuration: {
      const Result<std::chrono::nanoseconds> duration = ParseDuration(text, setting.unit);
      if (!duration.ok()) return duration.error();
      if (setting.min != INT64_MIN && duration.value() < setting.min * setting.unit) {
        return WrongValue(fmt::format("{} is too short, at least {}", text,
                                      FormatDuration(setting.min * setting.unit)));
      }
      return {};
    }
    case kChoice: {
      const std::vector<std::string_view> choices = Split(setting.choices, ' ');
      if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
      return WrongValue(fmt::format("\"{}\" is not one of {}", text, fmt::join(choices, ", ")));
    }
  }
  return {};
}

}  // namespace zeze
