// Flags about several ranks: what they divide and how they talk.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kLayoutOfRanks[] = {
    {"--tensor-parallel-num-weight-shards", "N"},
    {"--hierarchical-context-parallel-sizes", "N ..."},
    {"--max-seqlen-per-dp-cp-rank", "N"},
    {"--hybrid-context-parallel"},
    {"--gtp-remat-opt-in-modules", "TEXT ..."},
    {"--num-distributed-optimizer-instances", "N", "1"},
    {"--fake-process-group"},
};

constexpr MegatronFlag kLayoutOfAPipeline[] = {
    {"--microbatch-group-size-per-virtual-pipeline-stage", "N"},
    {"--account-for-embedding-in-pipeline-split"},
    {"--account-for-loss-in-pipeline-split"},
    {"--pipeline-model-parallel-layout", "TEXT"},
    {"--standalone-embedding-stage"},
};

constexpr MegatronFlag kCommunication[] = {
    {"--pipeline-model-parallel-comm-backend", "nccl|ucc"},
    {"--no-tp-comm-bulk-wgrad --disable-tp-comm-bulk-wgrad"},
    {"--no-tp-comm-bulk-dgrad --disable-tp-comm-bulk-dgrad"},
    {"--no-tp-comm-overlap-ag --disable-tp-comm-overlap-ag"},
    {"--no-tp-comm-overlap-rs --disable-tp-comm-overlap-rs"},
    {"--no-tp-comm-split-ag --disable-tp-comm-split-ag"},
    {"--no-tp-comm-split-rs --disable-tp-comm-split-rs"},
    {"--tp-comm-bootstrap-backend", "nccl|mpi|gloo", "nccl"},
    {"--use-ring-exchange-p2p"},
    {"--no-clone-scatter-output-in-embedding --disable-clone-scatter-output-in-embedding"},
    {"--symmetric-ar-type", "two_shot|one_shot|multimem_all_reduce"},
    {"--nccl-all-reduce-for-prefill"},
    {"--tp-comm-overlap-cfg", "TEXT"},
    {"--no-align-grad-reduce --disable-align-grad-reduce"},
    {"--local-rank", "N", "0"},
    {"--lazy-mpu-init"},
    {"--nccl-communicator-config-path", "TEXT"},
    {"--use-tp-pp-dp-mapping"},
    {"--disable-gloo-process-groups"},
    {"--use-sharp"},
    {"--sharp-enabled-group", "dp|dp_replica"},
    {"--high-priority-stream-groups", "TEXT ..."},
    {"--distributed-timeout-seconds-after-init", "N"},
    {"--no-overlap-p2p-communication"},
    {"--ddp-num-buckets", "N"},
    {"--ddp-bucket-size", "N"},
    {"--ddp-pad-buckets-for-high-nccl-busbw"},
    {"--ddp-reduce-scatter-with-fp32-accumulation"},
    {"--gtp-remat-reduce-scatter-with-fp32-accumulation"},
    {"--ddp-param-name-patterns-for-fp32-local-accumulation", "TEXT ..."},
    {"--ddp-average-in-collective"},
    {"--no-align-param-gather"},
    {"--use-nccl-ub"},
    {"--disable-symmetric-registration"},
    {"--gtp-remat-nccl-ub"},
    {"--gtp-expert-remat-nccl-ub"},
    {"--fsdp-manual-registration"},
    {"--create-all-gather-group"},
    {"--no-gradient-reduce-div-fusion"},
    {"--fsdp-double-buffer"},
    {"--suggested-communication-unit-size", "N"},
    {"--cp-comm-type", "TEXT ...", "p2p"},
    {"--fsdp-db-use-persist-buf-on-alloc-fail"},
    {"--no-async-tensor-model-parallel-allreduce"},
    {"--no-delay-grad-reduce"},
    {"--no-scatter-gather-tensors-in-pipeline"},
    {"--local_rank", "N"},
    {"--DDP-impl", "local|torch", "local"},
    {"--use-contiguous-buffers-in-ddp"},
};

constexpr MegatronFlag kOverlapOfCommunication[] = {
    {"--overlap-param-gather-with-optimizer-step"},
    {"--overlap-p2p-communication"},
    {"--overlap-p2p-communication-warmup-flush"},
    {"--tp-comm-overlap"},
    {"--tp-comm-overlap-rs-dgrad"},
    {"--delay-wgrad-compute"},
    {"--defer-embedding-wgrad-compute"},
    {"--wgrad-deferral-limit", "N", "0"},
};

constexpr MegatronFlag kShardingOverDataParallelRanks[] = {
    {"--megatron-fsdp-version", "1|2", "1"},
    {"--no-use-layer-wise-param-layout"},
    {"--outer-dp-sharding-strategy", "no_shard|optim", "no_shard"},
    {"--enable-full-sharding-in-hsdp"},
    {"--torch-fsdp2-no-reshard-after-forward"},
    {"--megatron-fsdp-enable-fine-grained-param-gather"},
    {"--megatron-fsdp-max-pool-double-buffer"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> parallel_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"layout of ranks", FlagClass::Later, "this version does not lay out ranks so",
       kLayoutOfRanks},
      {"layout of a pipeline", FlagClass::Later,
       "this version divides the layers evenly, save those of the first and the last stage",
       kLayoutOfAPipeline},
      {"communication", FlagClass::Noted,
       "how ranks talk is decided by this program and changes no result", kCommunication},
      {"overlap of communication", FlagClass::Noted,
       "beside computation only gradients and parameters travel in this version "
       "(--overlap-grad-reduce, "
       "--overlap-param-gather); the results are the same",
       kOverlapOfCommunication},
      {"sharding over data-parallel ranks", FlagClass::Noted,
       "parallel.zero says what is divided (1: the optimizer's state, 2: gradients, 3: "
       "parameters); "
       "the results are the same",
       kShardingOverDataParallelRanks},
  };
  return kTopics;
}

}  // namespace bev
