// The arena: one program for its servers, its shop, its bots and the check at the end. play.py
// starts all of it.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bots.h"
#include "server.h"
#include "shop.h"
#include "verify.h"

namespace {

constexpr const char* kUsage = R"(Usage:
  arena server CONFIG BINDS
  arena bots --gateway PORT... --key FILE --count N --seconds N [--receipts FILE]
             [--progress SECONDS]
  arena recharge --server PORT... --store DIRECTORY --orders FILE --players N
  arena verify CONFIG PLAYERS [RECEIPTS [ORDERS]]
)";

int Usage() {
  fmt::print(stderr, "{}", kUsage);
  return 2;
}

int Bots(const std::vector<std::string>& arguments) {
  arena_example::BotOptions options;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const std::string& value = arguments[i + 1];
    if (name == "--gateway") {
      options.gateways.push_back(
          {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(std::stoi(value))});
    } else if (name == "--key") {
      options.token_key_file = value;
    } else if (name == "--count") {
      options.count = std::stoi(value);
    } else if (name == "--seconds") {
      options.duration = std::chrono::seconds(std::stoi(value));
    } else if (name == "--receipts") {
      options.receipts_file = value;
    } else if (name == "--progress") {
      options.progress = std::chrono::seconds(std::stoi(value));
    } else {
      return Usage();
    }
  }
  if (arguments.size() % 2 != 0 || options.gateways.empty()) return Usage();
  return arena_example::PlayBots(options);
}

int Recharge(const std::vector<std::string>& arguments) {
  arena_example::ShopOptions options;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const std::string& value = arguments[i + 1];
    if (name == "--server") {
      options.servers.push_back(
          {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(std::stoi(value))});
    } else if (name == "--store") {
      options.directory = value;
    } else if (name == "--orders") {
      options.orders_file = value;
    } else if (name == "--players") {
      options.players = std::stoi(value);
    } else {
      return Usage();
    }
  }
  if (arguments.size() % 2 != 0 || options.servers.empty() || options.directory.empty() ||
      options.orders_file.empty() || options.players < 1) {
    return Usage();
  }
  return arena_example::RunShop(options);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "server") return arena_example::Serve(words[1], words[2]);
  if (!words.empty() && words[0] == "bots") return Bots({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "recharge") return Recharge({words.begin() + 1, words.end()});
  if (words.size() >= 3 && words.size() <= 5 && words[0] == "verify") {
    return arena_example::Verify(words[1], {.players = std::stol(words[2]),
                                            .receipts = words.size() > 3 ? words[3] : std::string(),
                                            .orders = words.size() > 4 ? words[4] : std::string()});
  }
  return Usage();
}
