#include <cmath>

#include "model/family/family.h"

namespace bev {

ModelSpec biencoder_spec(const Config& c) {
  const ModelShape m = resolve_model(c);
  const bool shared = c.model.shared_towers;
  ModelSpec spec{.batch = query_context_batch(c.train.sequence, shared),
                 .hidden = {},
                 .losses = {{.name = "retrieval", .unit = LossUnit::Sequence}},
                 .recompute = recompute_spec(c.recompute)};
  PairHeadSpec head{.towers = {},
                    .width = m.width,
                    .projection = c.model.projection,
                    .scale = c.model.scale_scores ? 1 / std::sqrt(static_cast<double>(m.width)) : 1,
                    .pairs = compared_contexts(c),
                    .top_k = top_k_of(c.log),
                    .init = Init::normal(c.model.init_std)};
  if (shared) {
    head.towers = {""};
    spec.hidden = {{"texts", m.width}};
  } else {
    head.towers = {kQueryTower, kContextTower};
    spec.hidden = {{"query", m.width, kQueryText}, {"context", m.width, kContextText}};
  }
  for (int tower = 0; tower < static_cast<int>(head.towers.size()); ++tower)
    add_encoder(c, {.prefix = head.towers[static_cast<size_t>(tower)], .number = tower}, true,
                spec);
  for (const int64_t k : head.top_k)
    spec.losses.push_back({.name = "top" + std::to_string(k) + std::string(kAccuracyEnding),
                           .unit = LossUnit::Sequence,
                           .weight = 0});
  PartSpec pairs{0, head};
  if (!shared) pairs.context = 1;
  spec.parts.push_back(pairs);
  return spec;
}

bool is_bias_of_contexts(const ModelConfig& model, const std::string& parameter) {
  if (model.family != ModelFamily::Biencoder || model.shared_towers) return false;
  const bool pre_norm = model.norm_placement == NormPlacement::Pre;
  const std::string last_norm =
      pre_norm ? "final_norm" : "layers." + std::to_string(model.layers - 1) + ".norm2";
  return parameter == kContextTower + last_norm + ".bias" ||
         parameter == std::string(kContextTower) + "projection.bias";
}

}  // namespace bev
