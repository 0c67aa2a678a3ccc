#include "plan/fit.h"

#include <algorithm>

#include "base/check.h"
#include "ops/make_device.h"

namespace bev {

namespace {

// Of all ranks that share the memory: they differ by stage only.
size_t bytes_with(const Config& config) {
  const ParallelLayout layout = layout_of(config);
  size_t bytes = 0;
  const int first_of_stage = layout.world() / layout.pipeline;
  for (int stage = 0; stage < layout.pipeline; ++stage)
    bytes += dry_run(config, {.rank = stage * first_of_stage}).memory_bytes();
  return bytes * static_cast<size_t>(first_of_stage);
}

}  // namespace

size_t memory_limit(const Config& config) {
  if (config.device.memory_gib > 0) {
    return static_cast<size_t>(config.device.memory_gib * 1024.0 * 1024.0 * 1024.0);
  }
  return free_memory(config.device.kind);
}

std::vector<Remedy> find_remedies(const Config& config, size_t limit) {
  std::vector<Remedy> remedies;
  const auto attempt = [&](const Config& changed, std::string flags) {
    const size_t bytes = bytes_with(changed);
    if (bytes <= limit) remedies.push_back({std::move(flags), bytes});
    return bytes <= limit;
  };
  const BatchShape batch = resolve_batch(config);
  Config changed = config;
  changed.train.global_batch = batch.global_batch;
  for (const Recompute granularity : {config.recompute.granularity, Recompute::Full}) {
    changed.recompute.granularity = granularity;
    changed.recompute.layers = 0;
    const std::string recompute =
        granularity == config.recompute.granularity
            ? ""
            : format(" --recompute.granularity {}", name_of_choice(granularity));
    for (int64_t micro = batch.micro_batch; micro >= 1; micro = micro / 2) {
      if (batch.global_batch % micro != 0) continue;
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

void require_fit(const Config& config, const Plan& plan) {
  const size_t limit = memory_limit(config);
  const size_t need = plan.layout.world() > 1 ? bytes_with(config) : plan.memory_bytes();
  if (limit == 0 || need <= limit) return;
  std::string text =
      format("the run needs {} and may use {}{}:", as_bytes(static_cast<double>(need)),
             as_bytes(static_cast<double>(limit)),
             config.device.memory_gib > 0 ? " (device.memory_gib)" : "");
  std::vector<MemoryUse> uses = plan.memory;
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
  for (const MemoryUse& use : uses) {
    text += format("\n  {:<16} {:>12}", use.purpose, as_bytes(static_cast<double>(use.bytes)));
  }
  const std::vector<Remedy> remedies = find_remedies(config, limit);
  for (const Remedy& remedy : remedies) {
    text +=
        format("\nfits in {} with: {}", as_bytes(static_cast<double>(remedy.bytes)), remedy.flags);
  }
  if (remedies.empty()) {
    text += "\nneither smaller micro-batches nor recomputation make it fit: take a smaller model";
  }
  throw Error(ErrorKind::Device, text);
}

}  // namespace bev
