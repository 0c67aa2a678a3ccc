#include "plan/memory_fit.h"

#include <algorithm>

#include "base/check.h"
#include "base/text_table.h"
#include "ops/make_device.h"

namespace bev {

namespace {

size_t bytes_within_limit(const LayoutPlan& plan, int sharing) {
  if (sharing == kAllRanks) return plan.memory_bytes();
  return plan.largest().memory_bytes() * static_cast<size_t>(sharing);
}

// All blocks, each for itself: few bytes are kept, and few are needed to compute them again.
RecomputeConfig with_all_recomputed(RecomputeConfig recompute) {
  recompute.granularity = Recompute::Full;
  recompute.layers = 0;
  return recompute;
}

// The flags that make one of the other, each with a blank before it.
std::string flags_between(const RecomputeConfig& from, const RecomputeConfig& to) {
  std::string flags;
  if (to.granularity != from.granularity)
    flags += format(" --recompute.granularity {}", name_of_choice(to.granularity));
  if (to.layers != from.layers) flags += format(" --recompute.layers {}", to.layers);
  return flags;
}

}  // namespace

size_t memory_limit(const Config& config) {
  if (config.device.memory_gib > 0) {
    return static_cast<size_t>(config.device.memory_gib * 1024.0 * 1024.0 * 1024.0);
  }
  return free_memory(config.device.kind);
}

std::vector<FitSuggestion> find_remedies(const Config& config, size_t limit, int sharing) {
  std::vector<FitSuggestion> remedies;
  const auto attempt = [&](const Config& changed, std::string flags) {
    const size_t bytes = bytes_within_limit(plan_layout(changed), sharing);
    if (bytes <= limit) remedies.push_back({std::move(flags), bytes});
    return bytes <= limit;
  };
  const BatchShape batch = resolve_batch(config);
  Config changed = config;
  changed.train.global_batch = batch.global_batch;
  for (const bool all : {false, true}) {
    changed.recompute = all ? with_all_recomputed(config.recompute) : config.recompute;
    const std::string recompute = flags_between(config.recompute, changed.recompute);
    if (all && recompute.empty()) break;
    for (int64_t micro = batch.micro_batch; micro >= 1; micro = micro / 2) {
      if (batch.global_batch % (micro * data_ranks(config)) != 0) continue;
      changed.train.micro_batch = micro;
      const std::string flags = micro == batch.micro_batch
                                    ? recompute
                                    : format(" --train.micro_batch {} --train.global_batch {}{}",
                                             micro, batch.global_batch, recompute);
      if (!flags.empty() && attempt(changed, flags.substr(1))) break;
    }
  }
  return remedies;
}

void require_fit(const Config& config, const LayoutPlan& plan, int sharing) {
  const size_t limit = memory_limit(config), need = bytes_within_limit(plan, sharing);
  if (limit == 0 || need <= limit) return;
  const RankPlan& largest = plan.largest();
  const bool several = plan.shown.layout.world() > 1;
  std::string text =
      format("{} needs {} and may use {}{}:",
             several && sharing == 1  ? format("rank {}", largest.rank)
             : several && sharing > 1 ? format("this machine with {} ranks", sharing)
                                      : "the run",
             as_bytes(static_cast<double>(need)), as_bytes(static_cast<double>(limit)),
             config.device.memory_gib > 0 ? " (device.memory_gib)" : "");
  if (several && sharing != 1) text += format("\nof rank {}, which has the most:", largest.rank);
  std::vector<MemoryUse> uses = largest.memory;
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
  TextTable row("  {:<16} {:>12}");
  for (const MemoryUse& use : uses) row(use.purpose, as_bytes(static_cast<double>(use.bytes)));
  text += "\n" + row.text;
  text.pop_back();
  const std::vector<FitSuggestion> remedies = find_remedies(config, limit, sharing);
  for (const FitSuggestion& remedy : remedies) {
    text +=
        format("\nfits in {} with: {}", as_bytes(static_cast<double>(remedy.bytes)), remedy.flags);
  }
  if (remedies.empty()) {
    text += "\nneither smaller micro-batches nor recomputation make it fit: take a smaller model";
  }
  throw Error(ErrorKind::Device, text);
}

}  // namespace bev
