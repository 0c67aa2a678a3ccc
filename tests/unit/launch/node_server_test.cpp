#include "launch/node_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "launch/node_client.h"
#include "launch/supervisor.h"
#include "net/address.h"
#include "net/socket.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using test::expect_error;

constexpr const char* kSecret = "0123456789abcdef";

class NodeServerTest : public ::testing::Test {
 protected:
  NodeServerTest() {
    for (int tries = 0; server_ == nullptr; ++tries) {
      port_ = free_port();
      try {
        server_ = std::make_unique<NodeServer>(NodeServer::Options{
            .host = "127.0.0.1",
            .port = port_,
            .secret = kSecret,
            .own = hello(0),
            .note = [this](const std::string& text) { notes_ += text + "\n"; }});
      } catch (const Error&) {
        if (tries > 10) throw;
      }
    }
  }

  static NodeHello hello(int number) {
    return {.number = number, .processes = 2, .least = 1, .most = 3, .host = "b", .job = "name"};
  }

  // Serves in this thread while another one joins.
  std::unique_ptr<NodeClient> join(const NodeHello& as, const std::string& secret = kSecret) {
    auto client = std::make_unique<NodeClient>();
    std::atomic<bool> is_done = false;
    std::exception_ptr error;
    std::thread other([&] {
      try {
        client->join({.host = "127.0.0.1",
                      .port = port_,
                      .secret = secret,
                      .hello = as,
                      .limit = milliseconds(20000),
                      .note = [](const std::string&) {}},
                     signals_);
      } catch (...) {
        error = std::current_exception();
      }
      is_done = true;
    });
    while (!is_done) look(*client, false);
    other.join();
    if (error) std::rethrow_exception(error);
    return client;
  }

  void look(NodeClient& client, bool is_joined = true) {
    server_->look();
    if (is_joined) client.look();
    std::this_thread::sleep_for(milliseconds(1));
  }

  template <class F>
  bool eventually(NodeClient& client, F&& condition) {
    for (int i = 0; i < 10000; ++i) {
      if (condition()) return true;
      look(client);
    }
    return false;
  }

  SignalQueue signals_;
  std::string notes_;
  int port_ = 0;
  std::unique_ptr<NodeServer> server_;
};

TEST_F(NodeServerTest, MachineIsToldItsPlaceAndTellsItsEnd) {
  const auto client = join(hello(2));
  ASSERT_TRUE(eventually(*client, [&] { return server_->waiting().size() == 1; }));
  EXPECT_EQ(server_->waiting()[0].number, 2);
  EXPECT_EQ(server_->waiting()[0].processes, 2);
  server_->start({{2, {.node = 1, .nodes = 2, .first_rank = 2, .ranks = 4, .restart = 7}}});
  EXPECT_TRUE(server_->waiting().empty());
  std::optional<NodeAssignment> place;
  ASSERT_TRUE(eventually(*client, [&] { return (place = client->take_place()).has_value(); }));
  EXPECT_EQ(place->first_rank, 2);
  EXPECT_EQ(place->restart, 7);
  EXPECT_FALSE(server_->all_ended());
  client->report({.code = 3, .words = "rank 2: exit code 3"});
  ASSERT_TRUE(eventually(*client, [&] { return server_->all_ended(); }));
  EXPECT_EQ(server_->ends().at(2).code, 3);
  EXPECT_NE(server_->end_wanted(), "");
  EXPECT_EQ(server_->waiting().size(), 1U) << "ready for the next";
  server_->notify("text");
  server_->start({});
  EXPECT_EQ(server_->end_wanted(), "") << "of an earlier attempt";
}

TEST_F(NodeServerTest, MachineThatGoesFailsItsAttempt) {
  auto client = join(hello(1));
  const auto other = join(hello(2));
  ASSERT_TRUE(eventually(*client, [&] { return server_->waiting().size() == 2; }));
  server_->start({{1, {}}, {2, {}}});
  client.reset();
  ASSERT_TRUE(eventually(*other, [&] { return !server_->end_wanted().empty(); }));
  EXPECT_EQ(server_->ends().at(1).code, 5);
  EXPECT_NE(notes_.find("machine 1 (host b) is gone: "), std::string::npos) << notes_;
  ASSERT_TRUE(eventually(*other, [&] { return !other->end_wanted().empty(); }))
      << "the others are asked to end";
}

TEST_F(NodeServerTest, MachineThatWasStartedAgainTakesThePlace) {
  const auto old = join(hello(1));
  ASSERT_TRUE(eventually(*old, [&] { return server_->waiting().size() == 1; }));
  const auto fresh = join(hello(1));
  ASSERT_TRUE(eventually(*old, [&] { return old->over().has_value(); }));
  EXPECT_NE(old->over()->words.find("says that it is machine 1"), std::string::npos)
      << old->over()->words;
  EXPECT_EQ(server_->waiting().size(), 1U);
  EXPECT_FALSE(fresh->over());
}

TEST_F(NodeServerTest, MachinesOfOtherJobsAreNotTaken) {
  NodeHello strange = hello(1);
  strange.job = "another";
  NodeHello range = hello(1);
  range.most = 4;
  for (const auto& [as, words] : {std::pair{strange, "--rdzv-id"},
                                  {range, "--nnodes is 1:3"},
                                  {hello(0), "another --node-rank"}}) {
    const auto client = join(as);
    ASSERT_TRUE(eventually(*client, [&] { return client->over().has_value(); }));
    EXPECT_EQ(client->over()->code, 2);
    EXPECT_NE(client->over()->words.find(words), std::string::npos) << client->over()->words;
    EXPECT_TRUE(server_->waiting().empty());
  }
}

TEST_F(NodeServerTest, WhoDoesNotKnowTheSecretIsNotLetIn) {
  expect_error(ErrorKind::Comm, "cannot join the first machine",
               [&] { join(hello(1), "fedcba9876543210"); });
  for (int i = 0; i < 10000 && notes_.empty(); ++i) {
    server_->look();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(server_->waiting().empty());
  EXPECT_NE(notes_.find("refused a connection from 127.0.0.1"), std::string::npos) << notes_;
}

TEST_F(NodeServerTest, EndOfTheFirstIsTheEnd) {
  const auto client = join(hello(1));
  ASSERT_TRUE(eventually(*client, [&] { return server_->waiting().size() == 1; }));
  server_.reset();
  for (int i = 0; i < 10000 && !client->over(); ++i) {
    client->look();
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(client->over());
  EXPECT_EQ(client->over()->code, 5);
  EXPECT_NE(client->over()->words.find("is gone"), std::string::npos) << client->over()->words;
}

}  // namespace
}  // namespace bev
