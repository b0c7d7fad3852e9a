// Server: the process that trades, and that the director kills. It tells the director what it does
// in lines on standard output:
//
//   ready roles gold goods receipts receipts_counted
//   has RECEIPT                       for every receipt found at the start
//   live commits conflicts accesses loads unsaved checkpoint_age_ms
//   ack RECEIPT                       the trade with this receipt was acknowledged
//   stopped roles gold goods receipts receipts_counted

#pragma once

#include <string>

namespace quickstart {

// Opens the database, trades until standard input is closed, stops in order. Returns an exit code.
int Serve(const std::string& config_file, const std::string& directory);

}  // namespace quickstart
