#include "checkpoint/resume_check.h"

#include <gtest/gtest.h>

#include "support/same_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev::test {

RunOutcome expect_continues_bit_for_bit(const Config& config) {
  const TemporaryDirectory whole, halves;
  const RunOutcome undisturbed = run_checkpointed(first_part(config, whole.path(), 0));
  const int64_t iterations = undisturbed.summary.iterations;
  const int64_t half = iterations / 2;
  const RunOutcome before = run_checkpointed(first_part(config, halves.path(), half));
  EXPECT_EQ(before.summary.iterations, half);
  const RunOutcome after = run_checkpointed(second_part(config, halves.path()));
  EXPECT_EQ(after.summary.iterations, iterations);

  const CheckpointReader a(place_of(whole.path(), iterations));
  const CheckpointReader b(place_of(halves.path(), iterations));
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_EQ(a.manifest().update, b.manifest().update);
  EXPECT_EQ(a.manifest().consumed_samples, b.manifest().consumed_samples);
  EXPECT_EQ(a.manifest().data_position, b.manifest().data_position);
  EXPECT_EQ(after.iterations.size(), static_cast<size_t>(iterations - half));
  for (size_t i = 0; i < after.iterations.size(); ++i) {
    const Progress& x = undisturbed.iterations[static_cast<size_t>(half) + i];
    const Progress& y = after.iterations[i];
    EXPECT_EQ(x.iteration, y.iteration);
    EXPECT_EQ(x.samples, y.samples);
    EXPECT_EQ(x.batch, y.batch);
    EXPECT_EQ(x.result.lr, y.result.lr);
    EXPECT_EQ(x.result.loss_scale, y.result.loss_scale);
    EXPECT_EQ(x.result.applied, y.result.applied);
    // Else it may not be a number.
    if (x.result.applied) {
      EXPECT_EQ(x.result.loss, y.result.loss);
      EXPECT_EQ(x.result.grad_norm, y.result.grad_norm);
    }
  }
  return undisturbed;
}

}  // namespace bev::test
