// Exchanges beside other work train what one rank trains: the buckets, the memories that take turns
// and what is gathered ahead, in float64. That streams wait for each other is the GPU's test
// (cuda_layout_test.cpp): here every call is done when it returns.
#include <gtest/gtest.h>

#include "support/tiny_models.h"
#include "verify/comparison.h"
#include "verify/layout_text.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;

class Overlaps : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_same_training(Config one) {
    one.model.layers = 4;
    one.model.heads = 4;
    one.model.vocab = 32;
    one.model.hidden_dropout = one.model.attention_dropout = 0.1;
    one.train.sequence = 8;
    one.train.micro_batch = 1;
    one.train.global_batch = 8;
    one.device.threads = 1;
    Config many = one;
    many.parallel = parse_layout(GetParam());
    const Comparison compared = compare(train_layout(many, kSteps), train_layout(one, kSteps));
    const auto found = compared.first_beyond(1e-12);
    EXPECT_FALSE(found) << name_of(*found) << " differs by " << found->ratio << " in step "
                        << found->step;
  }
};

// Fails when a bucket is summed before its last micro-batch, twice or never; when a memory is used
// for two buckets at once; when parameters of the step before are used.
TEST_P(Overlaps, GptTied) { expect_same_training(tiny_gpt()); }

TEST_P(Overlaps, LlamaUntiedRecomputed) {
  Config c = tiny_llama();
  c.model.kv_heads = 2;
  c.recompute.granularity = Recompute::Full;
  expect_same_training(c);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Overlaps,
    ::testing::Values("dp2.overlap", "dp4.zero1.overlap", "dp2.zero1.overlap-parameters",
                      "dp2.zero2.overlap", "dp4.zero2.overlap-gradients", "dp4.zero3.overlap",
                      "dp2.zero3.overlap-parameters", "dp2.zero3.overlap-gradients",
                      "tp2.sp.dp2.pp2.overlap", "tp2.dp2.pp2.zero1.overlap.zero-bubble",
                      "dp2.pp2.chunks2.zero1.overlap", "dp2.pp2.chunks2.zero2.overlap",
                      "tp2.sp.dp2.pp2.chunks2.zero3.overlap", "dp2.pp4.zero3.gpipe.overlap"),
    [](const auto& layout) {
      std::string name = layout.param;
      for (char& c : name) {
        if (c == '.' || c == '-') c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace bev::test
