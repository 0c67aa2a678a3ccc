#include "launch/rank_consistency.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/format.h"

namespace bev {
namespace {

// What each rank of a job was told; empty where all agreed.
std::vector<std::string> told(const std::vector<std::string>& texts) {
  const auto size = static_cast<int>(texts.size());
  ListenPort listener("127.0.0.1", 0);
  const int port = listener.port();
  std::vector<std::string> messages(texts.size());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    CoordinationClient::Options options;
    options.rank = rank;
    options.size = size;
    options.host = "127.0.0.1";
    options.port = port;
    options.secret = "a secret of this test";
    options.own_host = format("host{}", rank);
    options.log = [](const std::string&) {};
    options.on_failure = [](const Failure&) {};
    if (rank == 0) options.listener.emplace(std::move(listener));
    ranks.emplace_back([&texts, &messages, rank, given = std::move(options)]() mutable {
      CoordinationClient control(std::move(given));
      try {
        require_same_on_ranks(control, "the configuration", texts[static_cast<size_t>(rank)]);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind, ErrorKind::Usage);
        messages[static_cast<size_t>(rank)] = error.what();
      }
      control.finish();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return messages;
}

TEST(Agreement, OfTheSameTextIsQuiet) {
  for (const std::string& message : told({"a\nb", "a\nb", "a\nb"})) EXPECT_EQ(message, "");
}

TEST(Agreement, ShowsTheLinesThatDiffer) {
  const std::vector<std::string> messages =
      told({"lr = 0.1\nseed = 1\n", "lr = 0.1\nseed = 1\n", "lr = 0.2\nseed = 1\n"});
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              "the configuration is not the same on all ranks: 1 of 3 differ from rank 0; rank 0 "
              "(-, host host0) and rank 2 (+, host host2):\n  - lr = 0.1\n  + lr = 0.2");
}

TEST(Agreement, LongDifferencesAreCut) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += format("{}\n", i);
  EXPECT_EQ(line_difference("", many, 2), "\n  + 0\n  + 1\n  + ... and 98 more lines");
}

}  // namespace
}  // namespace bev
