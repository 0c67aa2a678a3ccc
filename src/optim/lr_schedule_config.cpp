#include "optim/lr_schedule_config.h"

#include <string_view>

#include "base/integer.h"

namespace bev {

namespace {

// A length the user gives in one of two units, in the unit of the run.
struct Length {
  std::string_view iterations_name, samples_name;
  int64_t iterations, samples;
};

class LengthsInSamples {
 public:
  LengthsInSamples(bool in_samples, int64_t global_batch)
      : in_samples_(in_samples), global_batch_(global_batch) {}

  int64_t of(const Length& length) const {
    const int64_t wrong = in_samples_ ? length.iterations : length.samples;
    BEV_CHECK(wrong == 0, Usage, "{} is set, but the length of the run is given in {}: set {}",
              in_samples_ ? length.iterations_name : length.samples_name,
              in_samples_ ? "samples" : "iterations",
              in_samples_ ? length.samples_name : length.iterations_name);
    return in_samples_ ? length.samples : times_batch(length.iterations);
  }

  int64_t times_batch(int64_t iterations) const {
    int64_t samples = 0;
    BEV_CHECK(!multiply_overflows(iterations, global_batch_, samples), Usage,
              "{} iterations of {} samples are more samples than can be counted", iterations,
              global_batch_);
    return samples;
  }

 private:
  bool in_samples_;
  int64_t global_batch_;
};

}  // namespace

ScheduleSpec schedule_from(const Config& config, int64_t global_batch, int64_t iterations) {
  const OptimConfig& o = config.optim;
  const bool in_samples = config.train.samples > 0;
  const LengthsInSamples lengths(in_samples, global_batch);
  const int64_t run = in_samples ? config.train.samples : lengths.times_batch(iterations);

  const int64_t decay = lengths.of(
      {"optim.decay_iterations", "optim.decay_samples", o.decay_iterations, o.decay_samples});
  const int64_t warmup = lengths.of(
      {"optim.warmup_iterations", "optim.warmup_samples", o.warmup_iterations, o.warmup_samples});
  const int64_t wsd =
      lengths.of({"optim.wsd_iterations", "optim.wsd_samples", o.wsd_iterations, o.wsd_samples});
  BEV_CHECK(o.warmup_fraction == 0 || warmup == 0, Usage,
            "the warm-up is given twice: optim.warmup_fraction = {} and a length of {} samples",
            o.warmup_fraction, warmup);

  ScheduleSpec s{.init_lr = o.warmup_init, .max_lr = o.lr, .min_lr = o.min_lr};
  s.decay = decay > 0 ? decay : run;
  s.warmup = o.warmup_fraction > 0 ? o.warmup_fraction * static_cast<double>(s.decay)
                                   : static_cast<double>(warmup);
  s.style = o.decay;
  s.wsd_style = o.wsd_decay;
  s.wsd = wsd;
  s.start_wd = o.start_weight_decay < 0 ? o.weight_decay : o.start_weight_decay;
  s.end_wd = o.end_weight_decay < 0 ? o.weight_decay : o.end_weight_decay;
  s.wd_ramp = o.weight_decay_ramp;
  s.wd_length = run;

  BEV_CHECK(s.decay > 0, Usage, "the run has no length: set train.iterations or train.samples");
  BEV_CHECK(s.warmup < static_cast<double>(s.decay), Usage,
            "the warm-up of {} samples does not end before the decay does, at {}", s.warmup,
            s.decay);
  BEV_CHECK(s.min_lr <= s.max_lr, Usage, "optim.min_lr = {} is above optim.lr = {}", s.min_lr,
            s.max_lr);
  BEV_CHECK(s.init_lr <= s.max_lr, Usage, "optim.warmup_init = {} is above optim.lr = {}",
            s.init_lr, s.max_lr);
  BEV_CHECK(s.style != LrDecay::Wsd || s.wsd > 0, Usage,
            "optim.decay = WSD needs the length of its final decay: set optim.wsd_{}",
            in_samples ? "samples" : "iterations");
  BEV_CHECK(s.wd_ramp != DecayRamp::Constant || s.start_wd == s.end_wd, Usage,
            "weight decay goes from {} to {}, but optim.weight_decay_ramp is constant", s.start_wd,
            s.end_wd);
  return s;
}

}  // namespace bev
