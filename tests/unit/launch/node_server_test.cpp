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

class NodeMeeting : public ::testing::Test {
 protected:
  NodeMeeting() {
    for (int tries = 0; host_ == nullptr; ++tries) {
      port_ = free_port();
      try {
        host_ = std::make_unique<NodeServer>(NodeServer::Options{
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
    auto guest = std::make_unique<NodeClient>();
    std::atomic<bool> is_done = false;
    std::exception_ptr error;
    std::thread other([&] {
      try {
        guest->join({.host = "127.0.0.1",
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
    while (!is_done) look(*guest, false);
    other.join();
    if (error) std::rethrow_exception(error);
    return guest;
  }

  void look(NodeClient& guest, bool is_joined = true) {
    host_->look();
    if (is_joined) guest.look();
    std::this_thread::sleep_for(milliseconds(1));
  }

  template <class F>
  bool eventually(NodeClient& guest, F&& condition) {
    for (int i = 0; i < 10000; ++i) {
      if (condition()) return true;
      look(guest);
    }
    return false;
  }

  SignalQueue signals_;
  std::string notes_;
  int port_ = 0;
  std::unique_ptr<NodeServer> host_;
};

TEST_F(NodeMeeting, MachineIsToldItsPlaceAndTellsItsEnd) {
  const auto guest = join(hello(2));
  ASSERT_TRUE(eventually(*guest, [&] { return host_->waiting().size() == 1; }));
  EXPECT_EQ(host_->waiting()[0].number, 2);
  EXPECT_EQ(host_->waiting()[0].processes, 2);
  host_->start({{2, {.node = 1, .nodes = 2, .first_rank = 2, .ranks = 4, .restart = 7}}});
  EXPECT_TRUE(host_->waiting().empty());
  std::optional<NodeAssignment> place;
  ASSERT_TRUE(eventually(*guest, [&] { return (place = guest->take_place()).has_value(); }));
  EXPECT_EQ(place->first_rank, 2);
  EXPECT_EQ(place->restart, 7);
  EXPECT_FALSE(host_->all_ended());
  guest->report({.code = 3, .words = "rank 2: exit code 3"});
  ASSERT_TRUE(eventually(*guest, [&] { return host_->all_ended(); }));
  EXPECT_EQ(host_->ends().at(2).code, 3);
  EXPECT_NE(host_->end_wanted(), "");
  EXPECT_EQ(host_->waiting().size(), 1U) << "ready for the next";
  host_->tell("text");
  host_->start({});
  EXPECT_EQ(host_->end_wanted(), "") << "of an earlier attempt";
}

TEST_F(NodeMeeting, MachineThatGoesFailsItsAttempt) {
  auto guest = join(hello(1));
  const auto other = join(hello(2));
  ASSERT_TRUE(eventually(*guest, [&] { return host_->waiting().size() == 2; }));
  host_->start({{1, {}}, {2, {}}});
  guest.reset();
  ASSERT_TRUE(eventually(*other, [&] { return !host_->end_wanted().empty(); }));
  EXPECT_EQ(host_->ends().at(1).code, 5);
  EXPECT_NE(notes_.find("machine 1 (host b) is gone: "), std::string::npos) << notes_;
  ASSERT_TRUE(eventually(*other, [&] { return !other->end_wanted().empty(); }))
      << "the others are asked to end";
}

TEST_F(NodeMeeting, MachineThatWasStartedAgainTakesThePlace) {
  const auto old = join(hello(1));
  ASSERT_TRUE(eventually(*old, [&] { return host_->waiting().size() == 1; }));
  const auto fresh = join(hello(1));
  ASSERT_TRUE(eventually(*old, [&] { return old->over().has_value(); }));
  EXPECT_NE(old->over()->words.find("says that it is machine 1"), std::string::npos)
      << old->over()->words;
  EXPECT_EQ(host_->waiting().size(), 1U);
  EXPECT_FALSE(fresh->over());
}

TEST_F(NodeMeeting, MachinesOfOtherJobsAreNotTaken) {
  NodeHello strange = hello(1);
  strange.job = "another";
  NodeHello range = hello(1);
  range.most = 4;
  for (const auto& [as, words] : {std::pair{strange, "--rdzv-id"},
                                  {range, "--nnodes is 1:3"},
                                  {hello(0), "another --node-rank"}}) {
    const auto guest = join(as);
    ASSERT_TRUE(eventually(*guest, [&] { return guest->over().has_value(); }));
    EXPECT_EQ(guest->over()->code, 2);
    EXPECT_NE(guest->over()->words.find(words), std::string::npos) << guest->over()->words;
    EXPECT_TRUE(host_->waiting().empty());
  }
}

TEST_F(NodeMeeting, WhoDoesNotKnowTheSecretIsNotLetIn) {
  expect_error(ErrorKind::Comm, "cannot join the first machine",
               [&] { join(hello(1), "fedcba9876543210"); });
  for (int i = 0; i < 10000 && notes_.empty(); ++i) {
    host_->look();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(host_->waiting().empty());
  EXPECT_NE(notes_.find("refused a connection from 127.0.0.1"), std::string::npos) << notes_;
}

TEST_F(NodeMeeting, EndOfTheFirstIsTheEnd) {
  const auto guest = join(hello(1));
  ASSERT_TRUE(eventually(*guest, [&] { return host_->waiting().size() == 1; }));
  host_.reset();
  for (int i = 0; i < 10000 && !guest->over(); ++i) {
    guest->look();
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(guest->over());
  EXPECT_EQ(guest->over()->code, 5);
  EXPECT_NE(guest->over()->words.find("is gone"), std::string::npos) << guest->over()->words;
}

}  // namespace
}  // namespace bev
