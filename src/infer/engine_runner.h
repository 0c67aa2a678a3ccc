// The device side of an InferenceEngine: memory, and the work of its steps. On the null device it
// counts the memory that the engine needs.
#pragma once

#include <deque>

#include "device/device_graph.h"
#include "infer/inference_engine.h"
#include "infer/inference_stage.h"
#include "infer/input_uploader.h"
#include "infer/kv_cache.h"

namespace bev {

class InferenceEngine::EngineRunner {
 public:
  // REQUIRES: `limits` has no zeros left. The model must outlive this.
  EngineRunner(RankModel& model, const EngineLimits& limits, const ArenaSizes& sizes);

  const EngineLimits& limits() const { return limits_; }
  int64_t vocab() const { return model_.shape.vocab; }
  bool fits(int64_t prompts, int64_t longest) const;

  void prefill(std::span<const EngineRow> rows) {
    prefill(rows, padded(std::ssize(rows), longest_of(rows)));
  }
  std::vector<double> score(std::span<const EngineRow> rows) {
    return score(rows, padded(std::ssize(rows), longest_of(rows)));
  }
  // `ahead`: number of tokens of each row that the host does not know yet.
  void decode(std::span<const EngineRow> rows, int64_t ahead);
  std::span<const SampledToken> collect();
  std::vector<float> logits();
  void copy_page(int32_t from, int32_t to);
  size_t cache_bytes() const { return cache_.bytes(); }
  int64_t graph_launches() const { return prompt_graphs_.launches() + token_graphs_.launches(); }

  // Runs steps of all kinds once, to count memory or to autotune.
  void run_all_shapes();
  ArenaSizes peaks() const;

 private:
  struct PromptShape {
    int64_t sequences, length;
    auto operator<=>(const PromptShape&) const = default;
    int64_t tokens() const { return sequences * length; }
  };
  // Sampling options and keys, on the device.
  struct Choice {
    ConstTensor options, keys;
  };
  struct Prompts {
    TextView micro;
    ConstTensor places;  // slot of each token in the cache
    ConstTensor last;    // index of each prompt's last token
  };
  // A step whose result the host has not collected.
  struct Issued {
    int64_t rows;
    size_t result;
    Event done;
  };
  bool has_encoder() const { return limits_.source > 0; }
  int64_t longest_of(std::span<const EngineRow> rows) const;
  void prefill(std::span<const EngineRow> rows, const PromptShape& shape);
  std::vector<double> score(std::span<const EngineRow> rows, const PromptShape& shape);
  // Runs the encoder over the sources of the rows.
  void encode(std::span<const EngineRow> rows, const PromptShape& shape);
  PromptShape padded(int64_t prompts, int64_t longest) const;
  int64_t padded_rows(int64_t rows) const;
  Exec exec();
  bool is_last_stage() const { return pipeline_.rank() + 1 == pipeline_.size(); }
  // Runs `work`, as a CUDA graph per shape if the device can capture it.
  void issue(GraphCache<PromptShape>& graphs, const PromptShape& shape, FunctionRef<void()> work);

  Prompts put_prompts(std::span<const EngineRow> rows, const PromptShape& shape);
  Prompts put_sources(std::span<const EngineRow> rows, const PromptShape& shape);
  // Where cross attention of `count` rows, padding included, finds their sources.
  void put_cached_sources(std::span<const EngineRow> rows, int64_t count);
  // Uploads the sampling options of `rows`, padded to `count` rows.
  static Choice put_choice(InputUploader& inputs, std::span<const EngineRow> rows, int64_t count,
                           int64_t ahead);
  void put_seen(std::span<const EngineRow> rows);
  void put_tokens(std::span<const EngineRow> rows);
  void pass_stages(Exec& ex, const TextView& micro, const InferenceOutputs& outputs);
  // Computes the logits of `logit_rows`, or of all rows, and samples a token from each, on every
  // rank.
  void choose(Exec& ex, const TextView& micro, ConstTensor logit_rows, int64_t rows,
              const Choice& choice);
  void send_result(int64_t rows);
  Tensor logits_of(int64_t rows) const;
  Tensor ids_of(int64_t rows) const;
  Tensor logprobs_of(int64_t rows) const;
  Tensor seen_of(int64_t rows) const;

  RankModel& model_;
  Device& device_;
  Communicator& pipeline_;
  EngineLimits limits_;
  bool pads_;  // pads to a few shapes: each shape is prepared once
  int64_t most_pages_, most_source_pages_, seen_words_, classes_;
  KvCache cache_;
  KvCacheAttention attention_;
  CachedCrossAttention cross_;
  InferenceStage stage_;
  Arena keep_, scratch_, recompute_;
  InputUploader prompts_, tokens_;
  Buffer logits_, ids_, logprobs_, seen_, losses_;
  std::vector<PinnedBuffer> results_;
  std::deque<Issued> issued_;
  size_t next_result_ = 0;
  int64_t collected_rows_ = 0;
  std::vector<SampledToken> chosen_;
  GraphCache<PromptShape> prompt_graphs_, token_graphs_;
};

}  // namespace bev
