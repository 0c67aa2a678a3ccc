// Prompts and tokens per second of a model that generates, against what the machine allows.
#pragma once

#include <string>

#include "bench/measure.h"
#include "infer/model_folder.h"

namespace bev {

struct GenerationBenchOptions {
  int64_t batch = 1;     // texts at a time
  int64_t prompt = 128;  // tokens of each
  int64_t tokens = 256;  // new ones of each
  int64_t page = 64;     // of the cache, in tokens
  int64_t runs = 3;
};

struct GenerationBench {
  GenerationBenchOptions options{};
  std::string device{}, precision{};
  double load_seconds = 0;     // weights, memory, autotuning
  Timing first_token{};        // from the request until its first token, all texts at once
  Timing between{};            // of a run: from the first token to the last
  double forward_seconds = 0;  // of the prompts' tokens, as in training: with the loss of each
  double bandwidth = 0;        // bytes per second, measured in this run
  double weight_bytes = 0;     // that a step reads whatever the batch
  double cache_bytes = 0;      // that it reads besides, on average
  double memory_bytes = 0;     // on the device
  int64_t graph_launches = 0;  // steps that were launched as CUDA graphs

  double prefill_rate() const {
    return static_cast<double>(options.batch * options.prompt) / first_token.median;
  }
  double forward_rate() const {
    return static_cast<double>(options.batch * options.prompt) / forward_seconds;
  }
  double decode_rate() const {
    return static_cast<double>(options.batch * (options.tokens - 1)) / between.median;
  }
  // Tokens per second if reading were all: of the weights, and of the cache too.
  double weight_floor() const {
    return static_cast<double>(options.batch) * bandwidth / weight_bytes;
  }
  double floor() const {
    return static_cast<double>(options.batch) * bandwidth / (weight_bytes + cache_bytes);
  }
};

// Greedy texts of made-up prompts, all of the same length.
GenerationBench bench_generation(const ModelFolder& folder, const DeviceConfig& device,
                                 const GenerationBenchOptions& options);

std::string generation_bench_table(const GenerationBench& bench);
std::string generation_bench_json(const GenerationBench& bench);

}  // namespace bev
