#include "bench/conversations.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "zeze/global/service/wire.h"
#include "zeze/net/frame.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"

namespace zeze::bench {

namespace {

namespace wire = global::wire;

constexpr std::size_t kEchoBytes = 32;
constexpr std::size_t kKeyBytes = 12;
constexpr std::size_t kFrameBytesMax = 1 << 20;
// Sessions are numbered from here, so that all of them take as many bytes.
constexpr std::int64_t kFirstSession = 1 << 14;
constexpr std::string_view kLastKey = "kkkkkkkkkkkk";

template <typename Rpc>
std::string Message(FrameFamily family, std::int64_t session, const auto& bean) {
  ByteWriter payload;
  bean.Encode(payload);
  ByteWriter out;
  EncodeFrame({.module_id = Rpc::kDescriptor.module_id,
               .protocol_id = Rpc::kDescriptor.protocol_id,
               .family = family,
               .session_id = session,
               .payload = payload.view()},
              out);
  return out.Release();
}

std::string SessionBytes(std::int64_t session) {
  ByteWriter out;
  out.WriteLong(session);
  return out.Release();
}

}  // namespace

// --- echo ---------------------------------------------------------------------------------------

void EchoConversation::Begin(std::size_t /*connection*/, std::string& out) {
  out.append(depth_ * kEchoBytes, 'e');
}

void EchoConversation::Receive(std::size_t /*connection*/, std::string_view& bytes,
                               std::string& out, std::uint64_t& done) {
  const std::size_t whole = bytes.size() / kEchoBytes;
  out.append(bytes.substr(0, whole * kEchoBytes));
  bytes.remove_prefix(whole * kEchoBytes);
  done += whole;
}

// --- redis --------------------------------------------------------------------------------------

void RedisConversation::Say(std::string& out) {
  char key[kKeyBytes + 1] = {};
  std::uint64_t number = static_cast<std::uint64_t>(random_.Below(keys_));
  for (std::size_t i = kKeyBytes; i-- > 0; number /= 10) {
    key[i] = static_cast<char>('0' + number % 10);
  }
  out += "*3\r\n$3\r\nSET\r\n$12\r\n";
  out.append(key, kKeyBytes);
  out += "\r\n$8\r\nabcdefgh\r\n";
}

void RedisConversation::Begin(std::size_t /*connection*/, std::string& out) {
  for (std::size_t i = 0; i < depth_; ++i) Say(out);
}

void RedisConversation::Receive(std::size_t /*connection*/, std::string_view& bytes,
                                std::string& out, std::uint64_t& done) {
  constexpr std::string_view kOk = "+OK\r\n";
  while (bytes.size() >= kOk.size()) {
    if (!bytes.starts_with(kOk)) throw std::runtime_error("redis said: " + std::string(bytes));
    bytes.remove_prefix(kOk.size());
    ++done;
    Say(out);
  }
}

namespace {

// The length of the answer at the front, 0 if it has not come whole.
std::size_t RedisAnswerBytes(std::string_view bytes) {
  std::size_t at = 0;
  for (std::int64_t left = 1; left > 0; --left) {
    const std::size_t end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    const char type = bytes[at];
    if (type == '-') throw std::runtime_error("redis said: " + std::string(bytes.substr(0, end)));
    std::int64_t number = 0;
    std::from_chars(bytes.data() + at + 1, bytes.data() + end, number);
    at = end + 2;
    if (type == '$' && number >= 0) at += static_cast<std::size_t>(number) + 2;
    if (type == '*') left += number;
    if (at > bytes.size()) return 0;
  }
  return at;
}

}  // namespace

void RedisCommands::Begin(std::size_t /*connection*/, std::string& out) {
  for (std::size_t i = 0; i < depth_; ++i) say_(out);
}

void RedisCommands::Receive(std::size_t /*connection*/, std::string_view& bytes, std::string& out,
                            std::uint64_t& done) {
  while (true) {
    const std::size_t length = RedisAnswerBytes(bytes);
    if (length == 0) return;
    bytes.remove_prefix(length);
    ++done;
    say_(out);
  }
}

// --- Global -------------------------------------------------------------------------------------

GlobalConversation::GlobalConversation(const Options& options)
    : options_(options),
      slots_(options.connections, std::vector<Slot>(options.depth)),
      next_(options.connections, 0),
      request_(Message<wire::Acquire>(FrameFamily::kRequest, kFirstSession,
                                      wire::KeyState{.key = kLastKey, .state = 2})) {
  session_at_ = request_.find(SessionBytes(kFirstSession), kFrameHeaderBytes);
  key_at_ = request_.find(kLastKey);
  right_at_ = key_at_ + kKeyBytes;
}

std::int64_t GlobalConversation::NextKey(std::size_t connection, std::size_t slot) {
  if (options_.kind == Kind::kFight) {
    const bool again = static_cast<double>(random_.Below(1 << 20)) < options_.own_again * (1 << 20);
    if (again) return slots_[connection][slot].key;
    // A server asks for a key once at a time: each slot has its own.
    const auto depth = static_cast<std::int64_t>(options_.depth);
    return random_.Below(options_.keys / depth) * depth + static_cast<std::int64_t>(slot);
  }
  const auto step = static_cast<std::int64_t>(options_.connections);
  const std::int64_t number =
      options_.kind == Kind::kHold ? next_[connection]++ : random_.Below(options_.keys / step);
  return number * step + static_cast<std::int64_t>(connection);
}

void GlobalConversation::Ask(std::size_t connection, std::size_t slot, std::string& out) {
  Slot& at = slots_[connection][slot];
  const bool release = options_.kind == Kind::kTurns && at.held;
  if (!release) at.key = NextKey(connection, slot);
  at.held = !release;
  const std::size_t begin = out.size();
  out += request_;
  ByteWriter session;
  session.WriteLong(kFirstSession + static_cast<std::int64_t>(slot));
  std::memcpy(out.data() + begin + session_at_, session.view().data(), session.view().size());
  std::memset(out.data() + begin + key_at_, 1, 4);  // The table.
  std::memcpy(out.data() + begin + key_at_ + 4, &at.key, sizeof at.key);
  out[begin + right_at_] = release ? '\0' : '\2';
}

void GlobalConversation::Begin(std::size_t connection, std::string& out) {
  out += Message<wire::FencedLogin>(
      FrameFamily::kRequest, 1,
      wire::FencedLoginArgument{.server_id = static_cast<std::int32_t>(connection + 1),
                                .epoch = options_.epoch,
                                .start_term = 1,
                                .rights = {}});
}

void GlobalConversation::Receive(std::size_t connection, std::string_view& bytes, std::string& out,
                                 std::uint64_t& done) {
  while (true) {
    Frame frame;
    if (!TakeUsualFrame(bytes, kFrameBytesMax, frame)) return;
    if (frame.family == FrameFamily::kRequest) {  // Reduce.
      ++reduced_;
      wire::KeyState asked;
      ByteReader in(frame.payload);
      asked.Decode(in);
      out += Message<wire::Reduce>(FrameFamily::kResponse, frame.session_id, asked);
      continue;
    }
    if (frame.result_code != 0) {
      throw std::runtime_error(fmt::format("Global answered {}", frame.result_code));
    }
    if (frame.protocol_id == wire::FencedLogin::kDescriptor.protocol_id) {
      wire::FencedLoginResult result;
      ByteReader in(frame.payload);
      result.Decode(in);
      if (result.outcome != 0) throw std::runtime_error("Global refuses the login");
      for (std::size_t i = 0; i < options_.depth; ++i) Ask(connection, i, out);
      continue;
    }
    const auto slot = static_cast<std::size_t>(frame.session_id - kFirstSession);
    ++done;
    Ask(connection, slot, out);
  }
}

}  // namespace zeze::bench
