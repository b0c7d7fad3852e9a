// AddressBook: what the clients of each address may do: connections, attempts, messages; and which
// addresses are banned for a while. Without I/O and clocks.
//
//   AddressBook book(limits);
//   AddressBook::Admission admission = book.Admit(peer, now);
//   if (admission.verdict != AddressVerdict::kAdmitted) ...
//   book.Leave(*admission.entry, now);

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/base/mutex.h"
#include "zeze/net/net_address.h"

namespace zeze::arch {

struct AddressLimits {
  // Of one address (of IPv6: of one network of 64 bits). 0: no limit.
  std::size_t connections_max = 64;
  RateLimit attempts = {.per_second = 4, .burst = 40};
  RateLimit messages = {.per_second = 5000, .burst = 10'000};

  // Bad behaviour that no honest client shows: a forged token, a flood, a frame that is too large.
  // More than `burst` at a time, or `per_second` all the time, and the address is banned.
  RateLimit strikes = {.per_second = 1, .burst = 30};
  std::chrono::nanoseconds ban = std::chrono::minutes(1);

  // Addresses without any of these limits: own proxies, load generators.
  std::set<std::string> exempt = {};

  // Addresses that are remembered. Beyond it those without connections are forgotten, and when
  // that does not help newcomers are refused.
  std::size_t addresses_max = 100'000;
};

enum class AddressVerdict : std::uint8_t {
  kAdmitted,
  kBanned,
  kTooManyConnections,
  kTooManyAttempts,
};

// Thread-safe.
class AddressBook {
 public:
  using Time = std::chrono::nanoseconds;

  struct Entry {
    std::string key;
    NetAddress address;
    bool exempt = false;
    TokenBucket messages;  // Any thread.

   private:
    friend class AddressBook;
    std::size_t connections_ = 0;
    TokenBucket attempts_;
    TokenBucket strikes_;
    Time banned_until_{0};
  };
  using EntryPtr = std::shared_ptr<Entry>;

  explicit AddressBook(AddressLimits limits);

  struct Admission {
    AddressVerdict verdict = AddressVerdict::kAdmitted;
    EntryPtr entry = nullptr;  // If admitted.
  };
  Admission Admit(const NetAddress& peer, Time now);
  void Leave(Entry& entry);

  // True if the address may send one more message.
  bool TakeMessage(Entry& entry, Time now) {
    return entry.exempt || entry.messages.Take(message_rate_, now);
  }
  bool limits_messages() const { return !message_rate_.unlimited(); }

  // Bad behaviour. True if the address is now banned, and was not before.
  bool Strike(Entry& entry, Time now);

  struct Ban {
    NetAddress address;
    Time remaining{0};
  };
  std::vector<Ban> Bans(Time now) const;

  // Forgets addresses about which there is nothing to remember.
  void Sweep(Time now);

  std::size_t size() const;

 private:
  void Forget(Time now) ZEZE_REQUIRES(mutex_);

  const AddressLimits limits_;
  const BucketRate attempt_rate_;
  const BucketRate message_rate_;
  const BucketRate strike_rate_;

  mutable Mutex mutex_;
  std::map<std::string, EntryPtr> entries_ ZEZE_GUARDED_BY(mutex_);
};

}  // namespace zeze::arch
