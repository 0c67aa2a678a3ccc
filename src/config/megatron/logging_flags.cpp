// Flags about logs, timers and profiles.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kLogsElsewhere[] = {
    {"--config-logger-dir", "TEXT"},
    {"--wandb-project", "TEXT"},
    {"--wandb-exp-name", "TEXT"},
    {"--wandb-save-dir", "TEXT"},
    {"--wandb-entity", "TEXT"},
    {"--otel-enabled"},
    {"--otel-service-name", "TEXT"},
    {"--otel-span-groups", "TEXT"},
    {"--no-one-logger"},
    {"--one-logger-project", "TEXT", "megatron-lm"},
    {"--one-logger-run-name", "TEXT"},
    {"--one-logger-async"},
    {"--app-tag-run-name", "TEXT"},
    {"--app-tag-run-version", "TEXT", "0.0.0"},
    {"--codecarbon-dir", "TEXT"},
};

constexpr MegatronFlag kTagsOfTensorBoard[] = {
    {"--log-timers-to-tensorboard"},
    {"--no-log-loss-scale-to-tensorboard --disable-log-loss-scale-to-tensorboard"},
    {"--log-validation-ppl-to-tensorboard"},
    {"--log-memory-to-tensorboard"},
    {"--log-world-size-to-tensorboard"},
    {"--log-batch-size-to-tensorboard"},
    {"--no-log-learnig-rate-to-tensorboard"},
};

constexpr MegatronFlag kWhatALogLineHolds[] = {
    {"--log-params-norm"},
    {"--log-throughput"},
    {"--log-progress"},
    {"--log-memory-interval", "N"},
    {"--log-device-memory-used"},
    {"--log-num-zeros-in-grad"},
    {"--log-max-attention-logit"},
    {"--logging-level", "N"},
    {"--log-energy"},
};

constexpr MegatronFlag kTimers[] = {
    {"--train-sync-interval", "N"},
    {"--no-barrier-with-level-1-timing"},
};

constexpr MegatronFlag kProfiling[] = {
    {"--profile"},
    {"--profile-step-start", "N", "10"},
    {"--profile-step-end", "N", "12"},
    {"--use-pytorch-profiler"},
    {"--pytorch-profiler-collect-shapes"},
    {"--pytorch-profiler-collect-callstack"},
    {"--pytorch-profiler-collect-chakra"},
    {"--profile-ranks", "N ..."},
    {"--record-memory-history"},
    {"--memory-snapshot-path", "TEXT", "snapshot.pickle"},
    {"--record-shapes"},
    {"--nvtx-ranges"},
};

constexpr MegatronFlag kSlowAndBrokenMachines[] = {
    {"--gpu-sniff-test-interval", "N"},
    {"--flight-recorder-dump-path", "TEXT"},
    {"--flight-recorder-trace-buffer-size", "N", "2000"},
    {"--no-flight-recorder-dump-on-timeout --disable-flight-recorder-dump-on-timeout"},
    {"--flight-recorder-include-stack-trace"},
    {"--no-flight-recorder-include-only-active --disable-flight-recorder-include-only-active"},
    {"--no-flight-recorder-extra-dump-on-exec --disable-flight-recorder-extra-dump-on-exec"},
    {"--log-straggler"},
    {"--straggler-ctrlr-port", "N", "65535"},
    {"--straggler-minmax-count", "N", "1"},
    {"--disable-straggler-on-startup"},
    {"--run-workload-inspector-server"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> logging_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"logs elsewhere", FlagClass::Noted,
       "this version logs to the terminal, to metrics.jsonl and for TensorBoard", kLogsElsewhere},
      {"tags of TensorBoard", FlagClass::Noted,
       "with log.tensorboard the event files hold all that metrics.jsonl does", kTagsOfTensorBoard},
      {"what a log line holds", FlagClass::Noted,
       "log lines and metrics.jsonl have a fixed content", kWhatALogLineHolds},
      {"timers", FlagClass::Noted, "log.timing says where the time goes, without barriers",
       kTimers},
      {"profiling", FlagClass::Noted,
       "there is nothing to profile that perf or Nsight do not see from outside", kProfiling},
      {"slow and broken machines", FlagClass::Noted, "there is one machine",
       kSlowAndBrokenMachines},
  };
  return kTopics;
}

}  // namespace bev
