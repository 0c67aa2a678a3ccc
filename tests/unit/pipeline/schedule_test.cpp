#include "pipeline/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace bev {
namespace {

TEST(Schedule, OneRankRunsEachMicroBatchThrough) {
  for (const int64_t micros : {1, 2, 7}) {
    const Program program = one_f_one_b({.micros = micros}).front();
    EXPECT_NO_THROW(verify(program, {.micros = micros}, true));
    EXPECT_EQ(slots_of(program), 1);
    EXPECT_EQ(static_cast<int64_t>(program.size()), 3 * micros);
  }
}

// The verifier must be able to refuse: each of these mutants is a broken program.
TEST(Schedule, VerifyRefusesBrokenPrograms) {
  const PipelineShape shape{.micros = 3};
  const Program good = one_f_one_b(shape).front();
  std::vector<Program> mutants;
  Program dropped = good;  // a backward is forgotten
  dropped.erase(dropped.begin() + 2);
  mutants.push_back(dropped);
  Program swapped = good;  // backward before forward
  std::swap(swapped[1], swapped[2]);
  mutants.push_back(swapped);
  Program twice = good;  // a micro-batch computed twice
  twice.insert(twice.end(), good.begin(), good.begin() + 3);
  mutants.push_back(twice);
  Program other = good;  // another micro-batch in the slot
  other[1].micro = 2;
  mutants.push_back(other);
  Program reused = good;  // loaded over a micro-batch in flight
  std::swap(reused[2], reused[3]);
  mutants.push_back(reused);
  Program missing(good.begin(), good.begin() + 6);  // one never runs
  mutants.push_back(missing);
  for (const Program& mutant : mutants) EXPECT_THROW(verify(mutant, shape, true), Error);
}

}  // namespace
}  // namespace bev
