// Small models that train in milliseconds, one per family and option.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace bev::test {

struct TinyModel {
  std::string name;
  Config config;
};

// Two layers of width 16, odd vocabulary, two micro-batches of two sequences of seven tokens.
Config tiny_gpt();
Config tiny_llama();
Config tiny_bert();
Config tiny_t5();              // Megatron-LM's, the texts of unequal length
Config tiny_huggingface_t5();  // RMS norm, relative positions, no biases
Config tiny_biencoder();       // one encoder for both texts

// Every family with every option that changes the computation.
std::vector<TinyModel> tiny_models();
// Those in which no sample's loss depends on other samples: not bi-encoders, whose classes are the
// contexts of the micro-batch.
std::vector<TinyModel> with_independent_samples(std::vector<TinyModel> models);

// Elements of all parameters; one that several stages hold counts once.
int64_t parameter_count(const Config& config);

}  // namespace bev::test
