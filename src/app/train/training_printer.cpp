#include "app/train/training_printer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "app/cli/console.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/process.h"
#include "config/resolve.h"
#include "config/tokenizer_config.h"
#include "report/plot/ascii_curve.h"

namespace bev::app {

TrainingPrinter::TrainingPrinter(const Console& console, const Options& options)
    : console_(console), options_(options), live_(console.prints() && stderr_is_terminal()) {}

void TrainingPrinter::iteration(const Progress& p) {
  if (options_.times) slowest_.add(options_.times());
  interval_.add(p);
  if (losses_.empty()) first_ = p.iteration;
  losses_.push_back(p.result.loss);
  last_ = p;
  const double now = seconds_now();
  if (p.iteration == 1 || p.iteration == p.iterations || p.iteration % options_.interval == 0 ||
      !p.result.applied) {
    print_interval(p);
    shown_at_ = now;
  } else if (live_ && now - shown_at_ > 0.2) {
    print_stderr("\r\033[K{}", live_line(p, terminal_columns(STDERR_FILENO)));
    std::fflush(stderr);
    live_shown_ = true;
    shown_at_ = now;
  }
}

void TrainingPrinter::validation(const Validation& v) { print(validation_block(v)); }

void TrainingPrinter::finish() {
  if (!interval_.empty()) print_interval(last_);
  clear_live();
}

std::string TrainingPrinter::curve() const {
  const size_t columns = terminal_columns(STDOUT_FILENO);
  return loss_curve(losses_, columns == 0 ? 72 : std::min<size_t>(columns, 72));
}

void TrainingPrinter::rolled_back(int64_t iteration) {
  const auto left = static_cast<size_t>(std::max<int64_t>(0, iteration + 1 - first_));
  losses_.resize(std::min(losses_.size(), left));
  interval_ = {};
}

void TrainingPrinter::print_interval(const Progress& p) {
  slowest_text_ = slowest_.take_text();
  print(interval_.take_line(p, options_.flops_per_token, options_.peak_flops, slowest_text_));
}

void TrainingPrinter::print(const std::string& line) {
  clear_live();
  console_.print_record(line);
}

void TrainingPrinter::clear_live() {
  if (!live_shown_) return;
  print_stderr("\r\033[K");
  std::fflush(stderr);
  live_shown_ = false;
}

namespace {

// A file of its own in one line; a blend with the share of each file and how often it is read.
void print_data(const Console& console, const TrainingData& data) {
  for (const TrainingData::Part& part : data.parts) {
    const bool blended = part.share < 1;
    console.log(
        "data      {}{}: {} tokens, {} samples for {}{}\n",
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

// What --log.dispatch asks for; after the first iteration every op has chosen.
void print_dispatch(const Console& console, Device& device) {
  for (const DispatchLog::Choice& c : device.dispatch().choices())
    console.log("dispatch  {}: {}{}\n", c.op, c.chosen,
                c.refused.empty() ? "" : format(" (refused: {})", c.refused));
}

// "SIGTERM"
std::string name_of_signal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? format("signal {}", signal) : format("SIG{}", name);
}

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

bool is_error(ExitReason ending) { return ending >= ExitReason::NonFinite; }

}  // namespace

void print_start(const Console& console, const Config& config, const Preflight& preflight) {
  const Plan& plan = preflight.plan();
  const TrainingData& data = preflight.data();
  const ResumePoints& points = preflight.resume_points();
  for (const std::string& note : data.notes) console.log("bevatron: note: {}\n", note);
  for (const std::string& alert : points.alerts) console.log("bevatron: alert: {}\n", alert);
  console.log("model     {} parameters, {} layers x {}, vocabulary {} padded to {}\n",
              with_commas(plan.model_parameters),
              both_sides(plan.model.layers, plan.model.decoder_layers), plan.model.width,
              plan.model.vocab, plan.model.padded_vocab);
  console.log("device    {}, {}{}, {} planned\n", name_of_choice(plan.device), name_of(plan.dtype),
              arithmetic_of(config, plan), as_bytes(static_cast<double>(plan.memory_bytes())));
  if (plan.layout.world() > 1)
    console.log("layout    {}; the numbers above are of the first\n", describe(plan.layout));
  const std::string rise =
      config.train.ramp_start > 0 ? format("{} rising to ", config.train.ramp_start) : "";
  console.log("batch     {}{} sequences x {} tokens in {} micro-batches, {} iterations\n", rise,
              plan.batch.global_batch, both_sides(plan.batch.sequence, plan.batch.second_sequence),
              plan.batch.micros, with_commas(plan.iterations));
  if (config.data.mock) console.log("data      made-up tokens\n");
  print_data(console, data);
  if (!config.train.output.empty()) console.log("output    {}\n", config.train.output);
  if (plan.checkpoint_bytes > 0)
    console.log("save      {}, {} each\n", save_folder(config).string(),
                as_bytes(plan.checkpoint_bytes));
}

void print_after_first(const Console& console, const Config& config, const Plan& plan,
                       Device& device) {
  if (!device.autotune_summary().empty()) console.log("tuned     {}\n", device.autotune_summary());
  if (config.log.dispatch) print_dispatch(console, device);
  if (config.device.deterministic && device.algorithm_hash() != 0)
    console.log("algorithms {:016x} (nothing timed)\n", device.algorithm_hash());
  if (device.is_asynchronous())
    console.log("memory    {} bytes allocated, {} planned\n",
                with_commas(static_cast<int64_t>(device.allocated_bytes())),
                with_commas(static_cast<int64_t>(plan.memory_bytes())));
}

std::string ending_words(const TrainSummary& s) {
  switch (s.ending) {
    case ExitReason::Complete: return "complete";
    case ExitReason::Evaluated: return "evaluated only";
    case ExitReason::Signal: return format("stopped by {}", name_of_signal(s.signal));
    case ExitReason::Request: return "stopped by the control folder";
    case ExitReason::Interval: return "stopped by train.exit_interval";
    case ExitReason::After: return "stopped by train.exit_after";
    case ExitReason::Samples: return "stopped by train.exit_samples";
    case ExitReason::Duration: return "stopped by train.exit_minutes";
    case ExitReason::NonFinite: return "stopped by a number that is not finite";
    case ExitReason::Spike: return "stopped by a spike";
    case ExitReason::Corruption: return "stopped by copies that differ";
    case ExitReason::BadData: return "stopped by samples that cannot be read";
  }
  return "stopped";
}

std::string exit_lines(const TrainSummary& s, const std::string& checkpoint) {
  std::string lines;
  switch (s.ending) {
    case ExitReason::Signal:
      lines = format("exiting program after receiving {}.\n", name_of_signal(s.signal));
      break;
    case ExitReason::Duration:
      lines = format("[exiting program after {:.1f} minutes] datetime: {}\n",
                     process_seconds() / 60, date_and_time());
      break;
    case ExitReason::Interval:
    case ExitReason::After:
    case ExitReason::Samples:
    case ExitReason::Request:
      lines = format("exiting program at iteration {}\n", s.iterations);
      break;
    default: break;
  }
  return lines +
         format("run ended | reason: {} | iteration: {}/{} | checkpoint: {} | complete: {} |",
                ending_words(s), s.iterations, s.planned, checkpoint.empty() ? "none" : checkpoint,
                s.ending == ExitReason::Complete ? "yes" : "no");
}

void print_end(const Console& console, const TrainSummary& s, const std::string& curve) {
  if (s.ending == ExitReason::Complete && !curve.empty())
    console.log("loss of every iteration\n{}", curve);
  const bool had_nothing_to_do = s.ran == 0 && s.iterations > 0 && s.ending == ExitReason::Complete;
  console.log("{} after {} iterations",
              s.ending == ExitReason::Complete ? "done"
              : is_error(s.ending)             ? "stopped by an error"
                                               : ending_words(s),
              with_commas(s.iterations));
  if (had_nothing_to_do) console.log(", all of them before this run");
  // The absolute value takes the sign off what is not a number.
  if (s.ran > 0)
    console.log(", {}, {:.0f} tokens/s; loss {:.4f} -> {:.4f}", as_duration(s.seconds),
                s.tokens_per_second, std::abs(s.first_loss), std::abs(s.last_loss));
  if (s.valid_loss) console.log(", validation {:.4f}", *s.valid_loss);
  if (s.skipped > 0) console.log("; {} updates skipped", s.skipped);
  if (s.rollbacks > 0) console.log("; rolled back {} times", s.rollbacks);
  console.log("\n");
}

void print_next_steps(const Console& console, const Config& config) {
  const bool text = tokenizer_of(config) != nullptr;
  const std::string_view prompt =
      config.model.family == ModelFamily::Bert ? "... [MASK] ..." : "...";
  console.log(
      "next      bevatron eval {}{}\n", config.train.output,
      text ? format("\n          bevatron generate {} --prompt \"{}\"", config.train.output, prompt)
           : "");
}

void require_good_end(const TrainSummary& summary, const std::string& saved) {
  if (!is_error(summary.ending)) return;
  if (summary.ending == ExitReason::BadData)
    throw Error(ErrorKind::Data, format("{}\n  {}", summary.reason, saved));
  std::string advice;
  if (summary.ending == ExitReason::NonFinite)
    advice =
        "the update was not applied; {}. A smaller optim.lr or optim.clip may help; "
        "--guard.nonfinite skip goes on without such updates, rollback without such samples";
  if (summary.ending == ExitReason::Spike)
    advice =
        "the update was not applied; {}. --data.skip leaves samples out; --guard.loss_spike and "
        "--guard.norm_spike say what else can be done: log, skip, rollback";
  if (summary.ending == ExitReason::Corruption)
    advice =
        "{}. A rank that differs again has a fault in its memory or its processor; "
        "--guard.corruption rollback goes on from the last checkpoint by itself";
  throw Error(ErrorKind::Numerics,
              format("{}\n  {}", summary.reason, fmt::format(fmt::runtime(advice), saved)));
}

}  // namespace bev::app
