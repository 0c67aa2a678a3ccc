// Flags of serving, evaluating and generating.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kInferenceServer[] = {
    {"--inference-cuda-graph-scope", "none|layer|block"},
    {"--flash-decode"},
    {"--inference-fuse-tp-communication"},
    {"--inference-disable-triton-nvls-kernels"},
    {"--inference-grouped-gemm-backend", "flashinfer|torch|vllm", "vllm"},
    {"--inference-moe-disable-fused-quant-kernels"},
    {"--inference-moe-token-dispatcher-type", "nccl|nvls", "nvls"},
    {"--mlp-chunks-for-prefill", "N", "1"},
    {.flag = "--inference-batch-times-seqlen-threshold", .takes = "N", .standard = "-1", .also = "512"},
    {"--max-tokens-to-oom", "N", "12000"},
    {"--use-legacy-static-engine"},
    {"--inference-max-requests", "N", "8"},
    {"--inference-max-seq-length", "N", "2560"},
    {"--inference-dynamic-batching"},
    {"--inference-dynamic-batching-buffer-size-gb", "X", "40"},
    {"--inference-dynamic-batching-paused-buffer-size-gb", "X"},
    {"--inference-dynamic-batching-mamba-memory-ratio", "X"},
    {"--inference-dynamic-batching-block-size", "N", "256"},
    {"--inference-dynamic-batching-max-requests", "N"},
    {"--inference-dynamic-batching-max-tokens", "N"},
    {"--inference-dynamic-batching-num-cuda-graphs", "N", "16"},
    {"--inference-dynamic-batching-track-paused-request-events"},
    {"--inference-dynamic-batching-track-generated-token-events"},
    {"--decode-only-cuda-graphs"},
    {"--inference-cuda-graph-all-prefills"},
    {"--inference-cuda-graph-max-tokens", "N", "512"},
    {"--inference-dynamic-batching-unified-memory-level", "0|1", "0"},
    {"--enable-chunked-prefill"},
    {"--num-speculative-tokens", "N", "0"},
    {"--inference-dynamic-batching-prefix-caching"},
    {"--no-inference-dynamic-batching-prefix-caching", "off"},
    {"--inference-dynamic-batching-prefix-caching-eviction-policy", "ref_zero|lru", "ref_zero"},
    {"--inference-dynamic-batching-prefix-caching-coordinator-policy", "longest_prefix|first_prefix_block|load_balanced", "load_balanced"},
    {"--inference-dynamic-batching-prefix-caching-routing-alpha", "X", "0.5"},
    {"--inference-dynamic-batching-prefix-caching-mamba-gb", "X"},
    {"--inference-dynamic-batching-cuda-graph-mixed-prefill-count", "N", "16"},
    {"--inference-dynamic-batching-cuda-graph-sizing-distribution", "exponential|linear", "exponential"},
    {"--inference-dynamic-batching-sampling-backend", "torch|flashinfer", "torch"},
    {"--use-same-sampling-seed-across-dp-ranks"},
    {"--inference-dynamic-batching-async-sched-mode", "legacy|async", "legacy"},
    {"--inference-dynamic-batching-logprobs-mode", "raw_logprobs|processed_logprobs", "raw_logprobs"},
    {"--inference-logging-step-interval", "N", "0"},
    {"--inference-text-gen-server-logging"},
    {"--no-inference-text-gen-server-logging", "off"},
    {"--inference-wandb-logging"},
    {"--no-inference-wandb-logging", "off"},
    {"--inference-coordinator-port", "N"},
    {"--mamba-inference-conv-states-dtype", "bf16|fp16|fp32", "bf16"},
    {"--mamba-inference-ssm-states-dtype", "bf16|fp16|fp32", "bf16"},
    {"--inference-use-synchronous-zmq-collectives"},
    {"--no-inference-use-synchronous-zmq-collectives", "off"},
    {"--inference-disable-ep-consensus"},
    {"--no-inference-disable-ep-consensus", "off"},
    {"--inference-shards", "TEXT"},
};

constexpr MegatronFlag kPerplexityOfJsonl[] = {
    {"--webtext-eval"},
};

constexpr MegatronFlag kEvaluationAndGenerationOf2019[] = {
    {"--overlapping-eval", "N", "32"},
    {"--cloze-eval"},
    {"--eval-hf"},
    {"--temperature", "X", "1"},
    {"--top_p", "X", "0"},
    {"--top_k", "N", "0"},
    {"--out-seq-length", "N", "256"},
    {"--model-path", "TEXT"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> inference_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"inference server", FlagClass::Later,
       "train serves nothing; `bevatron serve` sizes its batches and its cache by --rows and "
       "--cache-tokens",
       kInferenceServer},
      {"perplexity of jsonl", FlagClass::Later,
       "perplexity is that of a plain text or a token file: `bevatron preprocess` makes one of "
       "jsonl, and `bevatron eval --data` reads it",
       kPerplexityOfJsonl},
      {"evaluation and generation of 2019", FlagClass::Later,
       "training neither evaluates tasks nor generates text: `bevatron eval` and `bevatron "
       "generate` do",
       kEvaluationAndGenerationOf2019},
  };
  return kTopics;
}

}  // namespace bev
