// Buckets, addresses, the ramp after a start, the bandwidth fuse, and bindings.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zeze/arch/linkd/accept_ramp.h"
#include "zeze/arch/linkd/address_book.h"
#include "zeze/arch/linkd/bandwidth_fuse.h"
#include "zeze/arch/linkd/bindings.h"
#include "zeze/arch/linkd/outstanding_requests.h"
#include "zeze/arch/linkd/token_bucket.h"
#include "zeze/net/net_address.h"
#include "zeze/net/protocol.h"

namespace zeze::arch {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

NetAddress Address(const std::string& ip) {
  return NetAddress::FromText(ip, 1).value();
}

TEST(TokenBucket, GivesItsBurstAndThenItsRate) {
  const BucketRate rate(RateLimit{.per_second = 10, .burst = 5});
  TokenBucket bucket;
  nanoseconds now = seconds(100);
  int taken = 0;
  while (bucket.Take(rate, now)) ++taken;
  EXPECT_EQ(5, taken);
  for (int i = 0; i < 20; ++i) {
    now += milliseconds(50);
    taken += bucket.Take(rate, now) ? 1 : 0;
  }
  EXPECT_EQ(15, taken);
  EXPECT_FALSE(bucket.Take(rate, now, 3));
  EXPECT_TRUE(bucket.Take(rate, now + seconds(1), 3));
}

TEST(TokenBucket, WithoutALimitThereIsNone) {
  TokenBucket bucket;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.Take(BucketRate(RateLimit{}), seconds(1)));
}

TEST(AddressBook, LimitsConnectionsOfAnAddress) {
  AddressBook book({.connections_max = 2, .attempts = {}});
  const AddressBook::Admission first = book.Admit(Address("10.0.0.1"), seconds(1));
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.0.0.1"), seconds(1)).verdict);
  EXPECT_EQ(AddressVerdict::kTooManyConnections,
            book.Admit(Address("10.0.0.1"), seconds(1)).verdict);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.0.0.2"), seconds(1)).verdict);
  book.Leave(*first.entry);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.0.0.1"), seconds(1)).verdict);
}

TEST(AddressBook, ANetworkOfIpv6IsOneAddress) {
  AddressBook book({.connections_max = 1, .attempts = {}});
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("2001:db8::1"), seconds(1)).verdict);
  EXPECT_EQ(AddressVerdict::kTooManyConnections,
            book.Admit(Address("2001:db8::2"), seconds(1)).verdict);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("2001:db8:0:1::1"), seconds(1)).verdict);
}

TEST(AddressBook, LimitsAttempts) {
  AddressBook book({.connections_max = 0, .attempts = {.per_second = 4, .burst = 40}});
  int admitted = 0;
  for (int i = 0; i < 100; ++i) {
    const AddressBook::Admission one = book.Admit(Address("10.0.0.1"), seconds(1));
    if (one.verdict == AddressVerdict::kAdmitted) ++admitted;
  }
  EXPECT_EQ(40, admitted);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.0.0.1"), seconds(2)).verdict);
}

TEST(AddressBook, StrikesLeadToABanThatEnds) {
  AddressBook book({.strikes = {.per_second = 0.1, .burst = 3}, .ban = seconds(60)});
  const AddressBook::EntryPtr entry = book.Admit(Address("10.0.0.1"), seconds(1)).entry;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(book.Strike(*entry, seconds(1)));
  EXPECT_TRUE(book.Strike(*entry, seconds(1)));
  EXPECT_FALSE(book.Strike(*entry, seconds(1))) << "banned already";
  EXPECT_EQ(AddressVerdict::kBanned, book.Admit(Address("10.0.0.1"), seconds(60)).verdict);
  ASSERT_EQ(1U, book.Bans(seconds(31)).size());
  EXPECT_EQ("10.0.0.1", book.Bans(seconds(31))[0].address.IpText());
  EXPECT_EQ(seconds(30), book.Bans(seconds(31))[0].remaining);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.0.0.1"), seconds(61)).verdict);
  EXPECT_TRUE(book.Bans(seconds(61)).empty());
}

TEST(AddressBook, ExemptAddressesHaveNoLimits) {
  AddressBook book({.connections_max = 1, .exempt = {"10.0.0.1"}});
  for (int i = 0; i < 100; ++i) {
    const AddressBook::Admission one = book.Admit(Address("10.0.0.1"), seconds(1));
    ASSERT_EQ(AddressVerdict::kAdmitted, one.verdict);
    EXPECT_FALSE(book.Strike(*one.entry, seconds(1)));
  }
}

TEST(AddressBook, RemembersABoundedNumberOfAddresses) {
  AddressBook book({.addresses_max = 10});
  std::vector<AddressBook::EntryPtr> connected;
  for (int i = 0; i < 10; ++i) {
    connected.push_back(book.Admit(Address("10.0.0." + std::to_string(i)), seconds(1)).entry);
  }
  EXPECT_EQ(AddressVerdict::kTooManyAttempts, book.Admit(Address("10.1.0.1"), seconds(1)).verdict);
  for (const AddressBook::EntryPtr& entry : connected) book.Leave(*entry);
  EXPECT_EQ(AddressVerdict::kAdmitted, book.Admit(Address("10.1.0.1"), seconds(100)).verdict);
  EXPECT_EQ(1U, book.size());
}

