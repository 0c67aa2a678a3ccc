#include "train/run_position.h"

#include <cmath>

#include "base/check.h"

namespace bev {

namespace {

// In the order of UpdateState.
constexpr std::array<const char*, kUpdateStates> kNames{
    "loss_scale",    "steps_without_overflow", "hysteresis_left",
    "applied_steps", "scheduled_samples",      "halted"};

std::optional<double> finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

void write_position(const RunPosition& p, Manifest& manifest) {
  manifest.iteration = p.iteration;
  manifest.consumed_samples = p.consumed_samples;
  manifest.data_position = p.data_position;
  manifest.loss = finite(p.loss);
  manifest.valid_loss = finite(p.valid_loss);
  manifest.update.clear();
  if (!p.update) return;
  for (size_t i = 0; i < kNames.size(); ++i) manifest.update[kNames[i]] = (*p.update)[i];
  manifest.scheduled_samples = static_cast<int64_t>((*p.update)[kScheduledSamples]);
}

RunPosition read_position(const Manifest& manifest, const std::string& source) {
  RunPosition p{.iteration = manifest.iteration,
                .consumed_samples = manifest.consumed_samples,
                .data_position = manifest.data_position,
                .loss = manifest.loss,
                .valid_loss = manifest.valid_loss};
  if (manifest.update.empty()) return p;
  p.update.emplace();
  for (size_t i = 0; i < kNames.size(); ++i) {
    const auto found = manifest.update.find(kNames[i]);
    BEV_CHECK(found != manifest.update.end() && found->second >= 0, Data,
              "{}: update lacks {}, or has a negative one", source, kNames[i]);
    (*p.update)[i] = found->second;
  }
  // A run that halted on a number that is not finite may try again.
  (*p.update)[kHalted] = 0;
  return p;
}

}  // namespace bev
