#include "bots.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "Zeze/Builtin/Game/Online.h"
#include "Zeze/Builtin/LinkdAuth.h"
#include "arena/Buff.h"
#include "arena/Mail.h"
#include "arena/Map.h"
#include "arena/Player.h"
#include "arena/World.h"
#include "mail.h"
#include "maps.h"
#include "players.h"
#include "promises.h"
#include "signals.h"
#include "zeze/admin/operator_key.h"
#include "zeze/arch/linkd/token_authenticator.h"
#include "zeze/base/clock.h"
#include "zeze/base/result.h"
#include "zeze/client/client.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/rpc.h"
#include "zeze/serialize/binary.h"

namespace arena_example {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Auth = Zeze::Builtin::LinkdAuth::Auth;
using Login = Zeze::Builtin::Game::Online::Login;

// What the gateways of play.py are called, and so what tokens are for.
constexpr const char* kLinkdName = "arena.Linkd";

constexpr milliseconds kAnswerPatience{2000};
constexpr std::chrono::seconds kAwayMax{10};
constexpr std::chrono::seconds kSoberPatience{25};
constexpr int kMailsShown = 20;
constexpr int kMailsAtATime = 3;  // To claim, and to delete.

struct Counts {
  std::atomic<std::int64_t> moves = 0;
  std::atomic<std::int64_t> fights = 0;
  std::atomic<std::int64_t> trades = 0;
  std::atomic<std::int64_t> maps = 0;
  std::atomic<std::int64_t> drinks = 0;
  std::atomic<std::int64_t> claims = 0;
  std::atomic<std::int64_t> deletes = 0;
  std::atomic<std::int64_t> endless = 0;   // Buffs that did not end.
  std::atomic<std::int64_t> refused = 0;   // By the rules of the game.
  std::atomic<std::int64_t> repeated = 0;  // Requests that were not answered at first.
  std::atomic<std::int64_t> logins = 0;
  std::atomic<std::int64_t> impossible = 0;  // What cannot be, and was seen.
};

// When the game is over: at its time, or when somebody ends it.
class Match {
 public:
  explicit Match(nanoseconds end) : end_(end) {}

  nanoseconds end() const { return end_.load(); }
  bool over() const { return zeze::SystemClock().Now() >= end(); }
  void EndNow() { end_ = zeze::SystemClock().Now(); }

 private:
  std::atomic<nanoseconds> end_;
};

class Receipts {
 public:
  explicit Receipts(const std::string& file) {
    if (!file.empty()) out_.open(file);
  }
  void Add(std::int64_t role, std::int64_t number) {
    const std::lock_guard lock(mutex_);
    if (out_.is_open()) out_ << role << ' ' << number << '\n';
  }

 private:
  std::mutex mutex_;
  std::ofstream out_;
};

class Bot {
 public:
  Bot(zeze::IoThreads& io, const BotOptions& options, const zeze::admin::OperatorKey& key,
      int number, const Match& match, Counts& counts, Receipts& receipts)
      : options_(options),
        match_(match),
        account_(fmt::format("bot-{}", number)),
        counts_(counts),
        receipts_(receipts),
        random_(static_cast<std::uint64_t>(number)),
        client_(io,
                {.gateways = options.gateways,
                 .authenticate = zeze::AuthenticateBy<Auth>([this, &key] {
                   const auto token =
                       zeze::arch::NewToken(account_, kLinkdName, std::chrono::seconds(60));
                   return Auth::Argument{.token = zeze::Binary(zeze::arch::SignToken(key, token))};
                 }),
                 .first_delay = milliseconds(200),
                 .delay_max = std::chrono::seconds(2)}) {
    client_.OnLost([this](const zeze::Error&) { inside_ = false; });
    client_.OnReportError([this](const auto&) { inside_ = false; });
    client_.On<arena::Map::SView>([](const auto&) {});
    client_.On<arena::Map::SStruck>([](const auto&) {});
    client_.On<arena::Mail::SNewMail>([](const auto&) {});
    client_.On<arena::Buff::SBuff>([](const auto&) {});
  }

  void Play() {
    if (!client_.Start().ok()) return;
    while (!match_.over()) {
      if (!inside_ && !GoInside()) {
        Away();
        zeze::SystemClock().SleepFor(milliseconds(200 + random_() % 200));
        continue;
      }
      switch (random_() % 10) {
        case 0:
          Trade();
          break;
        case 1:
        case 2:
          Fight();
          break;
        case 3:
          if (random_() % 4 == 0) inside_ = false;  // To another map.
          break;
        case 4:
          Drink();
          break;
        case 5:
          LookAtMails();
          break;
        default:
          Move();
      }
      zeze::SystemClock().SleepFor(milliseconds(500 + random_() % 1000));
    }
    if (drank_) AwaitSober(match_.end() + kSoberPatience);
    client_.Stop();
  }

  nanoseconds longest_away() const { return longest_away_.load(); }
  bool inside() const { return inside_; }
  bool came_in() const { return came_in_; }

 private:
  static nanoseconds Now() { return zeze::SystemClock().Now(); }

