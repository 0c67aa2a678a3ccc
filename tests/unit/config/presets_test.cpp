#include "config/presets.h"

#include "config/resolve.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

Config preset(std::string_view name, const Args& more = {}) {
  return load(Args{"--model.preset", std::string(name), "--train.micro_batch", "1"} + more).config;
}

// Closed form, written without a look at the model's code: matrices, biases and norms of each
// block, token and position embeddings, final norm, output layer.
int64_t parameters(const Config& config) {
  const ModelShape s = resolve_model(config);
  const ModelConfig& m = config.model;
  const int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const int64_t up = is_gated(m.activation) ? 2 * s.ffn : s.ffn;
  const int64_t norm = m.norm == NormKind::LayerNorm ? 2 * s.width : s.width;
  int64_t block = s.width * (q + 2 * kv) + q * s.width + s.width * up + s.ffn * s.width + 2 * norm;
  if (m.bias == BiasKind::All) block += q + 2 * kv + s.width + up + s.width;
  int64_t total = s.layers * block + s.padded_vocab * s.width * (m.tied ? 1 : 2) + norm;
  if (m.position == PositionKind::Learned) total += s.positions * s.width;
  return total;
}

TEST(Presets, PublishedParameterCounts) {
  EXPECT_EQ(parameters(preset("gpt2-124m", {"--make-vocab-size-divisible-by", "1"})), 124439808);
  EXPECT_EQ(parameters(preset("gpt2-345m")), 354871296);
  EXPECT_EQ(parameters(preset("gpt2-355m")), 354871296);
  EXPECT_EQ(parameters(preset("gpt2-774m", {"--make-vocab-size-divisible-by", "1"})), 774030080);
  EXPECT_EQ(parameters(preset("gpt2-1558m", {"--make-vocab-size-divisible-by", "1"})), 1557611200);
  EXPECT_EQ(parameters(preset("gpt3-175b", {"--vocab-size", "51200"})), 174615846912);
  EXPECT_EQ(parameters(preset("yuan-asc22")), 4701321216);
  EXPECT_EQ(parameters(preset("llama2-7b")), 6738415616);
  EXPECT_EQ(parameters(preset("llama2-13b")), 13015864320);
  EXPECT_EQ(parameters(preset("llama2-70b")), 68976648192);
  EXPECT_EQ(parameters(preset("llama3-8b")), 8030261248);
  EXPECT_EQ(parameters(preset("llama3-70b")), 70553706496);
  EXPECT_EQ(parameters(preset("tinyllama-1.1b")), 1100048384);
}

// The names of the GPT-3 family are its rounded sizes.
TEST(Presets, NamesAreRoundedSizes) {
  const std::pair<const char*, double> sizes[] = {
      {"gpt3-125m", 125e6}, {"gpt3-350m", 356e6}, {"gpt3-760m", 760e6}, {"gpt3-1.3b", 1.3e9},
      {"gpt3-2.7b", 2.7e9}, {"gpt3-6.7b", 6.7e9}, {"gpt3-13b", 13e9},   {"tr1-13b", 13e9}};
  for (const auto& [name, size] : sizes)
    EXPECT_NEAR(static_cast<double>(parameters(preset(name))) / size, 1, 0.02) << name;
}

TEST(Presets, EachPassesTheCheck) {
  EXPECT_EQ(presets().size(), 21u);
  for (const Preset& p : presets()) {
    const auto problems =
        problems_of(Args{"--model.preset", std::string(p.name), "--train.micro_batch", "2",
                         "--train.global_batch", "8", "--train.samples", "1000", "--optim.lr",
                         "1e-4", "--data.mock"},
                    Purpose::Train);
    EXPECT_TRUE(problems.empty()) << p.name << "\n" << report(problems);
  }
}

TEST(Presets, Details) {
  const Config llama3 = preset("llama3-8b");
  EXPECT_EQ(llama3.model.rope_base, 500000);
  EXPECT_EQ(llama3.model.hidden_dropout, 0);
  EXPECT_EQ(llama3.model.kv_heads, 8);
  EXPECT_EQ(llama3.train.sequence, 8192);
  EXPECT_EQ(resolve_model(llama3).padded_vocab, 128256);
  EXPECT_EQ(resolve_model(preset("gpt3-1.3b")).head_dim, 128);
  EXPECT_EQ(resolve_model(preset("gpt3-13b")).head_dim, 128);
  EXPECT_EQ(resolve_model(preset("tr1-13b")).head_dim, 160);
  EXPECT_EQ(resolve_model(preset("yuan-asc22")).padded_vocab, 53248);
  EXPECT_EQ(resolve_model(preset("gpt2-124m")).padded_vocab, 50304);
}

TEST(Presets, AreListed) {
  const std::string list = preset_list();
  for (const Preset& p : presets()) EXPECT_NE(list.find(p.name), std::string::npos) << p.name;
  EXPECT_EQ(find_preset("nothing"), nullptr);
}

}  // namespace
}  // namespace bev
