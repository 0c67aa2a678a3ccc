#include "serve/http/http_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace bev {
namespace {

using State = HttpParser::State;

struct Outcome {
  State state = State::NeedsMore;
  int status = 0;
  std::string problem;
  HttpRequest request;
};

// Whole, then byte by byte: both must say the same.
Outcome parse(const std::string& bytes, const HttpSizes& sizes = {}) {
  const auto look = [&](size_t piece) {
    HttpParser parser(sizes);
    Outcome outcome;
    for (size_t at = 0; at < bytes.size() && outcome.state == State::NeedsMore; at += piece) {
      parser.add(std::string_view(bytes).substr(at, piece));
      outcome.state = parser.advance();
    }
    outcome.status = parser.status();
    outcome.problem = parser.problem();
    if (outcome.state == State::Ready) outcome.request = parser.take();
    return outcome;
  };
  const Outcome whole = look(std::max<size_t>(bytes.size(), 1)), small = look(1);
  EXPECT_EQ(whole.state, small.state) << bytes;
  EXPECT_EQ(whole.status, small.status) << bytes;
  EXPECT_EQ(whole.request.path, small.request.path);
  EXPECT_EQ(whole.request.body, small.request.body);
  return whole;
}

TEST(HttpParser, ReadsARequest) {
  const Outcome o = parse(
      "POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nX-Two:  b c \t\r\nContent-Length: 3\r\n\r\nabcGET");
  ASSERT_EQ(o.state, State::Ready);
  EXPECT_EQ(o.request.method, "POST");
  EXPECT_EQ(o.request.path, "/v1/x");
  EXPECT_EQ(o.request.body, "abc");
  ASSERT_NE(o.request.header("x-two"), nullptr);
  EXPECT_EQ(*o.request.header("x-two"), "b c");
  EXPECT_EQ(o.request.header("x-three"), nullptr);
  EXPECT_TRUE(o.request.keeps_alive);
  EXPECT_FALSE(o.request.is_old);
}

TEST(HttpParser, KnowsWhetherTheConnectionStays) {
  const auto keeps = [](const std::string& version, const std::string& line) {
    return parse("GET / " + version + "\r\nHost: a\r\n" + line + "\r\n").request.keeps_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: foo, close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "Connection: keep-alive\r\n"));
}

TEST(HttpParser, PutsChunksTogether) {
  const Outcome o = parse(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3;name=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
  ASSERT_EQ(o.state, State::Ready);
  EXPECT_EQ(o.request.body, "abc0123456789");
}

TEST(HttpParser, ReadsOneRequestAfterTheOther) {
  HttpParser parser({});
  parser.add(
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: "
      "2\r\n\r\nhiGET /c");
  ASSERT_EQ(parser.advance(), State::Ready);
  EXPECT_EQ(parser.take().path, "/a");
  ASSERT_EQ(parser.advance(), State::Ready);
  const HttpRequest second = parser.take();
  EXPECT_EQ(second.path, "/b");
  EXPECT_EQ(second.body, "hi");
  EXPECT_EQ(parser.advance(), State::NeedsMore);
  EXPECT_TRUE(parser.has_begun());
  parser.add(" HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_EQ(parser.advance(), State::Ready);
  EXPECT_EQ(parser.take().path, "/c");
  EXPECT_FALSE(parser.has_begun());
}

TEST(HttpParser, SaysOnceThatTheSenderWaits) {
  HttpParser parser({});
  parser.add("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(parser.advance(), State::NeedsMore);
  EXPECT_TRUE(parser.takes_expectation());
  EXPECT_FALSE(parser.takes_expectation());
  parser.add("ab");
  EXPECT_EQ(parser.advance(), State::Ready);
}

TEST(HttpParser, RefusesWhatIsNoRequest) {
  const std::vector<std::pair<std::string, int>> cases{
      {"GET /\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / FTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
      {std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 30), 400},
      {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n", 417},
  };
  for (const auto& [bytes, status] : cases) {
    const Outcome o = parse(bytes);
    EXPECT_EQ(o.state, State::Bad) << bytes;
    EXPECT_EQ(o.status, status) << bytes << o.problem;
  }
}

// What two programs in a row could read as different requests.
TEST(HttpParser, RefusesBodiesOfDoubtfulLength) {
  const std::vector<std::pair<std::string, int>> cases{
      {"Content-Length: 3\r\nContent-Length: 3\r\n", 400},
      {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Content-Length: -3\r\n", 400},
      {"Content-Length: +3\r\n", 400},
      {"Content-Length: 0x3\r\n", 400},
      {"Content-Length: 3, 3\r\n", 400},
      {"Content-Length:\r\n", 400},
      {"Content-Length: 99999999999999999999999\r\n", 413},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
  };
  for (const auto& [lines, status] : cases) {
    const Outcome o = parse("POST / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\nabc");
    EXPECT_EQ(o.state, State::Bad) << lines;
    EXPECT_EQ(o.status, status) << lines << o.problem;
  }
  EXPECT_EQ(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").status, 400);
}

TEST(HttpParser, RefusesWrongChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse(head + "x\r\n").status, 400);
  EXPECT_EQ(parse(head + "\r\n").status, 400);
  EXPECT_EQ(parse(head + "-1\r\n").status, 400);
  EXPECT_EQ(parse(head + "1\r\nabc").status, 400);
  EXPECT_EQ(parse(head + "1;" + std::string(300, 'x')).status, 400);
  EXPECT_EQ(parse(head + "fffffffffffffff\r\n").status, 413);
}

TEST(HttpParser, KeepsItsLimits) {
  const HttpSizes sizes{.header_bytes = 100, .body_bytes = 10};
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(parse(head + "X: " + std::string(200, 'x'), sizes).status, 431);
  EXPECT_EQ(parse(head + "X: " + std::string(200, 'x') + "\r\n\r\n", sizes).status, 431);
  EXPECT_EQ(parse(head + "Content-Length: 10\r\n\r\n0123456789", sizes).state, State::Ready);
  EXPECT_EQ(parse(head + "Content-Length: 11\r\n\r\n", sizes).status, 413);
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse(chunked + "5\r\n01234\r\n5\r\n01234\r\n0\r\n\r\n", sizes).state, State::Ready);
  EXPECT_EQ(parse(chunked + "5\r\n01234\r\n6\r\n", sizes).status, 413);
  EXPECT_EQ(parse(chunked + "0\r\nX: " + std::string(200, 'x'), sizes).status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 101; ++i) many += "a: b\r\n";
  EXPECT_EQ(parse(many + "\r\n").status, 431);
}

// A line as long as it may be, and one that is longer, in pieces or not.
TEST(HttpParser, LinesOfChunksHaveOneLimit) {
  const auto chunked = [](size_t line) {
    const std::string size = "1;" + std::string(line - 2, 'x');
    return "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + size +
           "\r\na\r\n0\r\n\r\n";
  };
  EXPECT_EQ(parse(chunked(256)).request.body, "a");
  EXPECT_EQ(parse(chunked(257)).status, 400);
}

// Chunks and lines behind them in the smallest pieces.
TEST(HttpParser, ManySmallPieces) {
  std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  for (int i = 0; i < 2000; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    body += letter;
    bytes += std::string("1\r\n") + letter + "\r\n";
  }
  bytes += "0\r\n";
  for (int i = 0; i < 50; ++i) bytes += "T: " + std::string(static_cast<size_t>(i), 't') + "\r\n";
  EXPECT_EQ(parse(bytes + "\r\n").request.body, body);
}

}  // namespace
}  // namespace bev
