// Two hand-made trainings whose differences are known.
#include "verify/run_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace bev {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Three steps of a model with two tensors.
std::vector<StepOutcome> training() {
  const LogicalTensor first{"first", {3, 4}, {1, 0}}, second{"second", {1, 2, 2}, {0, 2, 0}};
  const StepOutcome step{2.0, 5.0, {first, second}};
  return {step, step, step};
}

LogicalTensor& tensor(std::vector<StepOutcome>& t, size_t step, size_t index) {
  return t[step].tensors[index];
}

TEST(Comparison, EqualTrainingsDoNotDiffer) {
  const Comparison same = compare_runs(training(), training());
  EXPECT_FALSE(same.first_beyond(0));
  EXPECT_EQ(same.largest().ratio, 0);
}

// Fails when the difference is not relative to the norm of the second training's tensor.
TEST(Comparison, IsRelative) {
  std::vector<StepOutcome> other = training();
  tensor(other, 0, 0).grad = {3, 4.5};
  tensor(other, 0, 1).value = {0, 2, 0.5};
  other[0].loss = 2.5;
  const Comparison::Step step = compare_runs(other, training()).steps[0];
  EXPECT_DOUBLE_EQ(step.tensors[0].grad, 0.1);
  EXPECT_EQ(step.tensors[0].value, 0);
  EXPECT_DOUBLE_EQ(step.tensors[1].value, 0.25);
  EXPECT_EQ(step.tensors[1].grad, 0);
  EXPECT_DOUBLE_EQ(compare_runs(other, training()).largest().ratio, 0.25);
}

// Fails when the rounding noise of updates that cancel counts as a difference, or hides one.
TEST(Comparison, ValuesAreRelativeToTheLargestSoFar) {
  std::vector<StepOutcome> first = training(), second = training();
  tensor(second, 1, 0).value = {0, 0};
  tensor(second, 2, 0).value = {2, 0};
  tensor(first, 1, 0).value = {1e-16, 0};
  tensor(first, 2, 0).value = {2.5, 0};
  const Comparison found = compare_runs(first, second);
  EXPECT_DOUBLE_EQ(found.steps[1].tensors[0].value, 1e-16);
  EXPECT_DOUBLE_EQ(found.steps[2].tensors[0].value, 0.25);
}

// Fails when the largest is named instead of the first, or values before gradients.
TEST(Comparison, TheFirstIsTheEarliestInTheOrderOfTheModel) {
  std::vector<StepOutcome> other = training();
  const auto first = [&] { return *compare_runs(other, training()).first_beyond(1e-6); };
  other[2].loss = 1000;
  EXPECT_EQ(first().quantity, Quantity::Loss);
  EXPECT_EQ(first().step, 3);
  other[1].norm = 5.5;
  EXPECT_EQ(first().quantity, Quantity::GradientNorm);
  EXPECT_EQ(first().step, 2);
  tensor(other, 1, 0).value[0] = 100;
  EXPECT_EQ(first().quantity, Quantity::Weight);
  tensor(other, 1, 1).grad[1] += 1e-3;
  EXPECT_EQ(first().quantity, Quantity::Gradient);
  EXPECT_EQ(first().name, "second");
  tensor(other, 1, 0).grad[1] += 1e-4;
  EXPECT_EQ(first().name, "first");
  tensor(other, 0, 1).grad[0] += 1e-9;
  EXPECT_EQ(first().step, 2) << "below the tolerance";
}

// Fails when a comparison with what is not a number counts as equal.
TEST(Comparison, NumbersThatAreNotFiniteDiffer) {
  for (const double strange : {kNaN, -kNaN, std::numeric_limits<double>::infinity()}) {
    std::vector<StepOutcome> other = training();
    tensor(other, 1, 1).grad[2] = strange;
    const auto found = compare_runs(other, training()).first_beyond(1e300);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, "second");
    EXPECT_EQ(found->step, 2);
    EXPECT_TRUE(compare_runs(training(), other).first_beyond(1e300) || std::isinf(strange));
  }
  std::vector<StepOutcome> lost = training();
  lost[0].loss = kNaN;
  EXPECT_EQ(compare_runs(lost, training()).largest().quantity, Quantity::Loss);
}

TEST(Comparison, OfNothingIsInfinite) {
  std::vector<StepOutcome> zero = training();
  tensor(zero, 0, 0).grad = {0, 0};
  EXPECT_TRUE(std::isinf(compare_runs(training(), zero).steps[0].tensors[0].grad));
  EXPECT_EQ(compare_runs(zero, training()).steps[0].tensors[0].grad, 1);
}

TEST(Comparison, NoiseIsLeftOut) {
  std::vector<StepOutcome> other = training(), known = training();
  tensor(other, 0, 1).grad[1] = 77;
  for (std::vector<StepOutcome>* t : {&other, &known}) tensor(*t, 0, 1).noise = {1, 1};
  EXPECT_FALSE(compare_runs(other, known).first_beyond(0));
  tensor(other, 0, 1).grad[2] = 77;
  EXPECT_TRUE(compare_runs(other, known).first_beyond(0));
}

TEST(Comparison, OtherTensorsAreRefused) {
  std::vector<StepOutcome> other = training();
  tensor(other, 0, 1).name = "third";
  test::expect_error(ErrorKind::Internal, "third", [&] { compare_runs(other, training()); });
  other = training();
  other.pop_back();
  test::expect_error(ErrorKind::Internal, "2 steps against 3",
                     [&] { compare_runs(other, training()); });
}

TEST(Comparison, IsSaidInWords) {
  std::vector<StepOutcome> other = training();
  tensor(other, 1, 1).grad[0] += 3e-6;
  const VerifyReport report{
      {"tp2", "one"}, DeviceKind::Reference, 1e-12, compare_runs(other, training())};
  EXPECT_EQ(difference_text(*report.comparison.first_beyond(1e-12), 1e-12),
            "they differ: first in second at step 2: its gradient differs by 1.0e-06, allowed are "
            "1e-12");
  const VerifyReport loose{{"tp2", "one"}, DeviceKind::Reference, 1e-5, report.comparison};
  EXPECT_EQ(agreement_text(loose),
            "the layouts agree: largest difference 1.0e-06 (second) within 1e-05");
  EXPECT_NE(verify_json(report).find("\"agree\": false"), std::string::npos);
  EXPECT_NE(verify_json(loose).find("\"agree\": true"), std::string::npos);
}

}  // namespace
}  // namespace bev
