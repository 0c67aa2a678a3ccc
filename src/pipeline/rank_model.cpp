#include "pipeline/rank_model.h"

#include "ops/make_device.h"

namespace bev {

RankModel::RankModel(const Config& c, Device& d, ProcessGroups& g)
    : config(c),
      device(d),
      groups(g),
      blueprint{c, resolve_model(c)},
      params(d, g.layout(), g.rank(), resolve_dtype(c)),
      param_gather(params, g),
      env{.tensor = TensorRegion(g.over({Axis::Tensor}), g.layout().sequence),
          .attention = attention} {
  const ParallelLayout& layout = g.layout();
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const int stage = chunk * layout.pipeline + g.coordinate(Axis::Pipeline);
    stages.emplace_back(params, blueprint, stage_layers(c, layout, stage));
  }
  params.allocate();
  if (param_gather.gathers_on_demand()) env.param_gather = &param_gather;
}

RankModel::RankModel(const Config& c, Device& d, std::unique_ptr<SingleRankWorld> alone)
    : RankModel(c, d, alone->groups) {
  alone_ = std::move(alone);
}

RankModel::RankModel(const Config& c, Device& d)
    : RankModel(c, d, std::make_unique<SingleRankWorld>()) {}

StageLayers stage_layers(const Config& config, const ParallelLayout& layout, int stage) {
  const ParallelConfig& p = config.parallel;
  const int64_t stages = layout.stages(), last = stages - 1;
  const bool is_first = stage == 0, is_last = stage == last;
  const int64_t given_stages = (p.first_layers > 0 ? 1 : 0) + (p.last_layers > 0 ? 1 : 0);
  const int64_t shared_stages = stages - given_stages;
  const int64_t shared_layers = config.model.layers - p.first_layers - p.last_layers;
  // Layers before stage s among those that share evenly.
  const auto before = [&](int64_t s) {
    const int64_t at = s - (p.first_layers > 0 && s > 0 ? 1 : 0);
    return shared_stages > 0 ? shared_layers * at / shared_stages : 0;
  };
  const int64_t first = is_first ? 0 : p.first_layers + before(stage);
  const int64_t end = is_last ? config.model.layers : p.first_layers + before(stage + 1);
  const bool own_end = is_first && p.first_layers > 0 && !is_last;
  return {.first = first,
          .count = (own_end ? p.first_layers : end) - first,
          .has_embedding = is_first,
          .has_head = is_last};
}

std::vector<ParamSpec> model_parameters(const Config& config) {
  Config anywhere = config;
  anywhere.device = {.kind = DeviceKind::Cpu};
  const std::unique_ptr<Device> device = make_null_device(anywhere.device);
  const RankModel model(anywhere, *device);
  std::vector<ParamSpec> specs;
  for (const Param* param : model.params.all()) specs.push_back(param->spec);
  return specs;
}

}  // namespace bev
