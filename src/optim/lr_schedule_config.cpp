#include "optim/lr_schedule_config.h"

#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/integer.h"
#include "config/config_diff.h"
#include "config/parse/notation.h"
#include "config/resolve.h"

namespace bev {

namespace {

// A length that a configuration gives in iterations or in samples.
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
              "{} iterations x {} samples exceed the largest sample count", iterations,
              global_batch_);
    return samples;
  }

 private:
  bool in_samples_;
  int64_t global_batch_;
};

}  // namespace

LrSchedule lr_schedule_from(const Config& config, int64_t global_batch, int64_t iterations) {
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
            "optim.warmup_fraction = {} and a warm-up of {} samples cannot be used together",
            o.warmup_fraction, warmup);

  LrSchedule s{.init_lr = o.warmup_init, .max_lr = o.lr, .min_lr = o.min_lr};
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

  BEV_CHECK(s.decay > 0, Usage, "the run length is unset: set train.iterations or train.samples");
  BEV_CHECK(s.warmup < static_cast<double>(s.decay), Usage,
            "the warm-up of {} samples must be shorter than the decay of {} samples", s.warmup,
            s.decay);
  BEV_CHECK(s.min_lr <= s.max_lr, Usage, "optim.min_lr = {} is above optim.lr = {}", s.min_lr,
            s.max_lr);
  BEV_CHECK(s.init_lr <= s.max_lr, Usage, "optim.warmup_init = {} is above optim.lr = {}",
            s.init_lr, s.max_lr);
  BEV_CHECK(s.style != LrDecay::Wsd || s.wsd > 0, Usage,
            "optim.decay = WSD needs the length of its final decay: set optim.wsd_{}",
            in_samples ? "samples" : "iterations");
  BEV_CHECK(s.wd_ramp != DecayRamp::Constant || s.start_wd == s.end_wd, Usage,
            "weight decay changes from {} to {}, but optim.weight_decay_ramp is constant",
            s.start_wd, s.end_wd);
  return s;
}

namespace {

// Calls f(name in a checkpoint, name for the user, member) for every part of a schedule.
template <class Spec, class F>
void for_each_part(Spec& s, F f) {
  f("max_lr", "optim.lr", s.max_lr);
  f("min_lr", "optim.min_lr", s.min_lr);
  f("init_lr", "optim.warmup_init", s.init_lr);
  f("warmup", "samples of the warm-up", s.warmup);
  f("decay", "samples until optim.min_lr", s.decay);
  f("style", "optim.decay", s.style);
  f("wsd_style", "optim.wsd_decay", s.wsd_style);
  f("wsd", "samples of the final decay", s.wsd);
  f("start_wd", "weight decay at the start", s.start_wd);
  f("end_wd", "weight decay at the end", s.end_wd);
  f("wd_ramp", "optim.weight_decay_ramp", s.wd_ramp);
  f("wd_length", "samples of the weight-decay ramp", s.wd_length);
}

template <class T>
std::string text_of(const T& part) {
  if constexpr (std::is_enum_v<T>)
    return toml_string(name_of_choice(part));
  else if constexpr (std::is_same_v<T, double>)
    return real_text(part);
  else
    return format("{}", part);
}

// False if the text is not valid for this type: a number of at least 0, or the name of a choice.
template <class T>
bool read_part(const std::string& text, T& part) {
  if constexpr (std::is_enum_v<T>) {
    for (size_t i = 0; i < EnumNames<T>::names.size(); ++i) {
      part = static_cast<T>(i);
      if (text_of(part) == text) return true;
    }
    return false;
  } else {
    std::optional<T> value;
    if constexpr (std::is_same_v<T, double>)
      value = parse_real(text);
    else
      value = parse_integer(text);
    if (!value || *value < 0) return false;
    part = *value;
    return true;
  }
}

// The schedule with parts that have no effect at their defaults.
LrSchedule effective(LrSchedule s) {
  const LrSchedule standard;
  if (s.warmup == 0) s.init_lr = standard.init_lr;
  if (s.style == LrDecay::Constant) {
    s.min_lr = standard.min_lr;
    s.decay = standard.decay;
  }
  if (s.style != LrDecay::Wsd) {
    s.wsd_style = standard.wsd_style;
    s.wsd = standard.wsd;
  }
  if (s.wd_ramp == DecayRamp::Constant) {
    s.start_wd = standard.start_wd;
    s.wd_length = standard.wd_length;
  }
  return s;
}

struct PartText {
  std::string_view name;
  std::string text;
};

std::vector<PartText> texts_of(const LrSchedule& spec) {
  std::vector<PartText> texts;
  for_each_part(spec, [&](std::string_view, std::string_view name, const auto& part) {
    texts.push_back({name, text_of(part)});
  });
  return texts;
}

// Empty if and only if both have the same effect.
std::vector<std::string> differences(const LrSchedule& before, const LrSchedule& now) {
  const auto old_parts = texts_of(before), parts = texts_of(now);
  const auto old_effects = texts_of(effective(before)), effects = texts_of(effective(now));
  std::vector<std::string> list;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].text != old_parts[i].text && effects[i].text != old_effects[i].text)
      list.push_back(format("{} = {} (was {})", parts[i].name, parts[i].text, old_parts[i].text));
  return list;
}

}  // namespace

