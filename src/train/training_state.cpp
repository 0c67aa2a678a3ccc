#include "train/training_state.h"

#include <cmath>

#include "base/check.h"
#include "base/integer.h"
#include "ops/elementwise.h"

namespace bev {

TrainingState::TrainingState(const Config& c, Device& d, ProcessGroups& g, const ArenaSizes& sizes,
                             const ModelOptions& options)
    : RankModel(c, d, g, options),
      grads(params, c.optim.gradients),
      reducer(params, grads, groups),
      optimizer(c.optim, params, grads, groups, static_cast<uint64_t>(c.train.seed)),
      executor(*this, resolve_batch(c).micros, sizes) {
  env.flow.observe(reducer.sink());
  for (const int64_t batch : resolve_batch_schedule(c).sizes())
    executor.prepare(div_exact(batch, c.train.micro_batch * data_ranks(c)));
}

TrainingState::TrainingState(const Config& c, Device& d, std::unique_ptr<SingleRankWorld> world,
                             const ArenaSizes& sizes, const ModelOptions& options)
    : TrainingState(c, d, world->groups, sizes, options) {
  single_rank_world_ = std::move(world);
}

TrainingState::TrainingState(const Config& c, Device& d, const ArenaSizes& sizes,
                             const ModelOptions& options)
    : TrainingState(c, d, std::make_unique<SingleRankWorld>(), sizes, options) {}

void TrainingState::initialize() {
  params.initialize(static_cast<uint64_t>(config.train.seed));
  Exec ex = executor.exec();
  optimizer.refresh_master(ex);
}

void TrainingState::reinitialize() {
  Exec ex = executor.exec();
  for (const OptimizerState& state : optimizer.states())
    ops::fill(ex, {.out = state.flat, .value = 0});
  initialize();
}

namespace {

// In the order of UpdateState.
constexpr std::array<const char*, kUpdateStates> kStateNames{
    "loss_scale",        "steps_without_overflow",
    "hysteresis_left",   "applied_steps",
    "scheduled_samples", "halted",
    "rate_factor",       "watched_steps",
    "loss_mean",         "loss_variance",
    "loss_before",       "norm_mean",
    "norm_variance",     "norm_before"};
static_assert(kStateNames.back() != nullptr);
// Those that checkpoints had from the start; the others were not watched then.
constexpr size_t kFirstNames = 6;

std::optional<double> finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

void write_position(const RunPosition& p, Manifest& manifest) {
  manifest.iteration = p.iteration;
  manifest.consumed_samples = p.consumed_samples;
  manifest.data_position = p.data_position;
  manifest.skipped = p.skipped.list();
  manifest.loss = finite(p.loss);
  manifest.valid_loss = finite(p.valid_loss);
  manifest.update.clear();
  if (!p.update) return;
  for (size_t i = 0; i < kStateNames.size(); ++i) manifest.update[kStateNames[i]] = (*p.update)[i];
  manifest.scheduled_samples = static_cast<int64_t>((*p.update)[kScheduledSamples]);
}

RunPosition read_position(const Manifest& manifest, const std::string& source) {
  RunPosition p{.iteration = manifest.iteration,
                .consumed_samples = manifest.consumed_samples,
                .data_position = manifest.data_position,
                .skipped = SampleRanges(manifest.skipped),
                .loss = manifest.loss,
                .valid_loss = manifest.valid_loss};
  if (manifest.update.empty()) return p;
  p.update.emplace();
  reset_update_state({}, p.update->data());
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    const auto found = manifest.update.find(kStateNames[i]);
    BEV_CHECK(found != manifest.update.end() || i >= kFirstNames, Data, "{}: update lacks {}",
              source, kStateNames[i]);
    if (found != manifest.update.end()) (*p.update)[i] = found->second;
  }
  const auto is_count = [&](int state) {
    const double value = (*p.update)[static_cast<size_t>(state)];
    return value >= 0 && value <= 9e15;
  };
  BEV_CHECK((*p.update)[kLossScale] > 0 && is_count(kAppliedSteps) && is_count(kScheduledSamples),
            Data, "{}: the loss scale, the applied steps or the scheduled samples are impossible",
            source);
  BEV_CHECK(is_count(kLrScale) && is_count(kWatchedSteps) && (*p.update)[kLossVariance] >= 0 &&
                (*p.update)[kNormVariance] >= 0,
            Data, "{}: the factor of the learning rate or the running values are impossible",
            source);
  // A run that halted on a number that is not finite may try again.
  (*p.update)[kHalted] = 0;
  return p;
}

}  // namespace bev
