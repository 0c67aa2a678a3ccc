#include "config/save_schedule.h"

#include <algorithm>

#include "base/check.h"
#include "config/parse/notation.h"

namespace bev {

namespace {

// The range of checkpoint.interval: sums of two do not leave 64 bits.
constexpr int64_t kMost = 1'000'000'000'000'000;

std::optional<int64_t> count(std::string_view text) {
  const auto value = parse_integer(without_blanks(text));
  return value && *value >= 1 && *value <= kMost ? value : std::nullopt;
}

// Empty when the phase may follow one that ends at `begin`.
std::string refusal(std::string_view part, int64_t begin, bool is_last, SavePhase& phase) {
  const size_t colon = part.find(':');
  const auto interval = count(part.substr(0, colon));
  if (!interval)
    return format("{} is not an interval of 1 to {} iterations", toml_string(part.substr(0, colon)),
                  with_commas(kMost));
  phase = {.interval = *interval, .until = SavePhase::kNoEnd};
  if (colon == std::string_view::npos)
    return is_last ? "" : "it does not say until when, and another phase follows";
  const auto until = count(part.substr(colon + 1));
  if (!until)
    return format("{} is not an iteration of 1 to {}", toml_string(part.substr(colon + 1)),
                  with_commas(kMost));
  phase.until = *until;
  if (*until <= begin)
    return format("until {} is not above {}, where the phase begins", *until, begin);
  if (*interval > *until - begin)
    return format("from {} to {} no interval of {} fits", begin, *until, *interval);
  return {};
}

}  // namespace

ParsedPhases parse_save_phases(std::string_view text) {
  ParsedPhases parsed;
  int64_t begin = 0;
  for (size_t number = 1, from = 0; from <= text.size(); ++number) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view part = without_blanks(text.substr(from, comma - from));
    SavePhase phase;
    const std::string why = refusal(part, begin, comma == text.size(), phase);
    if (!why.empty())
      return {.phases = {}, .why = format("phase {}, {}: {}", number, toml_string(part), why)};
    parsed.phases.push_back(phase);
    begin = phase.until;
    from = comma + 1;
  }
  return parsed;
}

SaveSchedule::SaveSchedule(const CheckpointConfig& config) : has_phases_(!config.schedule.empty()) {
  if (has_phases_) {
    ParsedPhases parsed = parse_save_phases(config.schedule);
    BEV_CHECK(parsed.why.empty(), Usage, "checkpoint.schedule = {}: {}; legal is {}",
              toml_string(config.schedule), parsed.why, kLegalSavePhases);
    phases_ = std::move(parsed.phases);
  } else if (config.interval > 0) {
    phases_.push_back({.interval = config.interval, .until = SavePhase::kNoEnd});
  }
}

bool SaveSchedule::is_due(int64_t iteration) const {
  return next_after(iteration - 1) == iteration;
}

std::optional<int64_t> SaveSchedule::next_after(int64_t iteration) const {
  int64_t begin = 0;
  for (const SavePhase& phase : phases_) {
    const int64_t passed = std::max<int64_t>(iteration - begin, 0) / phase.interval;
    // Compared as a distance: near the largest iteration the sum would leave 64 bits.
    if (passed < (phase.until - begin) / phase.interval)
      return begin + (passed + 1) * phase.interval;
    begin = phase.until;
  }
  return std::nullopt;
}

}  // namespace bev