void store_schedule(const LrSchedule& spec, StoredConfig& stored) {
  for_each_part(spec, [&](std::string_view key, std::string_view, const auto& part) {
    stored[format("{}{}", kScheduleEntries, key)] = text_of(part);
  });
}

LrSchedule load_lr_schedule(const StoredConfig& stored, std::string_view source) {
  LrSchedule spec;
  for_each_part(spec, [&](std::string_view key, std::string_view name, auto& part) {
    const auto found = stored.find(format("{}{}", kScheduleEntries, key));
    BEV_CHECK(found != stored.end(), Data, "{} has no learning-rate schedule: {}{} ({}) is missing",
              source, kScheduleEntries, key, name);
    BEV_CHECK(read_part(found->second, part), Data,
              "{}: invalid learning-rate schedule: {}{} = {}, expected {}", source,
              kScheduleEntries, key, toml_string(found->second.substr(0, 80)),
              std::is_enum_v<std::remove_reference_t<decltype(part)>> ? "one of the choices"
                                                                      : "a number of at least 0");
  });
  const bool has_lengths = spec.decay > 0 && spec.warmup < static_cast<double>(spec.decay) &&
                           (spec.style != LrDecay::Wsd || spec.wsd > 0) &&
                           (spec.wd_ramp == DecayRamp::Constant || spec.wd_length > 0);
  BEV_CHECK(has_lengths, Data,
            "{}: invalid learning-rate schedule: the lengths contradict each other: warm-up {}, "
            "decay {}, final decay {}, weight decay {} samples",
            source, spec.warmup, spec.decay, spec.wsd, spec.wd_length);
  return spec;
}

ResumedLrSchedule resumed_schedule(const StoredConfig& stored, const Config& now,
                                   std::string_view source) {
  const CheckpointConfig& c = now.checkpoint;
  const bool restarts = c.finetune || !c.load_optimizer;
  if (!restarts && c.scheduler == SchedulerSource::Checkpoint)
    return {.spec = load_lr_schedule(stored, source)};
  const LrSchedule present =
      lr_schedule_from(now, resolve_batch(now).global_batch, resolve_iterations(now));
  if (restarts) return {.spec = present};
  const auto changes = differences(load_lr_schedule(stored, source), present);
  BEV_CHECK(changes.empty() || c.scheduler == SchedulerSource::New, Usage,
            "learning-rate or weight-decay schedule differs from checkpoint {}: {}; restore the "
            "value, or set checkpoint.scheduler: new follows this configuration "
            "(--override-opt_param-scheduler), checkpoint keeps the old schedule "
            "(--use-checkpoint-opt_param-scheduler)",
            source, fmt::join(changes, ", "));
  return {.spec = present, .changes = changes};
}

}  // namespace bev
