// Promises: what the arena promises to its players, checked and told line by line:
//
//   kept    data  trades acknowledged and kept: 7068
//   BROKEN  time  no bot is away for more than 10 s: 14400 ms
//
// Promises of data hold on any machine. Promises of time hold on a machine that has time; whoever
// started the game knows how busy it was.

#pragma once

#include <string_view>

namespace arena_example {

class Promises {
 public:
  bool all_kept() const { return all_kept_; }

  void Data(bool kept, std::string_view what) { Tell(kept, "data", what); }
  void Time(bool kept, std::string_view what) { Tell(kept, "time", what); }

 private:
  void Tell(bool kept, std::string_view kind, std::string_view what);

  bool all_kept_ = true;
};

}  // namespace arena_example