  // From the first thing that did not work until the next that does.
  void Away() {
    if (!away_since_) away_since_ = Now();
  }
  void Back() {
    if (away_since_ && came_in_) longest_away_ = std::max(longest_away(), Now() - *away_since_);
    away_since_.reset();
  }

  struct Answer {
    std::int64_t code = -1;     // -1: none in time; nobody knows.
    bool asked_before = false;  // An earlier request, without an answer, may have done it.
  };

  template <typename P>
  std::optional<zeze::RpcReply<P>> Call(const typename P::Argument& argument) {
    const auto reply = client_.CallAndWait<P>(argument, {.timeout = kAnswerPatience});
    if (!reply.ok() || reply.value().outcome != zeze::RpcOutcome::kAnswered) return std::nullopt;
    return reply.value();
  }

  bool GoInside() {
    if (!client_.AwaitReady(std::chrono::seconds(1)).ok()) return false;
    inside_ = true;  // Unless a callback knows better meanwhile.
    const auto entered = Call<arena::Player::Enter>({});
    if (!entered || !entered->ok()) return Outside();
    role_ = entered->result.role;
    if (entered->result.lastRequest > request_) {
      // Its requests were numbered by nobody else.
      if (came_in_) ++counts_.impossible;
      request_ = entered->result.lastRequest;
    }
    const auto login = Call<Login>({.RoleId = role_});
    if (!login || !login->ok()) return Outside();
    const auto map =
        Call<arena::World::EnterMap>({.map = static_cast<std::int32_t>(random_() % kMapCount) + 1});
    if (!map || !map->ok()) return Outside();
    ++counts_.logins;
    ++counts_.maps;
    Back();
    came_in_ = true;
    return true;
  }
  bool Outside() {
    inside_ = false;
    return false;
  }

  void Move() {
    const bool sent = client_
                          .Send<arena::Map::Move>({.sequence = ++sequence_,
                                                   .x = static_cast<int>(random_() % kMapSize),
                                                   .y = static_cast<int>(random_() % kMapSize)})
                          .ok();
    if (sent) ++counts_.moves;
  }

  void Fight() {
    if (Repeat<arena::Map::Attack>({.request = ++request_}).code == 0) ++counts_.fights;
  }

  void Trade() {
    const std::int64_t number = ++request_;
    const std::int64_t seller =
        RoleOf(fmt::format("bot-{}", random_() % static_cast<std::uint64_t>(options_.count)));
    if (seller == role_) return;
    const Answer answer =
        Repeat<arena::Player::Trade>({.request = number,
                                      .seller = seller,
                                      .good = static_cast<std::int32_t>(random_() % kGoodKinds) + 1,
                                      .price = static_cast<std::int64_t>(random_() % 10) + 1});
    if (answer.code != 0) return;
    ++counts_.trades;
    receipts_.Add(role_, number);
  }

  void Drink() {
    if (Repeat<arena::Buff::Drink>({.request = ++request_}).code != 0) return;
    ++counts_.drinks;
    drank_ = true;
  }

  // What was drunk wears off, without anybody's help.
  void AwaitSober(nanoseconds end) {
    while (Now() < end) {
      const auto reply = Call<arena::Buff::Look>({});
      if (reply && reply->ok() && reply->result.power == 0) return;
      zeze::SystemClock().SleepFor(milliseconds(200 + random_() % 300));
    }
    ++counts_.endless;
  }

  void LookAtMails() {
    const auto reply = Call<arena::Mail::List>({.count = kMailsShown});
    if (!reply || !reply->ok()) return;
    int to_claim = kMailsAtATime;
    int to_delete = kMailsAtATime;
    for (const auto& shown : reply->result.mails) {
      // What was claimed or deleted stays so.
      if (deleted_.contains(shown.id)) ++counts_.impossible;
      if (claimed_.contains(shown.id) && !shown.mail.claimed) ++counts_.impossible;
      if (!shown.mail.claimed && shown.mail.gold > 0) {
        if (to_claim-- > 0) ClaimMail(shown.id);
      } else if (!shown.mail.read) {
        Repeat<arena::Mail::Read>({.id = shown.id});
      } else if (to_delete-- > 0) {
        DeleteMail(shown.id);
      }
    }
  }

  // Nobody else claims or deletes its mails.
  void ClaimMail(std::int64_t id) {
    const Answer answer = Repeat<arena::Mail::Claim>({.id = id});
    if (answer.code != 0 && !DoneBefore(answer, arena::Mail::NothingToClaim)) return;
    ++counts_.claims;
    claimed_.insert(id);
  }
  void DeleteMail(std::int64_t id) {
    const Answer answer = Repeat<arena::Mail::Delete>({.id = id});
    if (answer.code != 0 && !DoneBefore(answer, arena::Mail::NoSuchMail)) return;
    ++counts_.deletes;
    deleted_.insert(id);
  }
  bool DoneBefore(const Answer& answer, std::int32_t code) {
    if (answer.code != Mails::ErrorCode(code)) return false;
    if (!answer.asked_before) ++counts_.impossible;
    return true;
  }

