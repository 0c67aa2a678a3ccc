#include "launch/node_messages.h"

#include <gtest/gtest.h>

#include "coordination/coordination_messages.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

template <class T>
T there_and_back(const T& message) {
  return std::get<T>(decode_node_message(encode_node_message(message)));
}

TEST(NodeMessages, ArriveAsTheyWere) {
  const auto hello = there_and_back(
      NodeHello{.number = 3, .processes = 8, .least = 2, .most = 4, .host = "b", .job = "name"});
  EXPECT_EQ(hello.number, 3);
  EXPECT_EQ(hello.processes, 8);
  EXPECT_EQ(hello.least, 2);
  EXPECT_EQ(hello.most, 4);
  EXPECT_EQ(hello.host, "b");
  EXPECT_EQ(hello.job, "name");
  const auto end =
      there_and_back(NodeEnd{.code = 137, .by_people = true, .seconds = 1.5, .words = "w"});
  EXPECT_EQ(end.code, 137);
  EXPECT_TRUE(end.by_people);
  EXPECT_EQ(end.seconds, 1.5);
  EXPECT_EQ(end.words, "w");
  const auto place = there_and_back(
      NodeAssignment{.node = 1, .nodes = 2, .first_rank = 8, .ranks = 16, .restart = 3});
  EXPECT_EQ(place.node, 1);
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.first_rank, 8);
  EXPECT_EQ(place.ranks, 16);
  EXPECT_EQ(place.restart, 3);
  EXPECT_EQ(there_and_back(NodeNote{"n"}).text, "n");
  EXPECT_EQ(there_and_back(NodeStop{"s"}).why, "s");
  EXPECT_EQ(there_and_back(NodeJobEnd{.code = 5, .words = "o"}).words, "o");
  there_and_back(NodeHeartbeat{});
}

TEST(NodeMessages, LongTextsAreCut) {
  EXPECT_LE(there_and_back(NodeNote{std::string(100'000, 'x')}).text.size(), kTextMost);
}

TEST(NodeMessages, NonsenseIsRefused) {
  const std::string good = encode_node_message(NodeEnd{.code = 1, .words = "w"});
  for (size_t size = 0; size < good.size(); ++size)
    expect_error(ErrorKind::Comm, "", [&] { decode_node_message(good.substr(0, size)); });
  expect_error(ErrorKind::Comm, "after the end", [&] { decode_node_message(good + "x"); });
  std::string strange = good;
  strange[4] = 99;
  expect_error(ErrorKind::Comm, "kind 99", [&] { decode_node_message(strange); });
  expect_error(ErrorKind::Comm, "0 processes",
               [] { decode_node_message(encode_node_message(NodeHello{.processes = 0})); });
  expect_error(ErrorKind::Comm, "machine 2 of 2", [] {
    decode_node_message(encode_node_message(NodeAssignment{.node = 2, .nodes = 2}));
  });
  // A rank that takes the port of launchers for its own.
  expect_error(ErrorKind::Comm, "as a launcher",
               [] { decode_node_message(encode(HelloMessage{1, 2, "job", "host", 7})); });
}

}  // namespace
}  // namespace bev
