// Killed at any moment of saving: what was reported as saved is there and whole, and the training
// that goes on from it ends as one that nobody disturbed.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <random>

#include "processes/saved_run.h"
#include "unit/data/sentence_files.h"

namespace bev::test {
namespace {

struct Story {
  Ranks ranks;
  std::string layout;
  unsigned seed;
  int moments;
  std::string order{};  // of samples of sentences; empty: a GPT with mock data
  std::string family = "bert";
};

// On a file of sentences, of which a run reads several epochs.
std::vector<std::string> sentence_flags(const std::string& family, const std::string& order) {
  static const TemporaryDirectory files;
  if (!std::filesystem::exists(files / "vocab.txt")) write_small_corpus(files.path());
  const std::map<std::string, std::vector<std::string>> of_family{
      // A model that Hugging Face's format holds.
      {"bert",
       {"--optimizer", "lamb", "--model.norm_placement", "post", "--model.activation", "gelu-erf"}},
      {"t5", {"--vocab-extra-ids", "4"}},
      {"biencoder", {"--micro-batch-size", "2"}}};
  return std::vector<std::string>{"--model.family",   family,
                                  "--data.mock",      "false",
                                  "--data-path",      (files / "a_sentence").string(),
                                  "--split",          "1",
                                  "--data.order",     order,
                                  "--tokenizer-type", "BertWordPieceLowerCase",
                                  "--vocab-file",     (files / "vocab.txt").string()} +
         of_family.at(family);
}

std::vector<std::string> flags_of(const Story& story) {
  std::vector<std::string> flags{"--checkpoint.keep", "2", "--eval-iters", "0"};
  const std::map<std::string, std::vector<std::string>> layouts{
      {"dp", {}},
      {"zero1", {"--use-distributed-optimizer"}},
      {"zero3", {"--parallel.zero", "3"}},
      {"pp2", {"--pipeline-model-parallel-size", "2"}},
      {"tp2_zero3", {"--tensor-model-parallel-size", "2", "--parallel.zero", "3"}}};
  flags = flags + layouts.at(story.layout);
  if (!story.order.empty()) flags = flags + sentence_flags(story.family, story.order);
  // Both ways of saving: while the training goes on, and while it waits.
  if (story.seed % 3 == 0)
    flags = flags + std::vector<std::string>{"--checkpoint.asynchronous", "false"};
  return flags;
}

std::string name_of_story(const testing::TestParamInfo<Story>& info) {
  const Story& story = info.param;
  return name_of(story.ranks) + "_" + story.layout + "_seed" + std::to_string(story.seed) +
         (story.order.empty() ? "" : "_" + story.family + "_" + story.order);
}

constexpr int64_t kSavedIterations = 24;
constexpr const char* kSaving = "saving checkpoint at iteration ";

class KilledSaving : public testing::TestWithParam<Story> {
 protected:
  double draw(double below) { return std::uniform_real_distribution<>(0, below)(random_); }

  // Waits for a moment between this one and some saves later. False: the run ended before.
  bool await_moment(Job& job) {
    const bool is_early = draw(4) < 1;
    // From the start on, or while it loads.
    const size_t saves = is_early ? 0 : 1 + static_cast<size_t>(draw(3));
    double first = 0;
    for (;;) {
      if (job.children().front().code) return false;
      const size_t seen = count(job.out(), kSaving);
      if (seen >= 1 && first == 0) first = seconds_now();
      if (seen > 1) period_ = (seconds_now() - first) / static_cast<double>(seen - 1);
      if (seen >= saves) break;
      pause(0.002);
    }
    pause(draw(is_early ? 0.4 : 1.2 * period_));
    return !job.children().front().code;
  }

  // All of them at once, or one rank.
  std::string kill(Job& job) {
    const bool all = GetParam().ranks == Ranks::Threads || draw(2) < 1;
    const int rank = draw(2) < 1 ? 0 : 1;
    const pid_t one = all ? -1 : job.process_of(rank);
    if (one > 0) {
      ::kill(one, SIGKILL);
      return "rank " + std::to_string(rank);
    }
    for (const pid_t process : job.running()) ::kill(process, SIGKILL);
    return "all";
  }

