// UnfencedTrust: how far a server may believe a Global of Zeze 1.6.
//
//   trust.OnLogin(sent, timing);              // Whatever was granted before is void.
//   trust.OnAnswer(sent);                     // Each answer, with the time its request was sent.
//   if (now >= trust.usable_until()) ...      // Nothing may be read, committed or answered.
//
// Such a Global has no terms: after a restart it knows nothing and grants what others still hold.
// And it has no epochs: a server that it has not heard for long loses its rights without being
// fenced. So nothing is used while the Global is out of sight; what was done is saved before the
// server speaks to it again; and only a Global that remembers the login, soon enough, is believed
// to remember the rights too.
//
// Without I/O and threads; not thread-safe.

#pragma once

#include <chrono>

#include "zeze/global/service/wire.h"

namespace zeze::global {

class UnfencedTrust {
 public:
  using Time = std::chrono::nanoseconds;

  // Out of sight for longer than `silence_max`, rights are given up.
  explicit UnfencedTrust(Time silence_max) : silence_max_(silence_max) {}

  // Whether rights may be there at all.
  bool has_rights() const { return has_rights_; }
  bool in_sight() const { return in_sight_; }
  // Whether something done under the rights may be unsaved although the Global is out of sight.
  bool must_save() const { return has_rights_ && !in_sight_ && !saved_; }
  // Whether the rights are to be given up before the next login, which is then a new one.
  bool must_drop(Time now) const {
    return has_rights_ && !in_sight_ && saved_ && (refused_ || now >= heard_ + silence_max_);
  }
  Time usable_until() const { return in_sight_ ? heard_ + silence_max_ : Time::zero(); }
  // From here on the Global may have given the rights to others: saving would overwrite their work.
  Time save_until() const { return heard_ + silence_max_ + release_max_; }

  // A new session; `sent`: when the request was sent.
  void OnLogin(Time sent, const wire::LoginResult& timing) {
    release_max_ = std::chrono::milliseconds(timing.server_release_timeout);
    OnRelogin(sent);
  }
  // The Global remembers the session.
  void OnRelogin(Time sent) {
    heard_ = sent;
    has_rights_ = true;
    in_sight_ = true;
    saved_ = false;
    refused_ = false;
  }
  void OnReloginRefused() { refused_ = true; }
  void OnAnswer(Time sent) {
    if (in_sight_ && sent > heard_) heard_ = sent;
  }
  void OnLost() { in_sight_ = false; }
  void OnSaved() { saved_ = true; }
  void OnDropped() { has_rights_ = false; }

 private:
  const Time silence_max_;
  Time heard_{0};
  Time release_max_{0};
  bool has_rights_ = false;
  bool in_sight_ = false;
  bool saved_ = false;
  bool refused_ = false;
};

}  // namespace zeze::global
