// A rank that fails, wherever that is, ends the run soon: its own error comes out, and every other
// rank is told who failed and why. Under the address sanitizer this also shows that nobody reads
// memory of a rank that is gone.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/thread_communicator.h"
#include "support/faults.h"
#include "support/layout_name.h"
#include "support/tiny_models.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"

namespace bev::test {
namespace {

constexpr int64_t kFailureSteps = 2;
// Who still waits then would have waited for ever.
constexpr std::chrono::seconds kLimit{30};
constexpr double kSoon = 10;

struct Fault {
  int rank;
  int64_t calls = Fuse::kNever, samples = Fuse::kNever;  // that pass before it
};

Config divided(const std::string& layout) {
  Config c = tiny_gpt();
  c.parallel = parse_layout(layout);
  c.model.layers = std::max<int64_t>(2, c.parallel.pipeline * c.parallel.chunks);
  c.model.vocab = 12;
  c.model.positions = c.train.sequence = 4;
  c.train.micro_batch = 1;
  c.train.global_batch = 2 * c.parallel.ranks / c.parallel.tensor;
  c.device.threads = 1;
  return c;
}

// Trains with one fault. Returns how many of the other ranks were told of it; none when the program
// ended before it came to the fault.
int told_of(const Config& config, const Fault& fault) {
  const std::string expected = format("rank {} failed: {}", fault.rank, Fuse::kMessage);
  std::atomic<int> told = 0;
  bool has_failed = false;
  const double start = seconds_now();
  try {
    run_ranks(static_cast<int>(config.parallel.ranks), kLimit, [&](Communicator& world) {
      const bool fails = world.rank() == fault.rank;
      try {
        FaultyCommunicator faulty(world,
                                  std::make_shared<Fuse>(fails ? fault.calls : Fuse::kNever));
        const auto samples = std::make_shared<FaultySamples>(config.model.vocab,
                                                             fails ? fault.samples : Fuse::kNever);
        const std::unique_ptr<Device> device = rank_device(config);
        train_rank(config, *device, faulty, samples, kFailureSteps,
                   [](int64_t, const StepResult&, const TrainingState&) {});
        // So that no rank is done before it could be told.
        world.barrier(kLimit);
      } catch (const Error& error) {
        if (fails) throw;
        EXPECT_EQ(name_of(error.kind), name_of(ErrorKind::Comm));
        const bool names_the_culprit = std::string(error.what()).ends_with(expected);
        EXPECT_TRUE(names_the_culprit) << error.what();
        told += names_the_culprit ? 1 : 0;
        throw;
      }
    });
  } catch (const Error& error) {
    has_failed = true;
    EXPECT_STREQ(error.what(), Fuse::kMessage);
    EXPECT_EQ(name_of(error.kind), name_of(ErrorKind::Data));
  }
  EXPECT_LT(seconds_now() - start, kSoon);
  EXPECT_EQ(told, has_failed ? config.parallel.ranks - 1 : 0);
  return told;
}

class Failures : public ::testing::TestWithParam<const char*> {};

TEST_P(Failures, OfAnyCallOfAnyRankAreToldToAll) {
  const Config config = divided(GetParam());
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    int64_t calls = 0;
    while (!HasFailure() && told_of(config, {.rank = rank, .calls = calls}) > 0) ++calls;
    EXPECT_GT(calls, 3) << "of rank " << rank;
  }
}

TEST_P(Failures, OfAnySampleOfAnyRankAreToldToAll) {
  const Config config = divided(GetParam());
  for (int rank = 0; rank < config.parallel.ranks; ++rank) {
    int64_t samples = 0;
    while (!HasFailure() && told_of(config, {.rank = rank, .samples = samples}) > 0) ++samples;
    EXPECT_EQ(samples, kFailureSteps * resolve_batch(config).micros) << "of rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Failures,
                         ::testing::Values("tp2", "tp2.sp", "pp2", "pp2.zero-bubble", "pp2.chunks2",
                                           "dp2.zero1", "dp2.zero2", "dp2.zero3", "tp2.pp2"),
                         [](const auto& layout) { return layout_name(layout.param); });

}  // namespace
}  // namespace bev::test
