// How a program of the arena is told to end.

#pragma once

namespace arena_example {

// Before any thread: all of them leave SIGTERM and SIGINT to WaitForTheEnd.
void BlockSignals();

// Returns when one of them has come.
void WaitForTheEnd();

}  // namespace arena_example
