// Rules about the learning rate and weight decay. The units rule is Megatron's: a training in
// iterations has its schedule in iterations, one in samples has it in samples.
#include "base/format.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

struct Unit {
  bool samples;
  std::string_view name() const { return samples ? "samples" : "iterations"; }
};

// Known only when exactly one training length is given.
std::optional<Unit> unit(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  if ((t.iterations > 0) == (t.samples > 0)) return {};
  return Unit{t.samples > 0};
}

// Lengths of the schedule in the unit of the training.
struct Lengths {
  int64_t decay, wsd;
  double warmup;
  std::string_view decay_path, warmup_path, wsd_path;
};

std::optional<Lengths> lengths(const RuleInput& f) {
  const auto u = unit(f);
  if (!u) return {};
  const OptimConfig& o = f.config.optim;
  const TrainConfig& t = f.config.train;
  Lengths l{};
  l.decay = u->samples ? o.decay_samples : o.decay_iterations;
  l.decay_path = u->samples ? "optim.decay_samples" : "optim.decay_iterations";
  if (l.decay == 0) {
    l.decay = u->samples ? t.samples : t.iterations;
    l.decay_path = u->samples ? "train.samples" : "train.iterations";
  }
  l.wsd = u->samples ? o.wsd_samples : o.wsd_iterations;
  l.wsd_path = u->samples ? "optim.wsd_samples" : "optim.wsd_iterations";
  l.warmup = static_cast<double>(u->samples ? o.warmup_samples : o.warmup_iterations);
  l.warmup_path = u->samples ? "optim.warmup_samples" : "optim.warmup_iterations";
  if (o.warmup_fraction > 0) {
    l.warmup = o.warmup_fraction * static_cast<double>(l.decay);
    l.warmup_path = "optim.warmup_fraction";
  }
  return l;
}

Found lr_given(const RuleInput& f) {
  if (f.purpose != Purpose::Train || f.config.optim.lr > 0) return {};
  return Problem{.what = "optim.lr is missing",
                 .where = f.where({"optim.lr"}),
                 .why = "with a learning rate of 0 nothing is learned",
                 .legal = "a number above 0: --optim.lr 3e-4, for example"};
}

Found min_lr_below_lr(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.lr == 0 || o.min_lr <= o.lr) return {};
  return Problem{.what = format("min_lr {} is above lr {}", o.min_lr, o.lr),
                 .where = f.where({"optim.min_lr", "optim.lr"}),
                 .why = "the learning rate falls from lr to min_lr",
                 .legal = format("min_lr at most {}", o.lr)};
}

Found warmup_init_below_lr(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.lr == 0 || o.warmup_init <= o.lr) return {};
  return Problem{.what = format("warmup_init {} is above lr {}", o.warmup_init, o.lr),
                 .where = f.where({"optim.warmup_init", "optim.lr"}),
                 .why = "the warm-up rises from warmup_init to lr",
                 .legal = format("warmup_init at most {}", o.lr)};
}

// The same length in both units, or in the unit that the training does not have.
Found one_unit(const RuleInput& f, std::string_view what, std::string_view iterations_path,
               std::string_view samples_path, int64_t iterations, int64_t samples) {
  const auto u = unit(f);
  if (iterations > 0 && samples > 0)
    return Problem{.what = format("{} is given twice", what),
                   .where = f.where({iterations_path, samples_path}),
                   .why = "iterations and samples may contradict each other",
                   .legal = u ? format("{} alone, since the training length is in {}",
                                       u->samples ? samples_path : iterations_path, u->name())
                              : "one of the two"};
  if (!u || (u->samples ? iterations : samples) == 0) return {};
  const std::string_view given = u->samples ? iterations_path : samples_path;
  const std::string_view length = u->samples ? "train.samples" : "train.iterations";
  return Problem{.what = format("{} is not in the unit of the training length", what),
                 .where = f.where({given, length}),
                 .why = format("a training in {} has its schedule in {}", u->name(), u->name()),
                 .legal = format("{}, or the training length in {}",
                                 u->samples ? samples_path : iterations_path,
                                 u->samples ? "iterations" : "samples")};
}

