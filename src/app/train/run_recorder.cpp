#include "app/train/run_recorder.h"

#include "app/cli/build_info.h"
#include "base/clock.h"
#include "config/resolve.h"
#include "train/resume.h"

namespace bev::app {

namespace {

RunStatus first_status(const Config& config, const Plan& plan) {
  RunStatus status;
  status.started = unix_seconds();
  status.program = format("bevatron {}", program_version());
  status.device = format("{}, {}", name_of_choice(plan.device), name_of(plan.dtype));
  status.layout = describe(layout_of(config));
  status.ranks = plan.layout.world();
  status.iterations = plan.iterations;
  status.device_bytes = static_cast<double>(plan.memory_bytes());
  return status;
}

// Allocates at the first call only: the losses of a model do not change.
void set_losses(std::vector<NamedLoss>& losses, const LossMeans& means) {
  losses.resize(static_cast<size_t>(means.end() - means.begin()));
  for (size_t i = 0; i < losses.size(); ++i) {
    losses[i].name = means.begin()[i].name;
    losses[i].mean = means.begin()[i].value;
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

RunRecorder::RunRecorder(const Config& config, const Plan& plan, const std::string& config_text,
                         const Console& console)
    : config_(config), plan_(plan), console_(console), directory_(config.train.output) {
  if (!config.train.output.empty()) {
    directory_.prepare(config_text);
    metrics_.emplace(directory_.metrics_file());
    status_.emplace(directory_.status_file(), first_status(config, plan));
    control_.emplace(directory_.control());
    control_->prepare();
  }
  if (!config.log.tensorboard.empty())
    tensorboard_.emplace(config.log, config.log.tensorboard, plan.layout.world(), config_text);
}

void RunRecorder::begin(const RunPosition& position) {
  // A run that ended before its first checkpoint is done again from the start.
  if (metrics_ && continues_output(config_)) metrics_->forget_after(position.iteration);
  if (metrics_) metrics_->start(plan_.model_parameters, plan_.iterations);
  const double factor = position.update ? (*position.update)[kLrScale] : 1;
  if (factor != 1)
    console_.log("rate      {} times the schedule, as before (control/lr)\n", factor);
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.iteration = position.iteration;
    s.samples = position.consumed_samples;
    s.rate_factor = factor;
  });
}

void RunRecorder::iteration(const Progress& p, const std::string& slowest) {
  if (metrics_) metrics_->add(p);
  if (tensorboard_) tensorboard_->add(p);
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.phase = RunPhase::Training;
    s.iteration = p.iteration;
    s.iterations = p.iterations;
    s.samples = p.samples;
    s.loss = p.result.loss;
    set_losses(s.losses, p.result.losses);
    s.grad_norm = p.result.grad_norm;
    s.learning_rate = p.result.next_lr;
    s.tokens_per_second = p.tokens_per_second;
    const int64_t left = p.iterations - p.iteration;
    s.seconds_per_iteration = left > 0 ? p.seconds_left / static_cast<double>(left) : p.seconds;
    s.seconds_left = p.seconds_left;
    s.skipped += p.result.applied ? 0 : 1;
    if (!slowest.empty()) s.slowest = slowest;
  });
}

void RunRecorder::validation(const Validation& v) {
  if (metrics_) metrics_->add(v);
  if (tensorboard_) tensorboard_->add(v);
  if (status_ && v.split == "validation")
    status_->change([&](RunStatus& s) {
      s.valid_loss = v.loss;
      set_losses(s.valid_losses, v.losses);
    });
}

void RunRecorder::evaluating() {
  if (status_) status_->change([](RunStatus& s) { s.phase = RunPhase::Evaluating; });
}

void RunRecorder::saving() {
  if (status_) status_->change([](RunStatus& s) { s.phase = RunPhase::Saving; });
}

void RunRecorder::saved(const SaveReport& report, const std::string& place) {
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.save_failure = report.failure;
    if (!report.failure.empty()) return;
    s.checkpoint = place;
    s.checkpoint_iteration = report.iteration;
    s.checkpoint_time = unix_seconds();
  });
}

void RunRecorder::note(const std::string& text) {
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.last_event = first_line(text);
    s.last_event_time = unix_seconds();
  });
}

void RunRecorder::event(const GuardEvent& event) {
  if (metrics_) metrics_->add("guard", event.iteration, event.text);
  note(event.text);
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.spikes += event.is_spike ? 1 : 0;
    s.rollbacks += event.action == GuardAction::RolledBack ? 1 : 0;
  });
}

void RunRecorder::rolled_back(int64_t iteration) {
  // The record is worth less than the training.
  try {
    if (metrics_) metrics_->forget_after(iteration);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    failure_ = error.what();
  }
  if (status_) status_->change([&](RunStatus& s) { s.iteration = iteration; });
}

void RunRecorder::ended(const std::string& words, int exit_code) {
  if (tensorboard_) tensorboard_->flush();
  if (!status_) return;
  status_->change([&](RunStatus& s) {
    s.phase = exit_code == 0 ? RunPhase::Ended : RunPhase::Failed;
    s.ending = first_line(words);
    s.exit_code = exit_code;
    s.seconds_left.reset();
  });
  if (metrics_) metrics_->add("end", status_->current().iteration, first_line(words));
}

RunRequests RunRecorder::poll_requests() {
  RunRequests requests;
  if (!control_) return requests;
  asked_ = control_->poll();
  for (const std::string& line : control_->take_notes()) console_.log("bevatron: note: {}\n", line);
  for (const ControlRequest& request : asked_) {
    switch (request.kind) {
      case ControlRequest::Kind::Save: requests.save = true; break;
      case ControlRequest::Kind::Stop: requests.stop = true; break;
      case ControlRequest::Kind::Eval: requests.evaluate = true; break;
      case ControlRequest::Kind::Rate: requests.rate = request.rate; break;
    }
  }
  return requests;
}

void RunRecorder::acknowledge(const RunRequests& requests, int64_t iteration, bool can_save) {
  for (const ControlRequest& request : asked_) {
    using Kind = ControlRequest::Kind;
    const bool is_acknowledged = (request.kind == Kind::Save && requests.save) ||
                                 (request.kind == Kind::Stop && requests.stop) ||
                                 (request.kind == Kind::Eval && requests.evaluate) ||
                                 (request.kind == Kind::Rate && requests.rate);
    if (!is_acknowledged) continue;
    control_->take(request);
    std::string text =
        format("{}{}, asked for by {} in the control folder, after iteration {}",
               name_of(request.kind), request.kind == Kind::Rate ? format(" {}", request.rate) : "",
               request.by.empty() ? "somebody" : request.by, iteration);
    if (request.kind == Kind::Save && !can_save)
      text += "; this run has no folder for checkpoints (checkpoint.save)";
    console_.log("control   {}\n", text);
    note(text);
    if (metrics_) metrics_->add("control", iteration, text);
    if (status_ && request.kind == Kind::Rate)
      status_->change([&](RunStatus& s) { s.rate_factor = request.rate; });
  }
  asked_.clear();
}

std::optional<std::string> RunRecorder::failure() const {
  if (failure_) return failure_;
  if (metrics_ && metrics_->failure()) return metrics_->failure();
  if (tensorboard_ && tensorboard_->failure()) return tensorboard_->failure();
  return std::nullopt;
}

}  // namespace bev::app
