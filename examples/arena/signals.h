// How a program of the arena is told to end.

#pragma once

#include <chrono>

namespace arena_example {

// Before any thread: all of them leave SIGTERM and SIGINT to the functions below.
void BlockSignals();

// Returns when one of them has come.
void WaitForTheEnd();

// True if one of them comes within the patience.
bool EndSignalWithin(std::chrono::nanoseconds patience);

}  // namespace arena_example
