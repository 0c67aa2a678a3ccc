#include "net/address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/format.h"
#include "net/socket.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

SteadyTime soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

TEST(Address, TextsOfBothVersions) {
  EXPECT_EQ(resolve("127.0.0.1", 80).at(0).text(), "127.0.0.1:80");
  EXPECT_EQ(resolve("::1", 80).at(0).text(), "[::1]:80");
  EXPECT_EQ(resolve("[::1]", 80).at(0).text(), "[::1]:80");
  EXPECT_EQ(host_and_port("node1", 29500), "node1:29500");
  EXPECT_FALSE(resolve("localhost", 1).empty());
}

TEST(Address, WhatIsNone) {
  expect_error(ErrorKind::Comm, "no-such-host.invalid",
               [] { (void)resolve("no-such-host.invalid", 1); });
  expect_error(ErrorKind::Comm, "empty", [] { (void)resolve("", 1); });
  expect_error(ErrorKind::Comm, "70000", [] { (void)resolve("127.0.0.1", 70000); });
}

TEST(Address, WhatReachesThisMachineAlone) {
  for (const std::string host : {"127.0.0.1", "127.8.9.10", "::1"})
    EXPECT_TRUE(resolve(host, 0).at(0).is_loopback()) << host;
  for (const std::string host : {"0.0.0.0", "128.0.0.1", "10.127.0.1", "::", "fe80::1"})
    EXPECT_FALSE(resolve(host, 0).at(0).is_loopback()) << host;
}

TEST(Listen, OnAllAddressesWhereThatIsAllowed) {
  expect_error(ErrorKind::Comm, "stands for all addresses", [] { (void)listen_on("0.0.0.0", 0); });
  const Socket listener = listen_on("0.0.0.0", 0, EveryAddress::Allowed);
  std::string why;
  const int port = address_here(listener.get()).port();
  EXPECT_TRUE(try_to_connect(resolve("127.0.0.2", port), soon(), why).is_open()) << why;
}

TEST(Listen, OnTheNamedAddressOnly) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const Address here = address_here(listener.get());
  EXPECT_EQ(here.host(), "127.0.0.1");
  EXPECT_GT(here.port(), 0);
  std::string why;
  EXPECT_TRUE(try_to_connect(resolve("127.0.0.1", here.port()), soon(), why).is_open()) << why;
  // Another address of the same machine: all of 127.0.0.0/8 leads here.
  EXPECT_FALSE(try_to_connect(resolve("127.0.0.2", here.port()), soon(), why).is_open());
  EXPECT_NE(why.find("refused"), std::string::npos) << why;
}

TEST(Listen, NeverOnAllAddresses) {
  expect_error(ErrorKind::Comm, "lo 127.0.0.1", [] { (void)listen_on("0.0.0.0", 0); });
  expect_error(ErrorKind::Comm, "all addresses", [] { (void)listen_on("::", 0); });
}

TEST(Listen, SaysWhoHasThePort) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const int port = address_here(listener.get()).port();
  const std::string message =
      expect_error(ErrorKind::Comm, "in use", [&] { (void)listen_on("127.0.0.1", port); });
  EXPECT_NE(message.find(format("(pid {})", ::getpid())), std::string::npos) << message;
  EXPECT_NE(port_owner(port).find(format("(pid {})", ::getpid())), std::string::npos);
}

TEST(Listen, SaysWhichAddressesThereAre) {
  // Of a block that documents use.
  expect_error(ErrorKind::Comm, "lo 127.0.0.1", [] { (void)listen_on("192.0.2.1", 0); });
}

TEST(Listen, Version6) {
  Socket listener;
  try {
    listener = listen_on("::1", 0);
  } catch (const Error& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  std::string why;
  const int port = address_here(listener.get()).port();
  EXPECT_TRUE(try_to_connect(resolve("::1", port), soon(), why).is_open()) << why;
}

TEST(Interfaces, LoopbackByNameAndAddress) {
  EXPECT_EQ(local_address("lo"), "127.0.0.1");
  EXPECT_EQ(local_address("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(interface_name("127.0.0.1"), "lo");
  EXPECT_EQ(interface_name("lo"), "lo");
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_NE(interfaces_text().find("lo 127.0.0.1"), std::string::npos) << interfaces_text();
}

TEST(Interfaces, WhatIsNotHere) {
  expect_error(ErrorKind::Comm, "lo 127.0.0.1", [] { (void)local_address("eth99"); });
  expect_error(ErrorKind::Comm, "lo 127.0.0.1", [] { (void)local_address("192.0.2.1"); });
}

}  // namespace
}  // namespace bev
