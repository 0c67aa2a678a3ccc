// Resuming on the GPU, with the algorithms that repeat their bits.
#include <gtest/gtest.h>

#include "checkpoint/resume_check.h"
#include "ops/make_device.h"
#include "support/temporary_directory.h"

namespace bev::test {
namespace {

Config on_cuda(Config c, Precision precision) {
  c.model.width = 64;
  c.model.ffn = 192;
  c.model.positions = 32;
  c.model.init_std = 0.05;
  c.train.sequence = 32;
  c.device.kind = DeviceKind::Cuda;
  c.device.precision = precision;
  c.device.deterministic = true;
  return c;
}

class CudaResume : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CudaResume, ContinuesBf16) {
  expect_continues_bit_for_bit(on_cuda(divisible_gpt(), Precision::Bf16));
}

TEST_F(CudaResume, ContinuesF32) {
  expect_continues_bit_for_bit(on_cuda(divisible_llama(), Precision::F32));
}

TEST_F(CudaResume, ContinuesBertWithLamb) {
  const TemporaryDirectory files;
  for (const Precision precision : {Precision::Bf16, Precision::F32})
    expect_continues_bit_for_bit(
        on_cuda(sentence_bert(files.path(), SampleOrder::Megatron), precision));
}

// Short moments are rounded by draws that the step's number decides.
TEST_F(CudaResume, ContinuesShortMoments) {
  Config config = on_cuda(divisible_gpt(), Precision::Bf16);
  config.optim.first_moment = config.optim.second_moment = StatePrecision::Bf16;
  config.optim.gradients = StatePrecision::Bf16;
  expect_continues_bit_for_bit(config);
}

// The scale starts so high that the first steps overflow: its fall, its counters, and what the
// skipped steps leave undone go on alike.
TEST_F(CudaResume, ContinuesAnAdaptingLossScale) {
  Config config = on_cuda(divisible_gpt(), Precision::F16);
  config.loss.initial_scale = 1.8446744073709552e19;
  config.loss.hysteresis = 1;
  config.loss.scale_window = 3;
  config.train.iterations = 64;
  const RunOutcome outcome = expect_continues_bit_for_bit(config);
  EXPECT_GT(outcome.summary.skipped, 0);
  EXPECT_GT(outcome.summary.applied, 0);
  // In the middle the scale is neither where it began nor where it ends.
  const auto scale_at = [&](size_t i) { return outcome.iterations[i].result.loss_scale; };
  EXPECT_NE(scale_at(0), scale_at(32));
}

TEST_F(CudaResume, ContinuesWaiting) {
  Config config = on_cuda(divisible_gpt(), Precision::Bf16);
  config.checkpoint.asynchronous = false;
  expect_continues_bit_for_bit(config);
}

// Shares of parameters are still on their way when a step is done.
TEST_F(CudaResume, ContinuesOverlappedShares) {
  Config config = under(on_cuda(divisible_gpt(), Precision::Bf16), "dp2.zero1");
  config.parallel.overlap_gradients = config.parallel.overlap_parameters = true;
  for (const bool asynchronous : {true, false}) {
    config.checkpoint.asynchronous = asynchronous;
    expect_continues_bit_for_bit(config);
  }
}

TEST_F(CudaResume, ContinuesSharedStates) {
  for (const char* layout : {"dp2.zero1", "dp2.zero3", "tp2.pp2"}) {
    SCOPED_TRACE(layout);
    expect_continues_bit_for_bit(under(on_cuda(divisible_gpt(), Precision::Bf16), layout));
  }
}

}  // namespace
}  // namespace bev::test
