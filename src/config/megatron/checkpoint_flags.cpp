// Flags about what is written and read again.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kCheckpoints[] = {
    {"--load-main-params-from-ckpt"},
    {"--non-persistent-save-interval", "N"},
    {"--non-persistent-ckpt-type", "global|local|in_memory"},
    {"--non-persistent-global-ckpt-dir", "TEXT"},
    {"--non-persistent-local-ckpt-dir", "TEXT"},
    {"--non-persistent-local-ckpt-algo", "fully_parallel|atomic", "fully_parallel"},
    {"--pretrained-checkpoint", "TEXT"},
    {"--ckpt-convert-format", "torch|torch_dist"},
    {"--ckpt-convert-save", "TEXT"},
    {"--ckpt-convert-update-legacy-dist-opt-format"},
    {"--dist-ckpt-strictness", "assume_ok_unexpected|log_unexpected|log_all|raise_unexpected|raise_all|return_unexpected|return_all|ignore_all", "assume_ok_unexpected"},
    {"--dist-ckpt-save-pre-mcore-014"},
    {"--dist-ckpt-optim-fully-reshardable"},
    {"--no-save-tokenizer-assets --disable-save-tokenizer-assets"},
    {"--replication"},
    {"--replication-jump", "N"},
    {"--replication-factor", "N", "2"},
    {"--override-ckpt-iteration", "N"},
    {"--load-openai"},
};

constexpr MegatronFlag kArgumentsOfCheckpoints[] = {
    {"--use-checkpoint-args"},
    {"--use-mp-args-from-checkpoint-args"},
    {"--no-use-tokenizer-model-from-checkpoint-args --disable-use-tokenizer-model-from-checkpoint-args"},
};

constexpr MegatronFlag kTensorsWrittenWhileTraining[] = {
    {"--save-params-interval", "N"},
    {"--save-activations-interval", "N"},
    {"--save-wgrads-interval", "N"},
    {"--save-dgrads-interval", "N"},
};

constexpr MegatronFlag kHowCheckpointsAreWritten[] = {
    {"--no-ckpt-fully-parallel-save"},
    {"--ckpt-format", "torch|torch_dist|torch_dcp|fsdp_dtensor", "torch_dist"},
    {"--auto-detect-ckpt-format"},
    {"--use-dist-ckpt"},
    {"--dist-ckpt-format", "TEXT"},
    {"--resume-dataloader"},
    {"--no-save-rng"},
    {"--async-strategy", "nvrx|mcore", "nvrx"},
    {"--use-persistent-ckpt-worker"},
    {"--async-ckpt-cpu-priority", "N", "10"},
    {"--async-ckpt-io-priority", "N", "3"},
    {"--async-ckpt-use-cpu-shm"},
    {"--ckpt-fully-parallel-load"},
    {"--ckpt-fully-parallel-load-exchange-algo", "broadcast|gather_rounds|gather_object", "broadcast"},
    {"--ckpt-fully-parallel-load-per-rank-objects"},
    {"--ckpt-fully-parallel-save-process-group", "dp|ep_dp", "dp"},
    {"--ckpt-fully-parallel-load-process-group", "dp|ep_dp", "dp"},
    {"--ckpt-assume-constant-structure"},
    {"--ckpt-pg-tensors-cache-path", "TEXT"},
    {"--ckpt-pg-tensors-cache-create"},
    {"--no-ckpt-load-validate-sharding-integrity --disable-ckpt-load-validate-sharding-integrity"},
    {"--no-strict-fsdp-dtensor-load --disable-strict-fsdp-dtensor-load"},
    {"--distrib-optim-fully-reshardable-mem-efficient"},
    {"--verify-integrity"},
    {"--dist-ckpt-workers", "N", "1"},
    {"--ckpt-fully-parallel-save"},
    {"--ckpt-drop-redundant-extra-state"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> checkpoints_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"checkpoints", FlagClass::Later, "this version has no such kind of checkpoint",
       kCheckpoints},
      {"arguments of checkpoints", FlagClass::Later,
       "a run is described by its file and its flags, and one that contradicts its checkpoint is "
       "refused; the config.toml in a checkpoint describes it: bevatron train "
       "CHECKPOINT/config.toml --load FOLDER",
       kArgumentsOfCheckpoints},
      {"tensors written while training", FlagClass::Later,
       "this version writes no gradients or activations", kTensorsWrittenWhileTraining},
      {"how checkpoints are written", FlagClass::Noted,
       "checkpoints have one format, which any layout writes in parallel and any other reads; "
       "random numbers have no state but the seed",
       kHowCheckpointsAreWritten},
  };
  return kTopics;
}

}  // namespace bev
