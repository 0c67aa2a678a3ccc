// Links without sockets: the test is the network and may change the bytes.
#include "net/secure_link.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

constexpr size_t kMost = size_t{8} << 20;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Everything that a link has to send.
std::string take(SecureLink& link) {
  std::string all;
  for (std::string_view out = link.outgoing(); !out.empty(); out = link.outgoing()) {
    all += out;
    link.written(out.size());
  }
  return all;
}

void carry(SecureLink& from, SecureLink& to) { to.receive(bytes_of(take(from))); }

void send(SecureLink& link, std::string text) {
  link.send(std::make_shared<const std::string>(std::move(text)));
}

struct Ends {
  explicit Ends(const std::string& client_secret = "one", const std::string& server_secret = "one")
      : client(LinkRole::Client, HmacKey(client_secret), kMost),
        server(LinkRole::Server, HmacKey(server_secret), kMost) {}
  void open() {
    carry(client, server);
    carry(server, client);
    carry(client, server);
  }
  SecureLink client, server;
};

TEST(SecureLink, OpensAndCarriesBothWays) {
  Ends ends;
  ends.open();
  ASSERT_TRUE(ends.client.is_open() && ends.server.is_open());
  send(ends.client, "a");
  send(ends.client, "");
  send(ends.client, std::string(3000000, 'b'));
  carry(ends.client, ends.server);
  EXPECT_EQ(ends.server.next(), "a");
  EXPECT_EQ(ends.server.next(), "");
  EXPECT_EQ(ends.server.next(), std::string(3000000, 'b'));
  EXPECT_EQ(ends.server.next(), std::nullopt);
  send(ends.server, "c");
  carry(ends.server, ends.client);
  EXPECT_EQ(ends.client.next(), "c");
}

TEST(SecureLink, BytesMayComeOneByOne) {
  Ends ends;
  const auto drip = [](SecureLink& from, SecureLink& to) {
    for (const char c : take(from)) to.receive(bytes_of(std::string_view(&c, 1)));
  };
  drip(ends.client, ends.server);
  drip(ends.server, ends.client);
  send(ends.client, "straight behind the proof");
  drip(ends.client, ends.server);
  EXPECT_EQ(ends.server.next(), "straight behind the proof");
}

TEST(SecureLink, AnotherSecretIsFoundByBothEnds) {
  Ends ends("one", "two");
  expect_error(ErrorKind::Comm, "another secret", [&] { carry(ends.client, ends.server); });
  expect_error(ErrorKind::Comm, "another secret", [&] { carry(ends.server, ends.client); });
  EXPECT_FALSE(ends.client.is_open() || ends.server.is_open());
}

TEST(SecureLink, AnotherVersionIsFoundByBothEnds) {
  SecureLink client(LinkRole::Client, HmacKey("one"), kMost, "bevctl99");
  SecureLink server(LinkRole::Server, HmacKey("one"), kMost);
  expect_error(ErrorKind::Comm, "another version", [&] { carry(client, server); });
  expect_error(ErrorKind::Comm, "another version", [&] { carry(server, client); });
  EXPECT_FALSE(client.is_open() || server.is_open());
}

// Fails when the server accepts any proof.
TEST(SecureLink, AClientWithoutTheSecretIsFound) {
  Ends ends;
  carry(ends.client, ends.server);
  carry(ends.server, ends.client);
  std::string proof = take(ends.client);
  proof.back() = static_cast<char>(proof.back() ^ 1);
  expect_error(ErrorKind::Comm, "no rank", [&] { ends.server.receive(bytes_of(proof)); });
  EXPECT_FALSE(ends.server.is_open());
}

// A peer without the secret sends the server's own proof back.
TEST(SecureLink, AProofCannotBeReflected) {
  Ends ends;
  carry(ends.client, ends.server);
  const std::string reply = take(ends.server);
  expect_error(ErrorKind::Comm, "no rank", [&] { ends.server.receive(bytes_of(reply)); });
  EXPECT_FALSE(ends.server.is_open());
}

TEST(SecureLink, AReplayedHandshakeIsRefused) {
  Ends first;
  const std::string opening = take(first.client);
  first.server.receive(bytes_of(opening));
  carry(first.server, first.client);
  const std::string proof = take(first.client);
  Ends second;
  second.server.receive(bytes_of(opening));
  expect_error(ErrorKind::Comm, "no rank", [&] { second.server.receive(bytes_of(proof)); });
  EXPECT_FALSE(second.server.is_open());
}

// The server does not collect a hello that announces a large size.
TEST(SecureLink, AHandshakeHasALimit) {
  Ends ends;
  std::string record("\x16\x03\x01\x20\x00", 5);
  std::string hello("\x01\x00\xf0\x00\x03\x03", 6);
  hello.resize(0x2000);
  ends.server.receive(bytes_of(record + hello));
  expect_error(ErrorKind::Comm, "no rank",
               [&] { ends.server.receive(bytes_of(record + std::string(0x2000, '\0'))); });
}

TEST(SecureLink, GarbageIsRefused) {
  for (const std::string& start :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\n\r\n"), std::string(40, '\0'),
        std::string(100, '\xff')}) {
    Ends ends;
    expect_error(ErrorKind::Comm, "no rank", [&] { ends.server.receive(bytes_of(start)); });
    EXPECT_TRUE(take(ends.server).empty());
    expect_error(ErrorKind::Comm, "no rank",
                 [&] { ends.client.receive(bytes_of(start + std::string(40, 'x'))); });
  }
}

// A change is detected at every byte of a record.
TEST(SecureLink, AChangedFrameIsFound) {
  Ends probe;
  probe.open();
  send(probe.client, "value");
  const size_t size = take(probe.client).size();
  for (size_t at = 0; at < size; ++at) {
    Ends ends;
    ends.open();
    send(ends.client, "value");
    std::string bytes = take(ends.client);
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    try {
      ends.server.receive(bytes_of(bytes));
      EXPECT_EQ(ends.server.next(), std::nullopt) << at;
      EXPECT_LT(at, 5U) << "only a changed length may ask for more";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Comm) << at;
    }
  }
}

TEST(SecureLink, FramesCannotBeRepeatedReorderedOrSentBack) {
  {
    Ends ends;
    ends.open();
    send(ends.client, "a");
    const std::string frame = take(ends.client);
    ends.server.receive(bytes_of(frame));
    EXPECT_EQ(ends.server.next(), "a");
    expect_error(ErrorKind::Comm, "wrong signature", [&] { ends.server.receive(bytes_of(frame)); });
  }
  {
    Ends ends;
    ends.open();
    send(ends.client, "a");
    (void)take(ends.client);
    send(ends.client, "b");
    expect_error(ErrorKind::Comm, "wrong signature", [&] { carry(ends.client, ends.server); });
  }
  {
    Ends ends;
    ends.open();
    send(ends.client, "a");
    expect_error(ErrorKind::Comm, "wrong signature", [&] { carry(ends.client, ends.client); });
  }
}

// The limit applies before the whole message has arrived.
TEST(SecureLink, SizesAreBounded) {
  Ends ends;
  ends.open();
  send(ends.client, std::string(kMost + 1, 'x'));
  ends.server.receive(bytes_of(take(ends.client).substr(0, 100000)));
  expect_error(ErrorKind::Comm, "a message of 8388609 bytes, more than 8388608",
               [&] { (void)ends.server.next(); });
}

}  // namespace
}  // namespace bev
