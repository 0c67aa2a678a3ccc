// Writes a model in Hugging Face's format of any size, with values that tell where they belong:
//
//   make_synthetic_model FOLDER LAYERS WIDTH VOCAB SHARD_BYTES
//
// A Llama with grouped queries, in bf16. Memory does not grow with the model.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "convert/huggingface/huggingface.h"
#include "pipeline/rank_model.h"
#include "unit/convert/bit_pattern.h"

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s FOLDER LAYERS WIDTH VOCAB SHARD_BYTES\n", argv[0]);
    return 2;
  }
  bev::Config config;
  bev::ModelConfig& m = config.model;
  m.layers = std::atoll(argv[2]);
  m.width = std::atoll(argv[3]);
  m.heads = m.width / 64;
  m.kv_heads = m.heads / 4;
  m.ffn = 3 * m.width;
  m.vocab = std::atoll(argv[4]);
  m.vocab_multiple = 1;
  m.positions = 4096;
  m.norm = bev::NormKind::RmsNorm;
  m.activation = bev::Activation::SwiGlu;
  m.position = bev::PositionKind::Rope;
  m.bias = bev::BiasKind::None;
  m.tied = false;
  m.hidden_dropout = m.attention_dropout = 0;
  try {
    bev::test::PatternWeights weights(bev::DType::bf16);
    bev::HuggingFaceOutput output;
    output.most_shard_bytes = static_cast<size_t>(std::atoll(argv[5]));
    bev::write_huggingface(argv[1], config, bev::model_parameters(config), weights, output);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_synthetic_model: %s\n", error.what());
    return 1;
  }
  return 0;
}
