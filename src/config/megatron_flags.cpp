#include "config/megatron_flags.h"

#include <array>

namespace bev {

namespace {

constexpr std::string_view kFused = "which kernels are fused is chosen by the device";
constexpr std::string_view kAttention = "attention is never computed with the whole score matrix";
constexpr std::string_view kOneRank = "has no meaning with one rank";
constexpr std::string_view kSums = "sums and softmax are always in f32 or better";
constexpr std::string_view kFp16 = "has a meaning with fp16 only";
constexpr std::string_view kTokens = "tokens are read as they stand in the files";
constexpr std::string_view kLog = "this version logs to the terminal only";
constexpr std::string_view kBlocks = "blocks are always recomputed one at a time";
constexpr std::string_view kNoData =
    "this version has no data files; --mock-data trains on made-up tokens";
constexpr std::string_view kNoCheckpoint =
    "this version has no checkpoints; train.output receives the trained model at the end";
constexpr std::string_view kNoExperts = "this version has no mixture of experts";
constexpr std::string_view kNoExit = "this version trains to the end; train.iterations sets it";

constexpr std::array kFlags{
    MegatronFlag{"--use-flash-attn", 0, true, kAttention},
    MegatronFlag{"--attention-backend", 1, true, kAttention},
    MegatronFlag{"--distributed-backend", 1, true, kOneRank},
    MegatronFlag{"--distributed-timeout-minutes", 1, true, kOneRank},
    MegatronFlag{"--local-rank", 1, true, kOneRank},
    MegatronFlag{"--local_rank", 1, true, kOneRank},
    MegatronFlag{"--DDP-impl", 1, true, kOneRank},
    MegatronFlag{"--use-distributed-optimizer", 0, true, kOneRank},
    MegatronFlag{"--overlap-grad-reduce", 0, true, kOneRank},
    MegatronFlag{"--overlap-param-gather", 0, true, kOneRank},
    MegatronFlag{"--tp-comm-overlap", 0, true, kOneRank},
    MegatronFlag{"--no-async-tensor-model-parallel-allreduce", 0, true, kOneRank},
    MegatronFlag{"--use-mcore-models", 0, true, "there is one model implementation"},
    MegatronFlag{"--use-legacy-models", 0, true, "there is one model implementation"},
    MegatronFlag{"--transformer-impl", 1, true, "there is one model implementation"},
    MegatronFlag{"--group-query-attention", 0, true, "--num-query-groups alone decides"},
    MegatronFlag{"--no-masked-softmax-fusion", 0, true, kFused},
    MegatronFlag{"--no-bias-dropout-fusion", 0, true, kFused},
    MegatronFlag{"--no-bias-swiglu-fusion", 0, true, kFused},
    MegatronFlag{"--no-rope-fusion", 0, true, kFused},
    MegatronFlag{"--no-persist-layer-norm", 0, true, kFused},
    MegatronFlag{"--no-gradient-accumulation-fusion", 0, true, kFused},
    MegatronFlag{"--cross-entropy-loss-fusion", 0, true, kFused},
    MegatronFlag{"--attention-softmax-in-fp32", 0, true, kSums},
    MegatronFlag{"--accumulate-allreduce-grads-in-fp32", 0, true, kSums},
    MegatronFlag{"--apply-query-key-layer-scaling", 0, true, kSums},
    MegatronFlag{"--no-query-key-layer-scaling", 0, true, kSums},
    MegatronFlag{"--loss-scale", 1, true, kFp16},
    MegatronFlag{"--initial-loss-scale", 1, true, kFp16},
    MegatronFlag{"--min-loss-scale", 1, true, kFp16},
    MegatronFlag{"--loss-scale-window", 1, true, kFp16},
    MegatronFlag{"--hysteresis", 1, true, kFp16},
    MegatronFlag{"--recompute-method", 1, true, kBlocks},
    MegatronFlag{"--checkpoint-num-layers", 1, true, kBlocks},
    MegatronFlag{"--distribute-saved-activations", 0, true, kOneRank},
    MegatronFlag{"--use-cpu-initialization", 0, true, "initial weights never depend on the layout"},
    MegatronFlag{"--tokenizer-model", 1, true, kTokens},
    MegatronFlag{"--num-workers", 1, true, kTokens},
    MegatronFlag{"--data-cache-path", 1, true, kTokens},
    MegatronFlag{"--no-create-attention-mask-in-dataloader", 0, true, kTokens},
    MegatronFlag{"--log-throughput", 0, true, "every log line has it"},
    MegatronFlag{"--timing-log-level", 1, true, kLog},
    MegatronFlag{"--tensorboard-dir", 1, true, kLog},
    MegatronFlag{"--tensorboard-queue-size", 1, true, kLog},
    MegatronFlag{"--tensorboard-log-interval", 1, true, kLog},
    MegatronFlag{"--log-timers-to-tensorboard", 0, true, kLog},
    MegatronFlag{"--log-batch-size-to-tensorboard", 0, true, kLog},
    MegatronFlag{"--log-validation-ppl-to-tensorboard", 0, true, kLog},
    MegatronFlag{"--fp16", 0, false,
                 "this version has f32 and bf16; give --bf16, or nothing for f32"},
    MegatronFlag{"--train-data", -1, false, kNoData},
    MegatronFlag{"--save", 1, false, kNoCheckpoint},
    MegatronFlag{"--load", 1, false, kNoCheckpoint},
    MegatronFlag{"--save-interval", 1, false, kNoCheckpoint},
    MegatronFlag{"--rampup-batch-size", 3, false, "this version has a constant batch"},
    MegatronFlag{"--num-experts", 1, false, kNoExperts},
    MegatronFlag{"--expert-model-parallel-size", 1, false, kNoExperts},
    MegatronFlag{"--num-layers-per-virtual-pipeline-stage", 1, false,
                 "this version has no pipeline"},
};

}  // namespace

std::span<const MegatronFlag> megatron_flags() { return kFlags; }

}  // namespace bev