  // Until it is answered.
  template <typename P>
  Answer Repeat(const typename P::Argument& argument) {
    Answer answer;
    while (!match_.over()) {
      if (inside_ || GoInside()) {
        const auto reply = Call<P>(argument);
        if (!reply) inside_ = false;
        // Of a module: the rules say no. Others are of servers that come and go.
        if (reply && reply->result_code >= 0) {
          Back();
          answer.code = reply->result_code;
          if (answer.code != 0) ++counts_.refused;
          if (answer.code == Maps::ErrorCode(arena::Map::NotHere)) inside_ = false;
          return answer;
        }
        answer.asked_before = true;
      }
      Away();
      ++counts_.repeated;
      zeze::SystemClock().SleepFor(milliseconds(200 + random_() % 200));
    }
    return answer;
  }

  const BotOptions& options_;
  const Match& match_;
  const std::string account_;
  Counts& counts_;
  Receipts& receipts_;
  std::mt19937_64 random_;
  std::int64_t role_ = 0;
  std::int64_t request_ = 0;
  std::int64_t sequence_ = 0;
  std::set<std::int64_t> claimed_;  // Mails.
  std::set<std::int64_t> deleted_;
  bool drank_ = false;
  bool came_in_ = false;
  std::optional<nanoseconds> away_since_;
  std::atomic<nanoseconds> longest_away_ = nanoseconds(0);
  std::atomic<bool> inside_ = false;
  zeze::Client client_;
};

std::int64_t Milliseconds(nanoseconds time) {
  return std::chrono::duration_cast<milliseconds>(time).count();
}

using Bots = std::vector<std::unique_ptr<Bot>>;

nanoseconds LongestAway(const Bots& bots) {
  nanoseconds longest{0};
  for (const auto& bot : bots) longest = std::max(longest, bot->longest_away());
  return longest;
}

void TellProgress(const Bots& bots, const Counts& counts, nanoseconds played) {
  const auto inside =
      std::count_if(bots.begin(), bots.end(), [](const auto& bot) { return bot->inside(); });
  fmt::print(
      "{:>5} s  {} of {} bots inside, {} fights, {} trades, {} requests repeated, "
      "longest absence {} ms\n",
      std::chrono::duration_cast<std::chrono::seconds>(played).count(), inside, bots.size(),
      counts.fights.load(), counts.trades.load(), counts.repeated.load(),
      Milliseconds(LongestAway(bots)));
  std::fflush(stdout);
}

int TellTheEnd(const Bots& bots, const Counts& counts) {
  const auto absent =
      std::count_if(bots.begin(), bots.end(), [](const auto& bot) { return !bot->came_in(); });
  fmt::print("bots: {} moves, {} fights, {} trades, {} map changes, {} refused by the rules\n",
             counts.moves.load(), counts.fights.load(), counts.trades.load(), counts.maps.load(),
             counts.refused.load());
  fmt::print("bots: {} potions, {} mails claimed, {} deleted\n", counts.drinks.load(),
             counts.claims.load(), counts.deletes.load());
  fmt::print("bots: {} requests repeated, {} logins\n", counts.repeated.load(),
             counts.logins.load());
  Promises promises;
  promises.Data(counts.impossible == 0,
                fmt::format("no bot sees its own past change: {} did", counts.impossible.load()));
  promises.Time(absent == 0, fmt::format("every bot comes in: {} did not", absent));
  const nanoseconds longest = LongestAway(bots);
  promises.Time(longest <= kAwayMax, fmt::format("no bot is away for more than {} s: at most {} ms",
                                                 kAwayMax.count(), Milliseconds(longest)));
  promises.Time(counts.endless == 0,
                fmt::format("every potion wears off within {} s after the end: {} did not",
                            kSoberPatience.count(), counts.endless.load()));
  return promises.all_kept() ? 0 : 1;
}

}  // namespace

int PlayBots(const BotOptions& options) {
  BlockSignals();
  const auto key = zeze::admin::OperatorKey::Load(options.token_key_file);
  if (!key.ok()) {
    fmt::print(stderr, "arena: {}\n", key.error().message());
    return 2;
  }
  Counts counts;
  Receipts receipts(options.receipts_file);
  zeze::IoThreads io({.name = "bots"});
  const nanoseconds begin = zeze::SystemClock().Now();
  Match match(begin + options.duration);
  Bots bots;
  bots.reserve(static_cast<std::size_t>(options.count));
  for (int number = 0; number < options.count; ++number) {
    bots.push_back(
        std::make_unique<Bot>(io, options, key.value(), number, match, counts, receipts));
  }
  std::vector<std::thread> threads;
  threads.reserve(bots.size());
  for (const auto& bot : bots) threads.emplace_back([&bot] { bot->Play(); });
  while (!match.over()) {
    nanoseconds rest = match.end() - zeze::SystemClock().Now();
    if (options.progress.count() > 0) rest = std::min<nanoseconds>(rest, options.progress);
    if (EndSignalWithin(rest)) match.EndNow();
    if (options.progress.count() > 0 && !match.over()) {
      TellProgress(bots, counts, zeze::SystemClock().Now() - begin);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return TellTheEnd(bots, counts);
}

}  // namespace arena_example