  std::mt19937 random_{GetParam().seed};
  double period_ = 0.05;  // from one save to the next, as seen last
};

TEST_P(KilledSaving, GoesOnFromTheNewestAsIfNothingHadBeen) {
  const Story& story = GetParam();
  if (const std::string why = why_not(story.ranks); !why.empty()) GTEST_SKIP() << why;
  const std::vector<std::string> flags = flags_of(story);
  const SavedRun& whole = undisturbed(story.ranks, kSavedIterations, flags);
  int moments = 0;
  int64_t lost = 0, most_lost = 0;
  std::printf("   killed      ms  iteration  newest  lost\n");
  while (moments < story.moments) {
    const SavedRun run(story.ranks, kSavedIterations, flags);
    for (bool has_ended = false; !has_ended;) {
      Job job(2);
      const int64_t before = run.newest_good();
      run.start(job, {"--save-interval", "1"});
      const double begun = seconds_now();
      if (moments < story.moments && await_moment(job)) {
        const double at = seconds_now() - begun;
        const std::string who = kill(job);
        ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
        has_ended = job.children().front().code == 0;
        if (has_ended) break;
        ++moments;
        const std::string out = job.out();
        const int64_t newest = run.newest_good();
        // Whoever reads the log relies on it.
        EXPECT_GE(newest, last_number(out, "successfully saved checkpoint at iteration ")) << out;
        EXPECT_GE(newest, before);
        const int64_t done = last_number("\n" + out, "\n iteration ");
        const int64_t gone = std::max<int64_t>(0, done - newest);
        lost += gone;
        most_lost = std::max(most_lost, gone);
        std::printf("%9s  %6.0f  %9lld  %6lld  %4lld\n", who.c_str(), 1000 * at,
                    static_cast<long long>(last_number(out, kSaving)),
                    static_cast<long long>(newest), static_cast<long long>(gone));
        continue;
      }
      ASSERT_TRUE(job.await_end(100).has_value()) << job.err();
      ASSERT_EQ(job.children().front().code, 0) << job.err();
      has_ended = true;
    }
    expect_same_end(run, whole);
    expect_no_leftovers(run.checkpoints());
    expect_no_leftovers(run.output());
    if (HasFailure()) return;
  }
  std::printf("moments %d, recoveries %d, steps lost %lld, at most %lld at once\n", moments,
              moments, static_cast<long long>(lost), static_cast<long long>(most_lost));
}

INSTANTIATE_TEST_SUITE_P(
    Of, KilledSaving,
    testing::Values(Story{Ranks::Threads, "tp2_zero3", 1, 10}, Story{Ranks::Launch, "zero1", 3, 10},
                    Story{Ranks::Threads, "tp2_zero3", 4, 4, "arithmetic"},
                    Story{Ranks::Launch, "zero1", 6, 4, "megatron"},
                    Story{Ranks::Threads, "pp2", 7, 4, "arithmetic", "t5"},
                    Story{Ranks::Launch, "zero1", 9, 4, "megatron", "biencoder"}),
    name_of_story);

std::vector<Story> many_stories() {
  std::vector<Story> all;
  const auto add = [&](Ranks ranks, const char* layout) {
    all.push_back({ranks, layout, 100 + static_cast<unsigned>(all.size()), 25});
  };
  for (const char* layout : {"dp", "zero1", "pp2", "tp2_zero3"}) add(Ranks::Threads, layout);
  for (const char* layout : {"dp", "zero1", "pp2", "zero3"}) add(Ranks::Launch, layout);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Slow, KilledSaving, testing::ValuesIn(many_stories()), name_of_story);

// Nothing was saved yet: it starts anew, and metrics.jsonl too.
TEST(KilledBeforeSaving, StartsAnew) {
  const std::vector<std::string> flags{"--eval-iters", "0"};
  const SavedRun run(Ranks::Threads, 6, flags);
  {
    Job job(1);
    run.start(job, {"--train-iters", "1000000"});
    ASSERT_TRUE(job.await_out(" iteration        3/"));
    ::kill(job.children().front().process, SIGKILL);
    ASSERT_TRUE(job.await_end(30).has_value());
  }
  ASSERT_GE(run.curve().size(), 3u);
  std::string err;
  EXPECT_EQ(run.run({}, &err), 0) << err;
  expect_same_end(run, undisturbed(Ranks::Threads, 6, flags));
}

TEST(KilledSavingLeavings, AreRemovedByTheNextRun) {
  const SavedRun run(Ranks::Threads, 2, {"--eval-iters", "0"});
  for (const char* half : {".iter_0000777.writing", ".iter_0000778.removing", ".release.writing",
                           "latest_checkpointed_iteration.txt.partial.1"})
    std::filesystem::create_directories(run.checkpoints() / half / "inside");
  for (const char* half : {".model.partial.1", "config.toml.partial.1", "metrics.jsonl.partial.1"})
    std::filesystem::create_directories(run.output() / half / "inside");
  // Of somebody else.
  std::filesystem::create_directories(run.checkpoints() / "notes.writing");
  std::string err;
  EXPECT_EQ(run.run({}, &err), 0) << err;
  expect_no_leftovers(run.checkpoints());
  expect_no_leftovers(run.output());
  EXPECT_TRUE(std::filesystem::exists(run.checkpoints() / "notes.writing"));
}

}  // namespace
}  // namespace bev::test
