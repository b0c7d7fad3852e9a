// TestHost: a host of its own for a program of a test (a network namespace), and the cables that
// lead to it. Packets on a cable can be lost in one direction or in both; nobody is told.
//
//   if (const std::string why = EnterTestNetwork(); !why.empty()) GTEST_SKIP() << why;
//   TestHost host;
//   Cable cable(host, "database");
//   ServerProcess server({.command = host.Inside({"/bin/server", cable.near_address()})});
//   cable.Drop(Cable::Direction::kBoth);

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeze/storage/testing/server_process.h"

namespace zeze::cluster {

// Moves this process into a network of its own, in which it may lay cables. To be called before
// anything listens or connects; again is harmless. Empty, or why it is not possible here.
std::string EnterTestNetwork();

// Its cables end before it does.
class TestHost {
 public:
  TestHost();
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;

  // The command that runs this one on the host.
  std::vector<std::string> Inside(const std::vector<std::string>& command) const;

 private:
  friend class Cable;

  ServerProcess holder_;  // Keeps the namespace.
};

// Not thread-safe.
class Cable {
 public:
  // As the host sees it: what it sends, what it receives.
  enum class Direction : std::uint8_t { kBoth, kOut, kIn };

  // The name is that of the host's device.
  Cable(TestHost& host, const std::string& name);
  Cable(const Cable&) = delete;
  Cable& operator=(const Cable&) = delete;
  ~Cable();

  // Where the host finds this process.
  const std::string& near_address() const { return near_address_; }

  void Drop(Direction direction);
  void Heal();

 private:
  Cable(TestHost& host, const std::string& name, int number);

  TestHost& host_;
  const std::string far_device_;
  const std::string near_device_;
  const std::string near_address_;
  const std::string far_address_;
};

}  // namespace zeze::cluster
