// Directory: Global's book. It owns who holds which right, who waits for one, and which holders
// have been asked for it; of connections and time it knows nothing.
//
//   Directory directory(output);
//   directory.Acquire(session, request, key, Right::kModify);   // Now or later: output.Granted().
//   directory.Reduced(session, serial, key, Right::kInvalid);   // The answer to output.Reduce().
//
// A state machine without I/O, threads or time. For each key at most one session holds Modify, and
// then nobody else holds Share. Requests for one key are served in the order in which they came.
// The book says at least what the sessions have: it is raised before a grant leaves, and lowered
// only when a session said that it has given the right back.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "zeze/base/function_ref.h"
#include "zeze/global/compact_key.h"
#include "zeze/transaction/coherence.h"

namespace zeze::global {

// A small number for each session, given by the owner and used again only after Drop.
using SessionId = std::uint16_t;
inline constexpr SessionId kNoSession = 0xffff;
inline constexpr std::size_t kSessionsMax = 4096;

enum class Refusal : std::uint8_t {
  kHolderUnreachable,  // It had no connection for too long. The book keeps its right.
  kHolderFailed,       // It answered with an error, or not in time. The book keeps its right.
  kHolderFresh,        // It uses the right just now (old peers; ours defer instead). Try again.
  kDeadlock,           // The one that asks is being asked about this key itself (rule 68).
};

// How many rights a session has.
struct RightCounts {
  std::size_t share = 0;
  std::size_t modify = 0;
};

struct HeldRight {
  std::string key;
  Right right = Right::kInvalid;
};

// What the directory wants to happen. Called while it works: do not call it back from here.
class DirectoryOutput {
 public:
  using Time = std::chrono::nanoseconds;

  virtual void Granted(SessionId session, std::uint64_t request, std::string_view key,
                       Right right) = 0;
  virtual void Refused(SessionId session, std::uint64_t request, std::string_view key, Right wanted,
                       Refusal refusal, SessionId holder) = 0;
  // Asks a holder to lower its right, for a request that waits since then. Answered by Reduced or
  // ReduceFailed with the same serial, or by Drop. Comes again, with the same serial, when the
  // holder is Unreachable: then the question is to be kept until the holder is back, or to fail.
  virtual void Reduce(SessionId holder, std::uint64_t serial, std::string_view key, Right to,
                      Time since) = 0;

 protected:
  ~DirectoryOutput() = default;
};

class Directory {
 public:
  explicit Directory(DirectoryOutput& output) : output_(output) {}

  // What a session can do about a key while its own request for that key waits.
  enum class WhileWaiting : std::uint8_t {
    kAnswers,  // Give its right back.
    kHangs,    // Nothing: it holds a lock. So it never waits for a key about which it is asked; its
               // request is refused with kDeadlock, on arrival or before it is asked (rule 68).
  };
  // One outstanding request of a session for a key. `now` is only handed on, to Reduce.
  void Acquire(SessionId session, std::uint64_t request, std::string_view key, Right wanted,
               WhileWaiting meanwhile = WhileWaiting::kAnswers,
               DirectoryOutput::Time now = DirectoryOutput::Time(0));

  // The session has given the right back. Returns what it held.
  Right Release(SessionId session, std::string_view key);

  // A holder's answer: the right it has now. Answers to an older question are ignored.
  void Reduced(SessionId holder, std::uint64_t serial, std::string_view key, Right now);
  void ReduceFailed(SessionId holder, std::uint64_t serial, std::string_view key, Refusal why);

  // The session's connection is gone: its requests are forgotten. Its rights stay in the book, and
  // the requests of others that need them wait in their places (rule 67).
  void Unreachable(SessionId session);

  // Takes all rights of the session out of the book: nobody of it can use them any more. Questions
  // to it are answered so.
  void Drop(SessionId session);

