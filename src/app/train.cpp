// bevatron train: plan, train, write the model.
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "app/preflight.h"
#include "app/stop_signal.h"
#include "app/terminal.h"
#include "app/training_printer.h"
#include "app/verb_config.h"
#include "app/verbs.h"
#include "base/check.h"
#include "base/file.h"
#include "bench/gpu_peaks.h"
#include "bench/machine.h"
#include "checkpoint/huggingface.h"
#include "comm/thread.h"
#include "config/print.h"
#include "config/tokenizer_facts.h"
#include "ops/make_device.h"
#include "plan/report.h"
#include "train/run_directory.h"
#include "train/whole_model.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 1> kFlags{{
    {"--dry-run", "", "check configuration, memory, data and output, print the plan and stop"},
}};

// A file of its own in one line; a blend with the share of each file and how often it is read.
void print_data(const TrainingData& data) {
  for (const TrainingData::Part& part : data.parts) {
    const bool blended = part.share < 1;
    say("data      {}{}: {} tokens, {} samples for {}{}\n",
        blended ? format("{:5.2f} % ", 100 * part.share) : "", part.prefix.string(),
        with_commas(part.tokens), with_commas(part.windows),
        kSplitNames[static_cast<size_t>(part.split)],
        blended && part.split == Split::Train ? format(", read {:.2f} times", part.epochs) : "");
  }
}

// What else decides the numbers: threads do not, but people want to know them.
std::string arithmetic_of(const Config& config, const Plan& plan) {
  if (plan.device != DeviceKind::Cuda) return format(", {} threads", plan.threads);
  std::string text;
  if (plan.dtype == DType::f32)
    text += config.device.tf32 ? " with TF32 products (10-bit operands)" : ", true f32 products";
  if (config.device.deterministic) text += ", deterministic";
  if (config.optim.gradients == StatePrecision::Bf16) text += ", bf16 gradients of matrices";
  if (config.optim.first_moment == StatePrecision::Bf16 ||
      config.optim.second_moment == StatePrecision::Bf16)
    text += ", bf16 moments";
  return text;
}

void print_start(const Config& config, const Plan& plan, const TrainingData& data) {
  say("model     {} parameters, {} layers x {}, vocabulary {} padded to {}\n",
      with_commas(plan.model_parameters), plan.model.layers, plan.model.width, plan.model.vocab,
      plan.model.padded_vocab);
  say("device    {}, {}{}, {} planned\n", name_of_choice(plan.device), name_of(plan.dtype),
      arithmetic_of(config, plan), as_bytes(static_cast<double>(plan.memory_bytes())));
  if (plan.layout.world() > 1)
    say("ranks     {}; the numbers above are of the first, all are threads of this process\n",
        describe(plan.layout));
  const std::string rise =
      config.train.ramp_start > 0 ? format("{} rising to ", config.train.ramp_start) : "";
  say("batch     {}{} sequences x {} tokens in {} micro-batches, {} iterations\n", rise,
      plan.batch.global_batch, plan.batch.sequence, plan.batch.micros,
      with_commas(plan.iterations));
  if (config.data.mock) say("data      made-up tokens\n");
  print_data(data);
  if (!config.train.output.empty()) say("output    {}\n", config.train.output);
}

// Empty when no trace is asked for. That it can be written is known before the training starts, and
// what goes wrong later does not end it.
std::function<void(const std::string&)> trace_writer(const LogConfig& log) {
  if (log.trace.empty()) return {};
  {
    const AtomicFile probe(log.trace);
  }
  return [path = log.trace](const std::string& text) {
    try {
      AtomicFile file(path);
      file.write(text);
      file.commit();
    } catch (const Error& error) {
      say("bevatron: note: no trace: {}\n", error.what());
    }
  };
}

// What --log.dispatch asks for; after the first iteration every op has chosen.
void print_dispatch(Device& device) {
  for (const DispatchLog::Choice& c : device.dispatch().choices())
    say("dispatch  {}: {}{}\n", c.op, c.chosen,
        c.refused.empty() ? "" : format(" (refused: {})", c.refused));
}

