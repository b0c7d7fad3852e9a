// The operators' desk of a Global, over a connection.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "zeze/admin/admin_desk.h"
#include "zeze/admin/audit_log.h"
#include "zeze/admin/operator_key.h"
#include "zeze/base/result.h"
#include "zeze/base/testing/manual_clock.h"
#include "zeze/base/thread_pool.h"
#include "zeze/global/service/admin_wire.h"
#include "zeze/global/service/global_service.h"
#include "zeze/global/service/wire.h"
#include "zeze/net/connection.h"
#include "zeze/net/connector.h"
#include "zeze/net/io_threads.h"
#include "zeze/net/service.h"
#include "zeze/serialize/byte_reader.h"
#include "zeze/serialize/byte_writer.h"
#include "zeze/storage/fence.h"
#include "zeze/storage/memory/memory_storage.h"
#include "zeze/storage/storage.h"

namespace zeze::global {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A Global whose time the test moves, an operator's connection, and a server that only logs in.
class AdminServiceTest : public ::testing::Test {
 protected:
  AdminServiceTest()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("zeze_admin_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        database_(NewMemoryDatabase()),
        storage_(OpenMemoryStorage(database_)),
        pool_({.name = "global", .thread_count = 2}),
        io_({.name = "global-io", .clock = &clock_}),
        client_io_({.name = "client-io"}),
        client_(client_io_, {.name = "Client"}) {
    std::filesystem::remove(path_);
    for (const char* name : {"alice", "bob", "carol"}) {
      keys_.emplace(name, admin::OperatorKey::Generate().value());
    }
    // A server may be asked for what it has, and never answers.
    client_.HandleRaw(wire::Reduce::kDescriptor, {});
  }
  ~AdminServiceTest() override {
    client_.Stop();
    if (service_ != nullptr) service_->Stop();
    std::filesystem::remove(path_);
  }

  void Start(bool with_operators = true) {
    log_ = admin::AuditLog::Open({.path = path_, .clock = &clock_}).value();
    GlobalServiceOptions options;
    options.acceptor = {.ip = "127.0.0.1", .port = 0};
    options.holder = "g1";
    // The manual clock stands still: nobody is silent.
    if (with_operators) {
      for (const auto& [name, key] : keys_) {
        options.operators.operators.push_back({.name = name, .public_key = key.public_key()});
      }
      options.operators.approvals = 2;
      options.operators.delay = std::chrono::minutes(10);
      options.machine.silence_max = std::chrono::hours(10);
      options.login_timeout = std::chrono::hours(10);
      options.audit_log = log_.get();
    }
    service_ = std::make_unique<GlobalService>(io_, *storage_->fence(), pool_, std::move(options));
    ASSERT_TRUE(service_->Start().ok());
    while (!service_->GetStatus().serving) std::this_thread::yield();
    operator_ = Connect();
  }
  ConnectionPtr Connect() {
    auto connector = client_.Connect({.host = "127.0.0.1", .port = service_->address().port()});
    return connector->WaitReady(std::chrono::seconds(10)).value();
  }

  // A process of server 7 that has started and logged in.
  ConnectionPtr StartServer() {
    servers_.push_back(OpenMemoryStorage(database_));
    const FenceStart started =
        servers_.back()->fence()->Start({.server_id = 7, .holder = "host-b pid 4711"}).value();
    ConnectionPtr connection = Connect();
    const auto reply = connection->CallAndWait<wire::FencedLogin>(
        {.server_id = 7, .epoch = started.epoch, .start_term = 1, .last = true, .rights = {}});
    EXPECT_TRUE(reply.ok() && reply.value().result.outcome == 0);
    return connection;
  }

  RpcReply<wire::AdminPreview> Preview() {
    return operator_->CallAndWait<wire::AdminPreview>({.server_id = 7}).value();
  }
  RpcReply<wire::AdminPropose> Propose(admin::AdminRequest& request, const std::string& name) {
    request.proposer = name;
    request.reason = "dead";
    return operator_
        ->CallAndWait<wire::AdminPropose>({.id = request.id,
                                           .name = name,
                                           .reason = "dead",
                                           .signature = keys_.at(name).Sign(ApprovalText(request))})
        .value();
  }
  RpcReply<wire::AdminApprove> Approve(const admin::AdminRequest& request,
                                       const std::string& name) {
    return operator_
        ->CallAndWait<wire::AdminApprove>({.id = request.id,
                                           .name = name,
                                           .signature = keys_.at(name).Sign(ApprovalText(request))})
        .value();
  }
  RpcReply<wire::AdminCancel> Cancel(const admin::AdminRequest& request, const std::string& name) {
    return operator_
        ->CallAndWait<wire::AdminCancel>(
            {.id = request.id,
             .name = name,
             .signature = keys_.at(name).Sign(CancellationText(request))})
        .value();
  }
  wire::AdminListResult::Item Listed(const std::string& id) {
    const auto reply = operator_->CallAndWait<wire::AdminList>({}).value();
    for (const auto& item : reply.result.items) {
      if (item.request.id == id) return item;
    }
    ADD_FAILURE() << "not listed";
    return {};
  }
  void AwaitState(const std::string& id, admin::RequestState state) {
    while (Listed(id).state != state && !HasFailure()) std::this_thread::yield();
  }

  const std::string path_;
  zeze::testing::ManualClock clock_;
  std::map<std::string, admin::OperatorKey> keys_;
  std::shared_ptr<MemoryDatabase> database_;
  std::unique_ptr<Storage> storage_;
  std::vector<std::unique_ptr<Storage>> servers_;
  std::unique_ptr<admin::AuditLog> log_;
  ThreadPool pool_;
  IoThreads io_;
  std::unique_ptr<GlobalService> service_;
  IoThreads client_io_;
  Service client_;
  ConnectionPtr operator_;
};

TEST_F(AdminServiceTest, RefusesEverythingWithoutOperators) {
  Start(false);
  const auto preview = Preview();
  EXPECT_EQ(wire::kAdminRefused, preview.result_code);
  EXPECT_THAT(preview.result.text, HasSubstr("--operators"));
  const auto cancel = operator_->CallAndWait<wire::AdminCancel>({.id = "x"}).value();
  EXPECT_THAT(cancel.result.text, HasSubstr("--operators"));
  EXPECT_EQ(wire::kAdminRefused, operator_->CallAndWait<wire::AdminList>({}).value().result_code);
}

TEST_F(AdminServiceTest, CleansUpAfterTwoApprovalsAndTheDelay) {
  Start();
  StartServer();
  auto preview = Preview();
  ASSERT_TRUE(preview.ok()) << preview.result.text;
  EXPECT_EQ("host-b pid 4711", preview.result.holder);
  EXPECT_EQ(1, preview.result.request.epoch);
  EXPECT_THAT(preview.result.peer, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(2U, preview.result.approvals);
  admin::AdminRequest request = preview.result.request;

  const auto proposed = Propose(request, "alice");
  ASSERT_TRUE(proposed.ok()) << proposed.result.text;
  EXPECT_THAT(proposed.result.text, HasSubstr("1 of 2 approvals; it expires in 15m"));
  EXPECT_THAT(Approve(request, "alice").result.text, HasSubstr("alice has approved"));
  const auto approved = Approve(request, "bob");
  ASSERT_TRUE(approved.ok()) << approved.result.text;
  EXPECT_THAT(approved.result.text, HasSubstr("by alice, bob and is carried out in 10m"));
  EXPECT_TRUE(storage_->fence()->Read(7).value().live);

  clock_.Advance(std::chrono::minutes(10));
  AwaitState(request.id, admin::RequestState::kDone);
  while (storage_->fence()->Read(7).value().live) std::this_thread::yield();
  while (log_->summary().lines < 4) std::this_thread::yield();
  EXPECT_EQ(4U, admin::VerifyAuditLog(path_).value().lines) << "propose, approve, run, done";
}

TEST_F(AdminServiceTest, ACancelledRequestDoesNothing) {
  Start();
  StartServer();
  admin::AdminRequest request = Preview().result.request;
  ASSERT_TRUE(Propose(request, "alice").ok());
  ASSERT_TRUE(Approve(request, "bob").ok());
  ASSERT_TRUE(Cancel(request, "carol").ok());
  clock_.Advance(std::chrono::hours(1));
  EXPECT_EQ(admin::RequestState::kCancelled, Listed(request.id).state);
  EXPECT_TRUE(Preview().ok()) << "a second preview: the loop has ticked meanwhile or will";
  EXPECT_TRUE(storage_->fence()->Read(7).value().live);
  EXPECT_EQ(3U, log_->summary().lines);
}

TEST_F(AdminServiceTest, ARequestForAProcessThatIsGoneIsVoid) {
  Start();
  StartServer();
  admin::AdminRequest request = Preview().result.request;
  ASSERT_TRUE(Propose(request, "alice").ok());
  StartServer();

  const auto approved = Approve(request, "bob");

  EXPECT_FALSE(approved.ok());
  EXPECT_THAT(approved.result.text, HasSubstr("the server has restarted or ended"));
  clock_.Advance(std::chrono::seconds(1));  // It looks by itself from time to time.
  AwaitState(request.id, admin::RequestState::kRefused);
  EXPECT_EQ(2, Preview().result.request.epoch);
  EXPECT_TRUE(storage_->fence()->Read(7).value().live);
}

TEST_F(AdminServiceTest, APreviewOfAnotherProcessIsVoid) {
  Start();
  StartServer();
  admin::AdminRequest request = Preview().result.request;
  StartServer();
  EXPECT_THAT(Propose(request, "alice").result.text, HasSubstr("not the one of the preview"));
}

TEST_F(AdminServiceTest, ADraftBelongsToItsConnection) {
  Start();
  StartServer();
  admin::AdminRequest request = Preview().result.request;
  operator_ = Connect();
  EXPECT_THAT(Propose(request, "alice").result.text, HasSubstr("preview first"));
}

TEST_F(AdminServiceTest, ASignatureOfAnotherKeyIsRefused) {
  Start();
  StartServer();
  admin::AdminRequest request = Preview().result.request;
  ASSERT_TRUE(Propose(request, "alice").ok());
  const auto approved = operator_
                            ->CallAndWait<wire::AdminApprove>(
                                {.id = request.id,
                                 .name = "bob",
                                 .signature = keys_.at("alice").Sign(ApprovalText(request))})
                            .value();
  EXPECT_THAT(approved.result.text, HasSubstr("the signature is not bob's"));
  EXPECT_EQ(1U, log_->summary().lines);
}

TEST_F(AdminServiceTest, NamesTheServersThatThereAre) {
  Start();
  StartServer();
  const auto preview = operator_->CallAndWait<wire::AdminPreview>({.server_id = 8}).value();
  EXPECT_THAT(preview.result.text,
              AllOf(HasSubstr("server 8 has no rights"), HasSubstr("servers here: 7")));
}

template <typename T>
T Copied(const T& value) {
  ByteWriter out;
  value.Encode(out);
  const std::string bytes(out.view());
  ByteReader in(bytes);
  T copy;
  copy.Decode(in);
  EXPECT_TRUE(in.ok());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut(std::string_view(bytes).substr(0, size));
    T broken;
    broken.Decode(cut);
    EXPECT_FALSE(cut.ok()) << size;
  }
  return copy;
}

TEST(AdminWire, ComesBackAsItWas) {
  const admin::AdminRequest request{.id = "i",
                                    .shard = 1,
                                    .term = 2,
                                    .server_id = 3,
                                    .epoch = 4,
                                    .session = 5,
                                    .proposer = "p",
                                    .reason = "r"};
  wire::AdminListResult list;
  list.approvals = 2;
  list.items.push_back({.request = request,
                        .state = admin::RequestState::kScheduled,
                        .approved_by = "a, b",
                        .remaining_ms = 7,
                        .outcome = "o"});
  EXPECT_EQ(request, Copied(list).items.at(0).request);
  EXPECT_EQ(admin::RequestState::kScheduled, Copied(list).items.at(0).state);
  wire::AdminPreviewResult preview;
  preview.request = request;
  preview.modify = 9;
  preview.delay_ms = 60000;
  EXPECT_EQ(request, Copied(preview).request);
  EXPECT_EQ(60000, Copied(preview).delay_ms);
  EXPECT_EQ("s", Copied(wire::AdminProposeArgument{"i", "n", "r", "s"}).signature);
  EXPECT_EQ("s", Copied(wire::AdminSignArgument{"i", "n", "s"}).signature);
}

}  // namespace
}  // namespace zeze::global