  // All rights that a session says it has. `known`: it reconnected, so it has at most what is in
  // the book, and what it does not name is given back (a grant that never arrived). Otherwise,
  // after Global's restart, they are taken into the book. Returns the sessions that cannot be true:
  // those whose rights contradict it, and then itself. Nothing of a contradiction is taken into the
  // book.
  std::vector<SessionId> Announce(SessionId session, std::span<const HeldRight> rights, bool known);

  // While paused nothing is granted; requests queue. (Recovery: not everybody has announced yet.)
  void Pause() { paused_ = true; }
  void Resume();

  Right Held(SessionId session, std::string_view key) const;
  std::size_t key_count() const { return entries_.size(); }
  RightCounts CountsOf(SessionId session) const {
    return session < counts_.size() ? counts_[session] : RightCounts{};
  }
  void ForEachHeld(SessionId session,
                   FunctionRef<void(std::string_view key, Right right)> visit) const;

 private:
  struct Request {
    SessionId session = kNoSession;  // None: it went away while it was being served.
    Right wanted = Right::kInvalid;
    bool hangs = false;  // See WhileWaiting.
    std::uint64_t number = 0;
    DirectoryOutput::Time since{0};
  };
  struct Question {
    SessionId holder = kNoSession;
    std::uint64_t serial = 0;
  };
  // Only while somebody waits.
  struct Waiting {
    std::deque<Request> requests;     // The first one is being served.
    std::vector<Question> questions;  // Asked for it and not answered yet.
    bool failed = false;              // A holder could not be reached, or said no.

    // What the holders are asked for. A reader leaves the writer a copy to read.
    Right asked_for() const {
      return requests.front().wanted == Right::kModify ? Right::kInvalid : Right::kShare;
    }
    // Requests of the session. The one being served stays in its place, without an owner, until its
    // answers are there.
    void Forget(SessionId session);
    Refusal refusal = Refusal::kHolderFailed;
    SessionId culprit = kNoSession;
  };
  struct Entry {
    SessionId modify = kNoSession;
    SessionId share = kNoSession;                     // The usual single reader,
    std::unique_ptr<std::vector<SessionId>> sharers;  // or several.
    std::unique_ptr<Waiting> waiting;

    bool empty() const {
      return modify == kNoSession && share == kNoSession && sharers == nullptr &&
             waiting == nullptr;
    }
    bool Shares(SessionId session) const;
    void AddShare(SessionId session);
    void RemoveShare(SessionId session);
    Right RightOf(SessionId session) const;
    void Set(SessionId session, Right right);
    template <typename Visit>
    void ForEachHolder(Visit visit) const;
  };
  struct Hash {
    using is_transparent = void;
    using is_avalanching = void;
    std::size_t operator()(std::string_view key) const;
    std::size_t operator()(const CompactKey& key) const { return (*this)(key.view()); }
  };
  using Entries = boost::unordered_flat_map<CompactKey, Entry, Hash, std::equal_to<>>;

  Entries::iterator FindOrAdd(std::string_view key);
  // Every change of a right goes through here, and is counted.
  void Set(Entry& entry, SessionId session, Right right);

  // Serves requests, in order, for as long as no answer is missing.
  void Advance(Entries::iterator at);
  // Asks whoever is in the way of the first request.
  void Ask(std::string_view key, Entry& entry);
  // Refuses the request of a session that waits for the key and could not answer meanwhile.
  void RefuseWhatHangs(SessionId session, std::string_view key, Waiting& waiting);
  void Answered(Entries::iterator at, std::size_t question, bool failed, Refusal why);
  // The position of the question, or none.
  static std::size_t FindQuestion(const Entry& entry, SessionId holder, std::uint64_t serial);
  static bool Satisfied(const Entry& entry, const Request& request);
  void EraseIfEmpty(Entries::iterator at);
  std::vector<std::string> KeysOf(FunctionRef<bool(const Entry&)> chosen) const;

  DirectoryOutput& output_;
  Entries entries_;
  std::vector<RightCounts> counts_;  // By session.
  std::uint64_t last_serial_ = 0;
  bool paused_ = false;
};

}  // namespace zeze::global