Found decay_unit(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  return one_unit(f, "the length of the learning rate decay", "optim.decay_iterations",
                  "optim.decay_samples", o.decay_iterations, o.decay_samples);
}

Found warmup_unit(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  return one_unit(f, "the length of the warm-up", "optim.warmup_iterations", "optim.warmup_samples",
                  o.warmup_iterations, o.warmup_samples);
}

Found wsd_unit(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  return one_unit(f, "the length of the final decay", "optim.wsd_iterations", "optim.wsd_samples",
                  o.wsd_iterations, o.wsd_samples);
}

Found one_warmup(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.warmup_fraction == 0 || (o.warmup_iterations == 0 && o.warmup_samples == 0)) return {};
  const std::string_view other =
      o.warmup_iterations > 0 ? "optim.warmup_iterations" : "optim.warmup_samples";
  return Problem{.what = "the warm-up is given as a fraction and as a length",
                 .where = f.where({"optim.warmup_fraction", other}),
                 .why = "the two may contradict each other",
                 .legal = "one of the two"};
}

Found warmup_before_decay_ends(const RuleInput& f) {
  const auto l = lengths(f);
  const OptimConfig& o = f.config.optim;
  const bool twice = o.warmup_fraction > 0 && (o.warmup_iterations > 0 || o.warmup_samples > 0);
  if (!l || twice || l->warmup < static_cast<double>(l->decay)) return {};
  return Problem{
      .what = "the warm-up does not end before the decay does",
      .where = f.where({l->warmup_path, l->decay_path}),
      .why = format("warm-up {}, decay {} {}", l->warmup, l->decay, unit(f)->name()),
      .legal = l->warmup_path == "optim.warmup_fraction"
                   ? std::string("a fraction below 1")
                   : format("{} at most {}, or a longer training", l->warmup_path, l->decay - 1)};
}

Found wsd_length_given(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.decay != LrDecay::Wsd || o.wsd_iterations > 0 || o.wsd_samples > 0) return {};
  const auto u = unit(f);
  return Problem{.what = "decay WSD needs the length of its final decay",
                 .where = f.where({"optim.decay", "optim.wsd_iterations", "optim.wsd_samples"}),
                 .why = "the learning rate stays at lr and falls only at the end",
                 .legal = format("{} above 0", u && u->samples ? "optim.wsd_samples"
                                               : u             ? "optim.wsd_iterations"
                                                   : "optim.wsd_iterations or optim.wsd_samples")};
}

Found wsd_within_decay(const RuleInput& f) {
  const auto l = lengths(f);
  if (f.config.optim.decay != LrDecay::Wsd || !l || l->wsd <= l->decay) return {};
  return Problem{.what = "the final decay is longer than the whole schedule",
                 .where = f.where({l->wsd_path, l->decay_path}),
                 .why = format("final decay {}, schedule {} {}", l->wsd, l->decay, unit(f)->name()),
                 .legal = format("{} at most {}", l->wsd_path, l->decay)};
}

Found ramp_has_ends(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.weight_decay_ramp == DecayRamp::Constant) return {};
  if (o.start_weight_decay >= 0 && o.end_weight_decay >= o.start_weight_decay) return {};
  const bool given = o.start_weight_decay >= 0 && o.end_weight_decay >= 0;
  return Problem{
      .what = given ? "weight decay would fall during the training"
                    : "a weight decay ramp needs its start and its end",
      .where = f.where(
          {"optim.weight_decay_ramp", "optim.start_weight_decay", "optim.end_weight_decay"}),
      .why = given ? format("it ramps from {} to {}", o.start_weight_decay, o.end_weight_decay)
                   : format("a {} ramp goes from start_weight_decay to end_weight_decay",
                            name_of_choice(o.weight_decay_ramp)),
      .legal =
          "0 <= optim.start_weight_decay <= optim.end_weight_decay <= 10; or "
          "optim.weight_decay_ramp constant"};
}

