#include "verify/shrink.h"

#include <gtest/gtest.h>

#include <array>

#include "config/parse/load.h"
#include "config/presets.h"
#include "config/resolve.h"
#include "support/tiny_models.h"
#include "verify/layout_name.h"
#include "verify/run_comparison.h"

namespace bev {
namespace {

constexpr int64_t kSteps = 3;

Config preset(std::string_view name) {
  const std::vector<std::string> args{"--model.preset", std::string(name), "--train.micro_batch",
                                      "4"};
  return comparable(load(args).config, {DeviceKind::Reference, Precision::Auto}, kSteps);
}

LayoutPair under(const Config& config, std::string_view first, std::string_view second) {
  return under_layouts(config, parse_layout(first), parse_layout(second));
}

bool is_legal(const LayoutPair& pair) {
  return check_config(pair.first).empty() && check_config(pair.second).empty();
}

int64_t stages_of(const Config& c) { return c.parallel.pipeline * c.parallel.chunks; }

constexpr std::array kLayouts{"one",
                              "tp2.sp",
                              "tp3",
                              "tp4.sp",
                              "tp8.sp",
                              "tp16",
                              "tp64",
                              "pp2",
                              "pp4.chunks3",
                              "pp5",
                              "pp12.gpipe",
                              "dp3.zero1",
                              "tp2.pp2.dp2",
                              "pp2.first1.last11",
                              "tp4.sp.pp4.dp2.zero1",
                              "pp4.zero-bubble"};

// shrink() itself throws when what it made is not legal.
TEST(Shrink, WhatIsLegalStaysLegal) {
  int legal = 0;
  for (const Preset& p : presets()) {
    const Config whole = preset(p.name);
    for (const char* first : kLayouts) {
      for (const char* second : {"one", "tp2", "pp3", "dp2"}) {
        const LayoutPair pair = under(whole, first, second);
        if (!is_legal(pair)) continue;
        ++legal;
        SCOPED_TRACE(std::string(p.name) + " " + first + " " + second);
        const LayoutPair small = shrink(pair, kSteps);
        const ModelShape a = resolve_model(small.first), b = resolve_model(small.second);
        EXPECT_EQ(a.padded_vocab, b.padded_vocab);
        const BatchShape batch = resolve_batch(small.first), other = resolve_batch(small.second);
        EXPECT_EQ(batch.global_batch, other.global_batch);
        EXPECT_GE(batch.micros, 2 * small.first.parallel.pipeline);
        EXPECT_GE(other.micros, 2 * small.second.parallel.pipeline);
        EXPECT_LE(a.layers, 1 + std::max(stages_of(small.first), stages_of(small.second)));
        EXPECT_LE(a.head_dim, 16);
        if (small.first.parallel.tensor <= 16) {
          EXPECT_LE(batch.sequence, 32);
        }
      }
    }
  }
  EXPECT_GT(legal, 500);
}

// Fails when a model whose ranks have whole key/value heads becomes one whose ranks share them.
TEST(Shrink, HeadsDivideAsBefore) {
  const auto heads_of = [](std::string_view name, std::string_view layout) {
    const ModelShape m = resolve_model(shrink(under(preset(name), layout, "one"), kSteps).first);
    return std::pair(m.heads, m.kv_heads);
  };
  EXPECT_EQ(heads_of("gpt2-124m", "tp2"), std::pair(int64_t{2}, int64_t{2}));
  EXPECT_EQ(heads_of("gpt2-124m", "tp4"), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(heads_of("llama3-8b", "tp2"), std::pair(int64_t{8}, int64_t{2}));
  EXPECT_EQ(heads_of("llama3-8b", "tp8"), std::pair(int64_t{32}, int64_t{8}));
  EXPECT_EQ(heads_of("tinyllama-1.1b", "tp8"), std::pair(int64_t{16}, int64_t{2}));
}

// Fails when a stage of the user's own division is forgotten.
TEST(Shrink, UnevenStagesStayUneven) {
  const Config whole = preset("gpt2-124m");
  const Config small = shrink(under(whole, "pp4.first5", "pp2"), kSteps).first;
  EXPECT_EQ(small.parallel.first_layers, 2);
  EXPECT_EQ(small.model.layers, 5);
  const Config ends = shrink(under(whole, "pp2.first1.last11", "pp4"), kSteps).first;
  EXPECT_EQ(ends.parallel.first_layers + ends.parallel.last_layers, ends.model.layers);
}

// Fails when an option that decides what is computed is lost.
TEST(Shrink, OptionsStay) {
  for (const test::TinyModel& tiny : test::tiny_models()) {
    SCOPED_TRACE(tiny.name);
    const Config whole = comparable(tiny.config, {DeviceKind::Reference, Precision::Auto}, kSteps);
    const Config small = shrink(under(whole, "pp2", "one"), kSteps).first;
    EXPECT_EQ(options_text(small), options_text(whole));
  }
  Config packed = test::tiny_gpt();
  packed.data.reset_attention = true;
  EXPECT_TRUE(comparable(packed, {DeviceKind::Cpu, Precision::Auto}, 1).data.is_packed());
}

// Fails when a comparison computes with what the file says instead of what was asked for.
TEST(Shrink, ArithmeticIsWhatWasAskedFor) {
  Config whole = test::tiny_gpt();
  whole.device.precision = Precision::F32;
  for (const Precision precision : {Precision::Auto, Precision::Bf16}) {
    const Config small =
        shrink(under(comparable(whole, {DeviceKind::Cpu, precision}, 1), "pp2", "one"), 1).first;
    EXPECT_EQ(small.device.kind, DeviceKind::Cpu);
    EXPECT_EQ(small.device.precision, precision);
  }
}

// Fails when no stage has a whole group, or only one kind of blocks.
TEST(Shrink, RecomputationStays) {
  Config whole = preset("gpt2-124m");
  whole.recompute = {.granularity = Recompute::Full,
                     .method = RecomputeMethod::Uniform,
                     .layers = 3,
                     .distribute = true};
  const Config uniform = shrink(under(whole, "tp2.pp4", "one"), kSteps).first;
  EXPECT_EQ(uniform.model.layers, 8);
  EXPECT_EQ(uniform.recompute.layers, 2);
  EXPECT_EQ(options_text(uniform), options_text(whole));
  EXPECT_NE(options_text(whole).find("recomputation full uniform distributed"), std::string::npos);
  whole.recompute.method = RecomputeMethod::Block;
  const Config block = shrink(under(whole, "tp2.pp4", "one"), kSteps).first;
  EXPECT_EQ(block.model.layers, 8);
  EXPECT_EQ(block.recompute.layers, 1);
}

TEST(Shrink, SaysWhatChanged) {
  const LayoutPair pair = under(preset("gpt2-124m"), "tp2.pp2", "one");
  EXPECT_EQ(shrunk_text(pair.first, shrink(pair, kSteps).first),
            "layers 12 -> 2, width 768 -> 16, heads 12 -> 2, head size 64 -> 8, ffn 3072 -> 64, "
            "vocabulary 50257 -> 61, sequence 1024 -> 16, micro-batch 4 -> 2, global batch 4 -> 8");
  EXPECT_EQ(shrunk_text(pair.first, pair.first), "");
}

// One of each family, so that what is shrunk can also be run.
TEST(Shrink, TheShrunkModelTrainsTheSameInBothLayouts) {
  for (const char* name : {"gpt2-124m", "llama3-8b"}) {
    const LayoutPair small = shrink(under(preset(name), "tp2.sp.pp2", "dp2.zero1"), 1);
    const Comparison compared =
        compare_runs(train_layout(small.first, 1), train_layout(small.second, 1));
    EXPECT_FALSE(compared.first_beyond(1e-12)) << name << " " << name_of(compared.largest());
  }
}

}  // namespace
}  // namespace bev
