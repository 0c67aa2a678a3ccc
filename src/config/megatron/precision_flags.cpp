// Flags about the precision of numbers and about reproducible results.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag k8And4Bits[] = {
    {"--fp8-format", "e4m3|hybrid"},
    {"--fp8-recipe", "tensorwise|delayed|mxfp8|blockwise|custom", "delayed"},
    {"--fp8-quantizer-factory", "TEXT"},
    {"--fp8-margin", "N", "0"},
    {"--fp8-interval", "N", "1"},
    {"--fp8-amax-history-len", "N", "1"},
    {"--fp8-amax-compute-algo", "most_recent|max", "most_recent"},
    {"--no-fp8-wgrad --disable-fp8-wgrad"},
    {"--fp8-output-proj"},
    {"--first-last-layers-bf16"},
    {"--num-layers-at-start-in-bf16", "N", "1"},
    {"--num-layers-at-end-in-bf16", "N", "1"},
    {"--use-kitchen-attention"},
    {"--kitchen-attention-backend", "sdpa|fa", "sdpa"},
    {"--fp4-format", "e2m1"},
    {"--fp4-recipe", "nvfp4|custom", "nvfp4"},
    {"--fp4-quantizer-factory", "TEXT"},
    {"--reuse-grad-buf-for-mxfp8-param-ag"},
    {"--keep-fp8-transpose-cache"},
    {"--fp4-param-gather"},
    {"--fp8-param-gather"},
    {"--te-precision-config-file", "TEXT"},
};

constexpr MegatronFlag kPrecisionOfSingleTensors[] = {
    {"--fp32-residual-connection"},
    {"--fp16-lm-cross-entropy"},
    {"--output-logit-dtype", "bf16|fp32"},
    {"--main-params-dtype", "fp32|fp16", "fp32"},
    {"--megatron-fsdp-main-params-dtype", "fp32|bf16|fp16|auto", "fp32"},
    {"--megatron-fsdp-main-grads-dtype", "fp32|bf16|fp16|auto", "auto"},
    {"--megatron-fsdp-grad-comm-dtype", "fp32|fp16|bf16|auto", "auto"},
};

constexpr MegatronFlag kPrecisionOfEmbeddings[] = {
    {"--fp32-embedding"},
    {"--fp32-layernorm"},
    {"--fp32-tokentypes"},
};

constexpr MegatronFlag kPrecisionAware[] = {
    {"--use-precision-aware-optimizer"},
};

constexpr MegatronFlag kSumsInF32[] = {
    {"--apply-query-key-layer-scaling"}, {"--disable-bf16-reduced-precision-matmul"},
    {"--attention-softmax-in-fp32"},     {"--accumulate-allreduce-grads-in-fp32"},
    {"--no-query-key-layer-scaling"},    {"--fp32-allreduce"},
};

constexpr MegatronFlag kReproducibleResults[] = {
    {"--use-cpu-initialization"},
    {"--init-model-with-meta-device"},
    {"--batch-invariant-mode"},
    {"--batch-invariant-backend", "te_native|deepgemm|triton", "te_native"},
    {"--te-rng-tracker"},
    {"--inference-rng-tracker"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> precision_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"8 and 4 bits", FlagClass::Later,
       "this version has f32, bf16 and fp16, nothing below 16 bits", k8And4Bits},
      {"precision of single tensors", FlagClass::Later,
       "master weights and the loss are f32, the residual stream has the "
       "precision of the activations",
       kPrecisionOfSingleTensors},
      {"precision of embeddings and norms", FlagClass::Noted,
       "no effect: tables and norm weights have the type of the activations, in which the tables "
       "are added; norms compute in f32 and round their output; master weights are f32",
       kPrecisionOfEmbeddings},
      {"precision-aware optimizer", FlagClass::Noted,
       "the precision of gradients and moments is set by their own flags", kPrecisionAware},
      {"sums in f32", FlagClass::Noted, "sums, softmax and gradients are always in f32 or better",
       kSumsInF32},
      {"reproducible results", FlagClass::Noted,
       "no result depends on threads, on how a batch is cut or on the layout",
       kReproducibleResults},
  };
  return kTopics;
}

}  // namespace bev
