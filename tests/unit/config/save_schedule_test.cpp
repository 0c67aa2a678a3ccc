#include "config/save_schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

SaveSchedule phases(const std::string& text) {
  CheckpointConfig config;
  config.schedule = text;
  return SaveSchedule(config);
}

SaveSchedule every(int64_t interval) {
  CheckpointConfig config;
  config.interval = interval;
  return SaveSchedule(config);
}

std::vector<int64_t> due_until(const SaveSchedule& schedule, int64_t last) {
  std::vector<int64_t> due;
  for (int64_t i = 0; i <= last; ++i)
    if (schedule.is_due(i)) due.push_back(i);
  return due;
}

using Iterations = std::vector<int64_t>;

TEST(SaveSchedule, MultiplesOfAnInterval) {
  EXPECT_EQ(due_until(every(4), 13), (Iterations{4, 8, 12}));
  EXPECT_EQ(due_until(every(1), 3), (Iterations{1, 2, 3}));
  EXPECT_EQ(every(4).next_after(0), 4);
  EXPECT_EQ(every(4).next_after(3), 4);
  EXPECT_EQ(every(4).next_after(4), 8);
  EXPECT_FALSE(every(4).is_permanent(4));
}

TEST(SaveSchedule, NoneAtAll) {
  EXPECT_EQ(due_until(every(0), 100), Iterations{});
  EXPECT_EQ(every(0).next_after(0), std::nullopt);
}

TEST(SaveSchedule, ThreePhases) {
  const SaveSchedule schedule = phases("10:100,18:1000,1500");
  const Iterations due = due_until(schedule, 4000);
  ASSERT_EQ(due.size(), 10u + 50u + 2u);
  EXPECT_EQ(due[0], 10);
  EXPECT_EQ(due[9], 100);
  EXPECT_EQ(due[10], 118);
  EXPECT_EQ(due[59], 1000);
  EXPECT_EQ(due[60], 2500);
  EXPECT_EQ(due[61], 4000);
  EXPECT_TRUE(schedule.is_permanent(118));
  EXPECT_FALSE(schedule.is_permanent(120)) << "a checkpoint at the end of a run is not one of them";
}

TEST(SaveSchedule, APhaseNeedNotEndWithACheckpoint) {
  EXPECT_EQ(due_until(phases("4:10,5"), 21), (Iterations{4, 8, 15, 20}));
}

TEST(SaveSchedule, TheLastPhaseMayEnd) {
  EXPECT_EQ(due_until(phases("4:10"), 40), (Iterations{4, 8}));
  EXPECT_EQ(phases("4:10").next_after(8), std::nullopt);
  EXPECT_EQ(phases("4:8").next_after(7), 8);
  EXPECT_EQ(phases("4:8").next_after(8), std::nullopt);
}

TEST(SaveSchedule, OnePhaseWithoutAnEndIsAnInterval) {
  EXPECT_EQ(due_until(phases("7"), 100), due_until(every(7), 100));
}

TEST(SaveSchedule, FarIterations) {
  EXPECT_EQ(every(1).next_after(INT64_MAX), std::nullopt);
  EXPECT_EQ(every(1'000'000'000'000'000).next_after(INT64_MAX - 1), std::nullopt);
  EXPECT_EQ(phases("1:10,1e15").next_after(10), 1'000'000'000'000'010);
  EXPECT_TRUE(every(3).is_due(INT64_MAX - 1));  // 2^63 - 2 is a multiple
}

TEST(SaveSchedule, NumbersAndBlanksAsPeopleWriteThem) {
  const ParsedPhases parsed = parse_save_phases(" 1e1 : 1_00, 18:1000 ,1500 ");
  EXPECT_EQ(parsed.why, "");
  EXPECT_EQ(parsed.phases,
            (std::vector<SavePhase>{{10, 100}, {18, 1000}, {1500, SavePhase::kNoEnd}}));
}

TEST(SaveSchedule, RefusalsSayWhatAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"x", "phase 1, \"x\": \"x\" is not an interval"},
      {"10:100,0:200", "phase 2, \"0:200\": \"0\" is not an interval"},
      {"-5:10", "\"-5\" is not an interval"},
      {"1.5", "\"1.5\" is not an interval"},
      {"10:100,18,1500", "phase 2, \"18\": it does not say until when, and another phase follows"},
      {"10:", "phase 1, \"10:\": \"\" is not an iteration"},
      {"10:0", "\"0\" is not an iteration"},
      {":10", "phase 1, \":10\": \"\" is not an interval"},
      {"10:100:1000", "\"100:1000\" is not an iteration"},
      {"10:100,18:100", "phase 2, \"18:100\": until 100 is not above 100"},
      {"10:100,18:90", "until 90 is not above 100, where the phase begins"},
      {"10:100,18:110", "from 100 to 110 no interval of 18 fits"},
      {"10:100,", "phase 2, \"\": \"\" is not an interval"},
      {",10", "phase 1, \"\""},
      {"1e16", "\"1e16\" is not an interval of 1 to 1,000,000,000,000,000 iterations"},
      {"10:99999999999999999999", "is not an iteration"},
  };
  for (const auto& [text, why] : cases) {
    const std::string message = expect_error(ErrorKind::Usage, why, [&] { phases(text); });
    EXPECT_NE(message.find("such as 10:100,18:1000,1500"), std::string::npos) << message;
  }
}

// Whatever is accepted keeps what the phases promise; whatever is refused says why.
TEST(SaveSchedule, AnyTextIsPhasesOrRefused) {
  std::mt19937_64 random(11);
  constexpr std::string_view kAlphabet = "0123456789,,,:::: -_e.x";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = 1 + random() % 12; i > 0; --i) text += kAlphabet[random() % kAlphabet.size()];
    const ParsedPhases parsed = parse_save_phases(text);
    ASSERT_EQ(parsed.phases.empty(), !parsed.why.empty()) << text;
    if (parsed.phases.empty()) continue;
    ++accepted;
    int64_t begin = 0;
    for (const SavePhase& phase : parsed.phases) {
      ASSERT_GE(phase.interval, 1) << text;
      ASSERT_GT(phase.until, begin) << text;
      begin = phase.until;
    }
    const SaveSchedule schedule = phases(text);
    int64_t last = 0;
    for (int i = 0; i < 50; ++i) {
      const auto next = schedule.next_after(last);
      if (!next) break;
      ASSERT_GT(*next, last) << text;
      ASSERT_TRUE(schedule.is_due(*next)) << text;
      ASSERT_EQ(schedule.next_after(*next - 1), next) << text;
      if (*next > last + 1) {
        ASSERT_FALSE(schedule.is_due(
            last + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(*next - last - 1))))
            << text;
      }
      last = *next;
    }
    ASSERT_GT(last, 0) << text;
  }
  EXPECT_GT(accepted, 100);
}

TEST(SaveSchedule, PhasesReadBackAsTheyWere) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    std::vector<SavePhase> made;
    std::string text;
    int64_t begin = 0;
    for (size_t count = 1 + random() % 4, i = 0; i < count; ++i) {
      const auto interval = static_cast<int64_t>(1 + random() % 50);
      const bool open = i + 1 == count && random() % 2 == 0;
      begin += interval + static_cast<int64_t>(random() % 1000);
      made.push_back({interval, open ? SavePhase::kNoEnd : begin});
      text +=
          (i > 0 ? "," : "") + std::to_string(interval) + (open ? "" : ":" + std::to_string(begin));
    }
    EXPECT_EQ(parse_save_phases(text).phases, made) << text;
  }
}

}  // namespace
}  // namespace bev
