// bevatron train: plan, train, write the model.
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>

#include "app/verb_config.h"
#include "app/verbs.h"
#include "base/clock.h"
#include "base/format.h"
#include "checkpoint/huggingface.h"
#include "data/mock_samples.h"
#include "ops/make_device.h"
#include "plan/fit.h"
#include "train/trainer.h"

namespace bev::app {

namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t stop_requested = 0;

extern "C" void request_stop(int) { stop_requested = 1; }

// While it lives, SIGINT and SIGTERM end the run after the current iteration; a second one ends the
// program at once.
class StopOnSignal {
 public:
  StopOnSignal() {
    struct sigaction action{};
    action.sa_handler = request_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &old_interrupt_);
    ::sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~StopOnSignal() {
    ::sigaction(SIGINT, &old_interrupt_, nullptr);
    ::sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  struct sigaction old_interrupt_{}, old_terminate_{};
};

void print_start(const Config& config, const Plan& plan) {
  fmt::print(stderr, "model     {} parameters, {} layers x {}\n", with_commas(plan.parameters),
             plan.model.layers, plan.model.width);
  fmt::print(stderr, "device    {}, {}, {} threads, {} planned\n", name_of_choice(plan.device),
             name_of(plan.dtype), plan.threads, as_bytes(static_cast<double>(plan.memory_bytes())));
  fmt::print(stderr, "batch     {} sequences x {} tokens in {} micro-batches, {} iterations\n",
             plan.batch.global_batch, plan.batch.sequence, plan.batch.micros,
             with_commas(plan.iterations));
  if (!config.train.output.empty()) fmt::print(stderr, "output    {}\n", config.train.output);
}

std::string progress_line(const Progress& p) {
  const StepResult& r = p.result;
  std::string line = format(
      "iteration {}/{} | samples {} | loss {:.6f} | grad norm {:.4f} | lr {:.4e} | "
      "{:.1f} tokens/s | {:.1f} ms | left {}",
      p.iteration, p.iterations, p.samples, r.loss, r.grad_norm, r.lr, p.tokens_per_second,
      1e3 * p.seconds, as_duration(p.seconds_left));
  if (!r.applied) line += " | skipped: the gradient norm is not finite";
  return line;
}

// One live line on a terminal; elsewhere one line per log interval.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(int64_t interval)
      : interval_(interval), live_(::isatty(STDERR_FILENO) != 0) {}

  void operator()(const Progress& p) {
    const bool logged = p.iteration % interval_ == 0 || p.iteration == 1 ||
                        p.iteration == p.iterations || !p.result.applied;
    const double now = seconds_now();
    if (logged) {
      fmt::print(stderr, "{}{}\n", live_ ? "\r\033[K" : "", progress_line(p));
      shown_ = now;
    } else if (live_ && now - shown_ > 0.2) {
      fmt::print(stderr, "\r\033[K{}", progress_line(p));
      shown_ = now;
    }
  }

 private:
  int64_t interval_;
  bool live_;
  double shown_ = 0;
};

}  // namespace

int train(std::span<const std::string> args) {
  const auto loaded = config_for({.name = "train",
                                  .summary = "Trains a model and writes it as a Hugging Face "
                                             "directory.",
                                  .own = {},
                                  .purpose = Purpose::Train},
                                 args);
  if (!loaded) return 0;
  const Config& config = loaded->config;
  const Plan planned = dry_run(config);
  require_fit(config, planned);
  if (!config.train.output.empty()) check_huggingface_output(config.train.output, config);
  print_start(config, planned);

  const std::unique_ptr<Device> device =
      make_device(config.device.kind, static_cast<int>(config.device.threads));
  Assembly assembly(config, *device, planned.arenas);
  assembly.initialize();
  Loader loader(std::make_unique<MockSamples>(planned.model.vocab, assembly.blueprint.seed()),
                planned.batch.micros, planned.batch.micro_batch, planned.batch.sequence);
  Trainer trainer(assembly, loader);
  const StopOnSignal stop_on_signal;
  const TrainSummary summary =
      trainer.run(ProgressPrinter(config.train.log_interval), [] { return stop_requested != 0; });

  fmt::print(stderr, "{} after {} iterations, {}, {:.1f} tokens/s; loss {:.4f} -> {:.4f}\n",
             summary.stopped ? "stopped" : "done", with_commas(summary.iterations),
             as_duration(summary.seconds), summary.tokens_per_second, summary.first_loss,
             summary.last_loss);
  if (!config.train.output.empty()) {
    save_huggingface(config.train.output, config, assembly.params);
    fmt::print(stderr, "wrote {}\n", config.train.output);
  }
  return 0;
}

}  // namespace bev::app
