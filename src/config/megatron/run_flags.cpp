// Flags about when a run ends, restarts or validates.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kStepsLeftOut[] = {
    {"--iterations-to-skip", "N ..."},
    {"--test-mode"},
    {"--phase-transition-iterations", "TEXT"},
};

constexpr MegatronFlag kRejectedResults[] = {
    {"--result-rejected-tracker-filename", "TEXT"},
};

constexpr MegatronFlag kSignals[] = {
    {"--exit-signal-handler"},
    {"--exit-signal-handler-for-dataloader"},
    {"--exit-signal-handler-for-training"},
};

constexpr MegatronFlag kOtherSignals[] = {
    {.flag = "--exit-signal", .takes = "SIGHUP|SIGINT|SIGQUIT|SIGILL|SIGTRAP|SIGABRT|SIGBUS|SIGFPE|SIGKILL|SIGUSR1|SIGSEGV|SIGUSR2|SIGPIPE|SIGALRM|SIGTERM|SIGSTKFLT|SIGCHLD|SIGCONT|SIGSTOP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGXCPU|SIGXFSZ|SIGVTALRM|SIGPROF|SIGWINCH|SIGIO|SIGPWR|SIGSYS|SIGRTMIN|SIGRTMAX", .standard = "SIGTERM", .also = "SIGINT"},
};

constexpr MegatronFlag kRestarts[] = {
    {"--adlr-autoresume"},
    {"--adlr-autoresume-interval", "N", "1000"},
    {"--inprocess-restart"},
    {"--inprocess-max-iterations", "N"},
    {"--inprocess-monitor-thread-interval", "X", "1"},
    {"--inprocess-monitor-process-interval", "X", "1"},
    {"--inprocess-progress-watchdog-interval", "X", "1"},
    {"--inprocess-heartbeat-interval", "X", "30"},
    {"--inprocess-soft-timeout", "X", "60"},
    {"--inprocess-hard-timeout", "X", "90"},
    {"--inprocess-heartbeat-timeout", "X", "60"},
    {"--inprocess-barrier-timeout", "X", "120"},
    {"--inprocess-completion-timeout", "X", "120"},
    {"--inprocess-last-call-wait", "X", "1"},
    {"--inprocess-termination-grace-time", "X", "1"},
    {"--inprocess-granularity", "node|rank", "node"},
    {"--inprocess-active-world-size", "N", "1"},
    {"--inprocess-empty-cuda-cache"},
    {"--enable-ft-package"},
    {"--calc-ft-timeouts"},
    {"--ft-num-warmup-iters", "N", "5"},
};

constexpr MegatronFlag kPlantedFaults[] = {
    {"--error-injection-rate", "N", "0"},
    {"--error-injection-type", "correct_result|transient_error|persistent_error", "transient_error"},
    {"--fault-injector-ranks", "TEXT"},
    {"--fault-injector-num-ranks", "N"},
    {"--fault-injector-fault-types", "TEXT"},
    {"--fault-injector-fault-probabilities", "TEXT"},
    {"--fault-injector-fault-delay", "X"},
    {"--fault-injector-delay-start-iteration", "N"},
    {"--fault-injector-mtti-seconds", "X"},
    {"--fault-injector-offset-seconds", "X"},
    {"--fault-injector-seed", "N"},
};

constexpr MegatronFlag kRepeatedIterations[] = {
    {"--rerun-mode", "disabled|validate_results|report_stats", "validate_results"},
};

constexpr MegatronFlag kConfigurationFiles[] = {
    {"--yaml-cfg", "TEXT"},
};

constexpr MegatronFlag kValidation[] = {
    {"--start-eval-at-iter", "N"},
    {"--eval-global-batch-size", "N"},
    {"--eval-micro-batch-size", "N"},
    {"--full-validation"},
    {"--multiple-validation-sets"},
    {"--validation-set-names", "TEXT ..."},
    {"--eval-batch-size", "N"},
    {"--eval-seq-length", "N"},
    {"--eval-max-preds-per-seq", "N"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> run_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"steps left out", FlagClass::Later,
       "this version trains on every batch, in order, to the end", kStepsLeftOut},
      {"rejected results", FlagClass::Noted, "metrics.jsonl holds what a guard found ([guard])",
       kRejectedResults},
      {"signals", FlagClass::Noted,
       "SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 always end a run after the current iteration, saved",
       kSignals},
      {"other signals", FlagClass::Later,
       "SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 end a run after the current iteration, saved",
       kOtherSignals},
      {"restarts", FlagClass::Later, "`bevatron launch --max_restarts` restarts a run", kRestarts},
      {"planted faults", FlagClass::Later, "this version plants no faults in a run",
       kPlantedFaults},
      {"repeated iterations", FlagClass::Noted,
       "results are reproducible, so no iteration is computed twice to compare",
       kRepeatedIterations},
      {"configuration files", FlagClass::Later,
       "a configuration file is TOML and is named without a flag", kConfigurationFiles},
      {"validation", FlagClass::Later,
       "validation is eval.iterations global batches every eval.interval iterations", kValidation},
  };
  return kTopics;
}

}  // namespace bev
