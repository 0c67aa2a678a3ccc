// Flags that choose kernels or trade memory for time.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kFusedKernels[] = {
    {"--cross-entropy-loss-fusion"},
    {"--cross-entropy-fusion-impl", "native|te", "native"},
    {"--use-fused-weighted-squared-relu"},
    {"--fused-residual-rmsnorm"},
    {"--use-transformer-engine-op-fuser"},
    {"--use-te-activation-func"},
    {"--disable-mamba-mem-eff-path"},
    {"--gdp-cutedsl-kernel"},
    {"--gdp-num-chunk-states-to-recompute", "N", "2"},
    {"--no-masked-softmax-fusion"},
    {"--no-bias-swiglu-fusion"},
    {"--no-bias-dropout-fusion"},
    {"--no-rope-fusion"},
    {"--no-persist-layer-norm"},
    {"--no-gradient-accumulation-fusion"},
    {"--disable-jit-fuser"},
    {"--mla-down-proj-fusion"},
};

constexpr MegatronFlag kAttentionKernels[] = {
    {"--attention-backend", "flash|fused|unfused|local|auto", "auto"},
    {"--flash-attention-version", "2|3|4"},
    {"--use-flash-attn"},
};

constexpr MegatronFlag kImplementations[] = {
    {"--transformer-impl", "local|transformer_engine|inference_optimized", "transformer_engine"},
    {"--onnx-safe", "true|false"},
    {"--use-mcore-models"},
    {"--enable-experimental"},
    {"--use-legacy-models"},
};

constexpr MegatronFlag kCudaGraphs[] = {
    {"--enable-cuda-graph"},
    {"--cuda-graph-warmup-steps", "N", "3"},
    {"--external-cuda-graph"},
    {"--cuda-graph-impl", "none|local|transformer_engine|full_iteration", "none"},
    {"--optimizer-cuda-graph"},
    {"--cuda-graph-scope", "TEXT ..."},
    {"--cuda-graph-modules", "TEXT ..."},
};

constexpr MegatronFlag kRecomputation[] = {
    {"--recompute-modules", "TEXT ..."},
    {"--deepspeed-activation-checkpointing"},
};

constexpr MegatronFlag kMemory[] = {
    {"--cpu-offloading-num-layers", "N", "0"},
    {"--cpu-offloading-retain-pinned-cpu-buffers"},
    {"--mlp-chunks-for-training", "N", "1"},
    {"--fine-grained-activation-offloading"},
    {"--offload-modules", "TEXT ..."},
    {"--min-offloaded-tensor-size", "N", "1048576"},
    {"--delay-offload-until-cuda-graph"},
    {"--delta-offload-bytes-across-pp-ranks", "N", "0"},
    {"--activation-offload-fraction", "X", "1"},
    {"--fine-grained-offloading-max-inflight-offloads", "N"},
    {"--empty-unused-memory-level", "0|1|2", "0"},
    {"--optimizer-cpu-offload"},
    {"--optimizer-offload-fraction", "X", "1"},
    {"--use-torch-optimizer-for-cpu-offload"},
    {"--overlap-cpu-optimizer-d2h-h2d"},
    {"--no-pin-cpu-grads"},
    {"--no-pin-cpu-params"},
};

constexpr MegatronFlag kGarbageCollection[] = {
    {"--manual-gc"},
    {"--manual-gc-interval", "N", "0"},
    {"--no-manual-gc-eval --disable-manual-gc-eval"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> kernels_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"fused kernels", FlagClass::Noted,
       "which kernels are fused is chosen by the device and changes no result", kFusedKernels},
      {"attention kernels", FlagClass::Noted,
       "attention is never computed with the whole score matrix", kAttentionKernels},
      {"implementations", FlagClass::Noted, "there is one implementation of the model",
       kImplementations},
      {"CUDA graphs", FlagClass::Noted, "kernels are launched as the device likes best",
       kCudaGraphs},
      {"recomputation", FlagClass::Noted,
       "recompute.norm, recompute.activation and recompute.attention choose among the parts of a "
       "block",
       kRecomputation},
      {"memory", FlagClass::Noted,
       "memory is planned before the run: it fits or the run does not start", kMemory},
      {"garbage collection", FlagClass::Noted, "there is no garbage collector", kGarbageCollection},
  };
  return kTopics;
}

}  // namespace bev