void print_after_first(const Config& config, const Plan& plan, Device& device) {
  if (!device.rehearsed().empty()) say("tuned     {}\n", device.rehearsed());
  if (config.log.dispatch) print_dispatch(device);
  if (config.device.deterministic && device.algorithms() != 0)
    say("algorithms {:016x} (nothing timed)\n", device.algorithms());
  if (device.is_asynchronous())
    say("memory    {} bytes allocated, {} planned\n",
        with_commas(static_cast<int64_t>(device.allocated_bytes())),
        with_commas(static_cast<int64_t>(plan.memory_bytes())));
}

std::string_view reason_of(Ending ending) {
  switch (ending) {
    case Ending::Complete: return "done";
    case Ending::Asked: return "stopped by a signal";
    case Ending::Interval: return "stopped by train.exit_interval";
    case Ending::Duration: return "stopped by train.exit_minutes";
    case Ending::NonFinite:
    case Ending::BadData: return "stopped by an error";
  }
  return "stopped";
}

void print_end(const TrainSummary& s, const std::string& curve) {
  if (s.ending == Ending::Complete && !curve.empty()) say("loss of every iteration\n{}", curve);
  say("{} after {} iterations", reason_of(s.ending), with_commas(s.iterations));
  // The absolute value takes the sign off what is not a number.
  if (s.iterations > 0)
    say(", {}, {:.0f} tokens/s; loss {:.4f} -> {:.4f}", as_duration(s.seconds), s.tokens_per_second,
        std::abs(s.first_loss), std::abs(s.last_loss));
  if (s.valid_loss) say(", validation {:.4f}", *s.valid_loss);
  if (s.skipped > 0) say("; {} updates skipped", s.skipped);
  say("\n");
}

void print_next_steps(const Config& config) {
  const bool text = tokenizer_of(config) != nullptr;
  say("next      bevatron eval {}{}\n", config.train.output,
      text ? format("\n          bevatron generate {} --prompt \"...\"", config.train.output) : "");
}

// A run that failed at once must not replace the model of an earlier one by its initial weights.
bool is_worth_saving(const TrainSummary& s) {
  return s.applied > 0 || (s.ending != Ending::NonFinite && s.ending != Ending::BadData);
}

// Throws when the run did not end well. REQUIRES: the weights are saved by now.
void require_good_end(const TrainSummary& summary, const std::string& saved) {
  if (summary.ending == Ending::NonFinite)
    throw Error(ErrorKind::Numerics,
                format("{}\n  the update was not applied; {}. A smaller optim.lr or optim.clip "
                       "may help; --train.nonfinite skip goes on without such updates",
                       summary.reason, saved));
  if (summary.ending == Ending::BadData)
    throw Error(ErrorKind::Data, format("{}\n  {}", summary.reason, saved));
}

// What the fraction of peak in the log refers to: of a processor measured now, of a GPU what its
// maker promises. 0: unknown.
double peak_flops(Device& device) {
  switch (device.kind()) {
    case DeviceKind::Cpu: return measure_product_peak(device);
    case DeviceKind::Cuda: return dense_bf16_peak(gpu_name());
    default: return 0;
  }
}

// Nobody waits longer for another rank.
constexpr std::chrono::minutes kRankLimit{10};

// What a run does besides training: one rank of it, the first, speaks for all.
struct RunOutput {
  const Config& config;
  const Plan& planned;
  const RunDirectory& directory;
  MetricsLog* metrics;
  std::function<void(const std::string&)> write_trace;
  const StopSignal& stop;

  bool keeps() const { return !config.train.output.empty(); }
};

DeviceConfig rank_device(const Config& config) {
  DeviceConfig device = config.device;
  device.threads = threads_of_rank(config);
  // Ranks that share a GPU disturb each other's timing.
  if (config.parallel.ranks > 1) device.tune = false;
  return device;
}

struct RankResult {
  TrainSummary summary;
  std::string saved;
};

RankResult train_first_rank(const RunOutput& out, Assembly& assembly, Trainer& trainer) {
  const Config& config = out.config;
  Device& device = assembly.device;
  TrainingPrinter printer({.interval = config.train.log_interval,
                           .flops_per_token = out.planned.model_flops_per_token,
                           .peak_flops = peak_flops(device) * assembly.groups.world().size(),
                           .metrics = out.metrics});
  const TrainSummary summary =
      trainer.run({.iteration =
                       [&](const Progress& p) {
                         printer.iteration(p);
                         if (p.iteration == 1) print_after_first(config, out.planned, device);
                       },
                   .validation = [&](const Validation& v) { printer.validation(v); },
                   .should_stop = [&] { return out.stop.asked(); },
                   .trace = out.write_trace});
  printer.finish();
  print_end(summary, printer.curve());
  return {summary, "nothing was saved, since train.output is empty"};
}