Found ends_have_ramp(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  const auto given = [](double end) { return end != -1; };
  if (o.weight_decay_ramp != DecayRamp::Constant ||
      (!given(o.start_weight_decay) && !given(o.end_weight_decay)))
    return {};
  return Problem{
      .what = "start or end of a weight decay ramp is given, but weight decay is constant",
      .where = f.where(
          {"optim.weight_decay_ramp", "optim.start_weight_decay", "optim.end_weight_decay"}),
      .why = format("constant weight decay is optim.weight_decay, now {}", o.weight_decay),
      .legal = "optim.weight_decay_ramp linear or cosine; or neither start nor end"};
}

// Options that only some kinds of LAMB read.
Found lamb_options(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  const OptimConfig standard;
  const auto unread = [&](std::string_view path, std::string_view readers) {
    return Problem{.what = format("{} with the optimizer {}", path, name_of_choice(o.kind)),
                   .where = f.where({path, "optim.kind"}),
                   .why = format("only {} it", readers),
                   .legal = format("{} as it is by default, or another optim.kind", path)};
  };
  constexpr std::string_view kLamb = "lamb reads";
  if (o.kind != OptimizerKind::Lamb) {
    if (o.lamb_clip != standard.lamb_clip) return unread("optim.lamb_clip", kLamb);
    if (!o.lamb_decoupled) return unread("optim.lamb_decoupled", kLamb);
    if (!o.lamb_grad_averaging) return unread("optim.lamb_grad_averaging", kLamb);
    if (!o.lamb_bias_correction) return unread("optim.lamb_bias_correction", kLamb);
    if (o.nvlamb) return unread("optim.nvlamb", kLamb);
  }
  const bool is_mylamb2or3 = o.kind == OptimizerKind::MyLamb2 || o.kind == OptimizerKind::MyLamb3;
  if (o.alpha != standard.alpha && !is_mylamb2or3)
    return unread("optim.alpha", "mylamb3 reads, and mylamb2 accepts,");
  if (o.kind != OptimizerKind::LambTp && o.lambtp_solution != standard.lambtp_solution)
    return unread("optim.lambtp_solution", "lambtp reads");
  const bool has_scope = is_lamb(o.kind) && o.kind != OptimizerKind::LambTp;
  if (o.lamb_norms != standard.lamb_norms && !has_scope)
    return unread("optim.lamb_norms", "the kinds of LAMB other than lambtp read");
  return {};
}

}  // namespace

std::vector<Rule> optim_rules() {
  const std::vector<std::string_view> schedule{"train.iterations",        "train.samples",
                                               "optim.decay_iterations",  "optim.decay_samples",
                                               "optim.wsd_iterations",    "optim.wsd_samples",
                                               "optim.warmup_iterations", "optim.warmup_samples",
                                               "optim.warmup_fraction",   "optim.decay"};
  return {
      {{"optim.lr"}, lr_given, true},
      {{"optim.lr", "optim.min_lr"}, min_lr_below_lr},
      {{"optim.lr", "optim.warmup_init"}, warmup_init_below_lr},
      {{"train.iterations", "train.samples", "optim.decay_iterations", "optim.decay_samples"},
       decay_unit},
      {{"train.iterations", "train.samples", "optim.warmup_iterations", "optim.warmup_samples"},
       warmup_unit},
      {{"train.iterations", "train.samples", "optim.wsd_iterations", "optim.wsd_samples"},
       wsd_unit},
      {{"optim.warmup_fraction", "optim.warmup_iterations", "optim.warmup_samples"}, one_warmup},
      {schedule, warmup_before_decay_ends},
      {{"optim.decay", "optim.wsd_iterations", "optim.wsd_samples"}, wsd_length_given, true},
      {schedule, wsd_within_decay},
      {{"optim.weight_decay_ramp", "optim.start_weight_decay", "optim.end_weight_decay"},
       ramp_has_ends},
      {{"optim.weight_decay_ramp", "optim.start_weight_decay", "optim.end_weight_decay"},
       ends_have_ramp},
      {{"optim.kind", "optim.lamb_clip", "optim.lamb_decoupled", "optim.lamb_grad_averaging",
        "optim.lamb_bias_correction", "optim.nvlamb", "optim.alpha", "optim.lambtp_solution",
        "optim.lamb_norms"},
       lamb_options},
  };
}

}  // namespace bev
