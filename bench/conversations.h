// What the load client says to an echo, to redis and to Global.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/load_client.h"
#include "bench/measure.h"

namespace zeze::bench {

// 32 bytes there and back.
class EchoConversation final : public Conversation {
 public:
  explicit EchoConversation(std::size_t depth) : depth_(depth) {}
  void Begin(std::size_t connection, std::string& out) override;
  void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override;

 private:
  const std::size_t depth_;
};

// SET of one of so many random keys to a value of 8 bytes.
class RedisConversation final : public Conversation {
 public:
  RedisConversation(std::size_t depth, std::int64_t keys) : depth_(depth), keys_(keys) {}
  void Begin(std::size_t connection, std::string& out) override;
  void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override;

 private:
  void Say(std::string& out);

  const std::size_t depth_;
  const std::int64_t keys_;
  FastRandom random_{1};
};

// Any commands of redis; `say` appends the next one.
class RedisCommands final : public Conversation {
 public:
  using Say = std::function<void(std::string& out)>;

  RedisCommands(std::size_t depth, Say say) : depth_(depth), say_(std::move(say)) {}
  void Begin(std::size_t connection, std::string& out) override;
  void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override;

 private:
  const std::size_t depth_;
  const Say say_;
};

// The way a server asks Global for Modify rights with keys of 12 bytes, each connection a server of
// its own. Everything it is asked to give back it gives back at once.
class GlobalConversation final : public Conversation {
 public:
  enum class Kind : std::uint8_t {
    kTurns,  // Acquire, release, the next key; no other connection asks for the same.
    kHold,   // Acquires one key after the other and keeps them all.
    kFight,  // All connections ask for the same keys.
  };
  struct Options {
    Kind kind = Kind::kTurns;
    std::size_t connections = 1;
    std::size_t depth = 1;
    std::int64_t keys = 0;   // Of all connections.
    double own_again = 0;    // kFight: the part of requests for a key that it was given before.
    std::int64_t epoch = 1;  // A greater one for each conversation with the same Global.
  };

  explicit GlobalConversation(const Options& options);
  void Begin(std::size_t connection, std::string& out) override;
  void Receive(std::size_t connection, std::string_view& bytes, std::string& out,
               std::uint64_t& done) override;

  // Rights that it was asked to give back.
  std::uint64_t reduced() const { return reduced_; }

 private:
  struct Slot {
    std::int64_t key = 0;
    bool held = false;
  };

  void Ask(std::size_t connection, std::size_t slot, std::string& out);
  std::int64_t NextKey(std::size_t connection, std::size_t slot);

  const Options options_;
  FastRandom random_{1};
  std::vector<std::vector<Slot>> slots_;  // Of each connection.
  std::vector<std::int64_t> next_;        // kTurns, kHold: the last key of each connection.
  std::string request_;                   // An Acquire whose session, key and right are filled in.
  std::size_t session_at_ = 0;
  std::size_t key_at_ = 0;
  std::size_t right_at_ = 0;
  std::uint64_t reduced_ = 0;
};

}  // namespace zeze::bench