RankResult train_rank(const RunOutput& out, const TrainingData& data, Communicator& world) {
  const Config& config = out.config;
  const std::unique_ptr<Device> device = make_device(rank_device(config));
  const bool speaks = world.rank() == 0;
  if (config.log.dispatch && speaks) device->dispatch().enable();
  Groups groups(layout_of(config), world);
  const Plan plan = speaks ? out.planned : dry_run(config, {.rank = world.rank()});
  Assembly assembly(config, *device, groups, plan.arenas);
  assembly.initialize();
  Trainer trainer(assembly, data);
  RankResult result;
  if (speaks) {
    result = train_first_rank(out, assembly, trainer);
  } else {
    result.summary = trainer.run({.iteration = [](const Progress&) {},
                                  .validation = [](const Validation&) {},
                                  .should_stop = [&] { return out.stop.asked(); }});
  }
  if (!out.keeps()) return result;
  if (!is_worth_saving(result.summary)) {
    result.saved = "nothing was saved, since no update was applied";
    return result;
  }
  const Config whole = on_one_rank(config);
  std::unique_ptr<PlacedModel> gathered;
  Exec ex = assembly.executor.exec();
  if (world.size() > 1) gathered = gather_model(whole, assembly, ex);
  if (!speaks) return result;
  const std::filesystem::path model = out.directory.model();
  save_huggingface(model, whole, gathered ? gathered->params : assembly.params);
  result.saved =
      format("the weights after {} updates are in {}", result.summary.applied, model.string());
  say("wrote {}\n", model.string());
  return result;
}

// Trains and saves. What the run printed to people is on stderr, its record on stdout.
int run_training(const LoadedConfig& loaded, const Preflight& preflight) {
  const Config& config = loaded.config;
  const RunDirectory directory(config.train.output);
  std::optional<MetricsLog> metrics;
  if (!config.train.output.empty()) {
    directory.prepare(print_config(config, loaded.origins));
    metrics.emplace(directory.metrics_file());
    metrics->start(preflight.plan().model_parameters, preflight.plan().iterations);
  }
  // To the end: what has been trained is written first.
  const StopSignal stop;
  const RunOutput out{.config = config,
                      .planned = preflight.plan(),
                      .directory = directory,
                      .metrics = metrics ? &*metrics : nullptr,
                      .write_trace = trace_writer(config.log),
                      .stop = stop};
  RankResult first;
  run_ranks(preflight.plan().layout.world(), kRankLimit, [&](Communicator& world) {
    const RankResult result = train_rank(out, preflight.data(), world);
    if (world.rank() == 0) first = result;
  });
  require_good_end(first.summary, first.saved);
  BEV_CHECK(!metrics || !metrics->failure(), Data, "{}; {}", *metrics->failure(), first.saved);
  if (out.keeps()) print_next_steps(config);
  return 0;
}

}  // namespace

int train(std::span<const std::string> args) {
  const auto loaded = config_for({.name = "train",
                                  .summary = "Trains a model and writes it, with its log and its "
                                             "configuration, into the folder train.output.",
                                  .own = kFlags,
                                  .purpose = Purpose::Train},
                                 args);
  if (!loaded) return 0;
  const bool only_checks = loaded->has("--dry-run");
  const Preflight preflight(loaded->config);
  if (only_checks) {
    fmt::print("{}", plan_table(preflight.layout()));
    std::fflush(stdout);  // before what follows on stderr
  }
  preflight.require();
  for (const std::string& note : preflight.data().notes) say("bevatron: note: {}\n", note);
  print_start(loaded->config, preflight.plan(), preflight.data());
  if (!only_checks) return run_training(*loaded, preflight);
  fmt::print("the run can start: configuration, memory, data and output are in order\n");
  return 0;
}

}  // namespace bev::app
