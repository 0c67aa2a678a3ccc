// Generation on the devices that users have, in the types they use, against the reference: the same
// shapes come again with other tokens, as CUDA graphs do.
#include <gtest/gtest.h>

#include <algorithm>

#include "infer/inference_engine.h"
#include "ops/make_device.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// Rows are wide enough for kernels that read several elements at a time.
Config wide(Config config) {
  config.model.width = 64;
  config.model.ffn = 128;
  config.model.positions = 64;
  config.model.init_std = 0.08;
  return config;
}

struct DecodedText {
  Ids tokens, pages;
  EngineRow row() const { return {.tokens = tokens, .pages = pages, .choice = {.temperature = 0}}; }
};

std::vector<EngineRow> rows_of(const std::vector<DecodedText>& texts) {
  std::vector<EngineRow> rows;
  for (const DecodedText& text : texts) rows.push_back(text.row());
  return rows;
}

class DeviceDecoder {
 public:
  DeviceDecoder(const Config& config, const DeviceConfig& device, double tolerance)
      : stored_(config),
        whole_(stored_.load(1, 40)),
        model_(stored_.folder(), device, 1, 40),
        decoder_(model_, {.rows = kMostTexts, .length = 40, .page = kPage}),
        tolerance_(tolerance) {}

  // Three times the same shape: eagerly, captured and launched, launched.
  void check(size_t texts) {
    const bool captures = model_.device().supports_graphs();
    const int64_t before = decoder_.graph_launches();
    for (int round = 0; round < 3; ++round) prompts(texts, round);
    EXPECT_EQ(decoder_.graph_launches() - before, captures ? 2 : 0) << "of prompts";
    for (int step = 0; step < 3; ++step) {
      decoder_.decode(rows_of(texts_));
      collect();
    }
    // The step behind is issued before this one is collected.
    decoder_.decode(rows_of(texts_));
    decoder_.decode_ahead(rows_of(texts_));
    collect();
    collect();
    EXPECT_EQ(decoder_.graph_launches() - before, captures ? 2 + 4 : 0);
  }

  static constexpr int64_t kMostTexts = 20;

 private:
  static constexpr int64_t kPage = 8, kPagesEach = 5;

  void prompts(size_t count, int round) {
    texts_.clear();
    for (size_t i = 0; i < count; ++i) {
      DecodedText text;
      const size_t length = i == 0 ? 15 : 3 + i % 13;
      for (size_t t = 0; t < length; ++t)
        text.tokens.push_back(static_cast<int32_t>((7 * t * t + 5 * i + 11 * t + 3 * round) % 29));
      for (int64_t p = 0; p < kPagesEach; ++p)
        text.pages.push_back(static_cast<int32_t>(p * kMostTexts) + static_cast<int32_t>(i));
      texts_.push_back(text);
    }
    decoder_.prefill(rows_of(texts_));
    collect();
  }

  // What was chosen is about as likely as the reference's choice, and as likely as was said.
  void collect() {
    const std::span<const SampledToken> chosen = decoder_.collect();
    ASSERT_EQ(chosen.size(), texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<double> expected = test::next_logprobs(whole_, texts_[i].tokens);
      const double best = *std::max_element(expected.begin(), expected.end());
      ASSERT_LT(static_cast<size_t>(chosen[i].id), expected.size());
      const double its = expected[static_cast<size_t>(chosen[i].id)];
      EXPECT_NEAR(its, best, tolerance_) << "text " << i;
      EXPECT_NEAR(chosen[i].logprob, its, tolerance_) << "text " << i;
      texts_[i].tokens.push_back(chosen[i].id);
    }
  }

  test::StoredModel stored_;
  LoadedModel whole_, model_;
  InferenceEngine decoder_;
  double tolerance_;
  std::vector<DecodedText> texts_;
};

// Fails when a CUDA graph keeps a token, a length or a page of the time when it was captured, when
// a kernel reads what the one before has not written yet, or when a GEMM for one, few or some
// dozens of rows differs from the others.
void check(const DeviceConfig& device, double tolerance) {
  for (const Config& config : {wide(test::tiny_gpt()), wide(test::tiny_llama())}) {
    DeviceDecoder decoder(config, device, tolerance);
    for (const size_t texts : {1, 3, 8, 20}) {
      SCOPED_TRACE(texts);
      decoder.check(texts);
    }
  }
}

TEST(DeviceInferenceEngine, CpuAgrees) {
  check({.kind = DeviceKind::Cpu, .threads = 2, .precision = Precision::F32}, 1e-5);
}
TEST(DeviceInferenceEngine, CpuAgreesInBf16) {
  check({.kind = DeviceKind::Cpu, .threads = 2, .precision = Precision::Bf16}, 0.1);
}
TEST(DeviceInferenceEngine, CudaAgrees) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  check({.kind = DeviceKind::Cuda, .precision = Precision::F32}, 1e-4);
  check({.kind = DeviceKind::Cuda, .precision = Precision::Bf16}, 0.1);
  check({.kind = DeviceKind::Cuda, .precision = Precision::Bf16, .graphs = false}, 0.1);
  check({.kind = DeviceKind::Cuda, .precision = Precision::F16}, 0.05);
}

}  // namespace
}  // namespace bev