TEST(AcceptRamp, LetsMoreInAsTimeGoesOn) {
  AcceptRamp ramp({.first = 100, .last = 1000, .duration = seconds(10)}, seconds(0));
  EXPECT_DOUBLE_EQ(100, ramp.RateAt(seconds(0)));
  EXPECT_DOUBLE_EQ(550, ramp.RateAt(seconds(5)));
  EXPECT_DOUBLE_EQ(1000, ramp.RateAt(seconds(20)));

  int admitted = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!ramp.Refuse(milliseconds(i / 10))) ++admitted;  // 10,000 in the first second.
  }
  EXPECT_NEAR(admitted, 145 + 10, 15);
}

// As nothing is let in at a rate of 0, a first client would be paid for only after days.
TEST(AcceptRamp, WithoutAFirstRateThereIsOnlyTheLast) {
  AcceptRamp ramp({.first = 0, .last = 1000, .duration = seconds(60)}, seconds(0));
  EXPECT_FALSE(ramp.Refuse(milliseconds(1)).has_value());
  EXPECT_FALSE(ramp.Refuse(milliseconds(10)).has_value());
  EXPECT_FALSE(ramp.Refuse(seconds(1)).has_value());
}

TEST(AcceptRamp, EveryoneWhoIsSentAwayGetsItsOwnMoment) {
  AcceptRamp ramp({.first = 100, .last = 100, .wait_max = seconds(20)}, seconds(0));
  std::vector<milliseconds> waits;
  for (int i = 0; i < 5000; ++i) {
    if (const std::optional<milliseconds> wait = ramp.Refuse(seconds(1))) waits.push_back(*wait);
  }
  ASSERT_GT(waits.size(), 4900U);
  // One in 10 ms: the first hundred are spread over a second.
  EXPECT_NEAR(static_cast<double>((waits[99] - waits[0]).count()), 990, 20);
  EXPECT_LE(waits.back(), seconds(20) + milliseconds(1));
}

TEST(BandwidthFuse, DiscardsByRatio) {
  BandwidthFuse fuse({.bytes_per_second = 1000});
  fuse.Tick(seconds(1));
  EXPECT_TRUE(fuse.Admit(1, CriticalLevel::kSheddable, 600));
  fuse.Tick(seconds(2));
  EXPECT_DOUBLE_EQ(0.6, fuse.ratio());
  EXPECT_TRUE(fuse.Admit(1, CriticalLevel::kSheddable, 800));
  fuse.Tick(seconds(3));
  EXPECT_FALSE(fuse.Admit(1, CriticalLevel::kSheddable, 10));
  EXPECT_TRUE(fuse.Admit(1, CriticalLevel::kNormal, 1200));
  fuse.Tick(seconds(4));
  EXPECT_FALSE(fuse.Admit(1, CriticalLevel::kCritical, 10)) << "the fuse is blown";
  fuse.Tick(seconds(5));
  EXPECT_TRUE(fuse.Admit(1, CriticalLevel::kCritical, 10));
}

TEST(BandwidthFuse, TheApplicationDecidesInBetween) {
  BandwidthFuse fuse(
      {.bytes_per_second = 1000, .decide = [](std::int64_t type, CriticalLevel, double ratio) {
         return type == 7 && ratio < 0.9;
       }});
  fuse.Tick(seconds(1));
  EXPECT_TRUE(fuse.Admit(1, CriticalLevel::kCritical, 800));
  fuse.Tick(seconds(2));
  EXPECT_FALSE(fuse.Admit(1, CriticalLevel::kCritical, 1));
  EXPECT_TRUE(fuse.Admit(7, CriticalLevel::kCritical, 1));
}

TEST(Bindings, KeepOneServerForEachModule) {
  const auto a = std::make_shared<ProviderLink>(1, nullptr);
  const auto b = std::make_shared<ProviderLink>(2, nullptr);
  Bindings bindings;
  for (const std::int32_t module : {3, 1, 2}) bindings.Bind(module, a);
  bindings.Bind(2, b);

  EXPECT_EQ(a.get(), bindings.Find(1));
  EXPECT_EQ(b.get(), bindings.Find(2));
  EXPECT_EQ(nullptr, bindings.Find(4));
  EXPECT_EQ(2U, bindings.links().size());

  EXPECT_FALSE(bindings.Unbind(2, *a)) << "it is not a's";
  EXPECT_TRUE(bindings.Unbind(2, *b));
  EXPECT_FALSE(bindings.Has(*b));
  EXPECT_EQ(1U, bindings.links().size());

  bindings.Bind(9, b);
  EXPECT_EQ((std::vector<std::int32_t>{1, 3}), bindings.UnbindAll(*a));
  EXPECT_EQ(b.get(), bindings.Find(9));
  EXPECT_EQ(1U, bindings.links().size());
}

TEST(OutstandingRequests, AreOfOneServerEachAndTheOldestIsForgotten) {
  OutstandingRequests requests;
  for (std::int64_t call = 1; call <= 4; ++call) {
    requests.Add({.type = 5, .call = call, .provider = call % 2}, 3);
  }

  EXPECT_EQ(3U, requests.size());
  EXPECT_FALSE(requests.Answered(5, 1)) << "forgotten";
  EXPECT_FALSE(requests.Answered(6, 2)) << "another protocol";
  EXPECT_TRUE(requests.Answered(5, 2));
  EXPECT_FALSE(requests.Answered(5, 2)) << "once";
  EXPECT_EQ((std::vector<OutstandingRequests::Request>{{.type = 5, .call = 4, .provider = 0}}),
            requests.TakeOf(0));
  EXPECT_EQ(1U, requests.size());
}

}  // namespace
}  // namespace zeze::arch
