#include "pipeline/rank_model.h"

#include <map>
#include <set>

#include "ops/make_device.h"

namespace bev {

namespace {

// The pipeline coordinates of the holders of tables that have several.
std::map<std::string, std::vector<int>> table_holders(const ModelSpec& spec,
                                                      const std::vector<StageParts>& stages,
                                                      int pipeline) {
  std::map<std::string, std::set<int>> holders;
  for (size_t stage = 0; stage < stages.size(); ++stage)
    for (size_t i = stages[stage].parts.first; i < stages[stage].parts.end; ++i)
      for (const TableSpec* table : tables_of(spec.parts[i]))
        holders[table->name].insert(static_cast<int>(stage) % pipeline);
  std::map<std::string, std::vector<int>> shared;
  for (const auto& [name, ranks] : holders)
    if (ranks.size() > 1) shared[name].assign(ranks.begin(), ranks.end());
  return shared;
}

// Parts of the stages that write gradients of each bucket.
std::vector<int64_t> bucket_users(const std::deque<Stage>& stages) {
  std::vector<int64_t> users;
  for (const Stage& stage : stages) {
    for (const int bucket : stage.grad_buckets()) {
      const auto index = static_cast<size_t>(bucket);
      if (users.size() <= index) users.resize(index + 1);
      ++users[index];
    }
  }
  return users;
}

}  // namespace

RankModel::RankModel(const Config& c, Device& d, ProcessGroups& g, const ModelOptions& options)
    : config(c),
      device(d),
      groups(g),
      shape(resolve_model(c)),
      spec(options.spec(c)),
      params(d, g.layout(), g.rank(), resolve_dtype(c), options.shard_rule),
      param_gather(params, g),
      env{.borders = {.tensor = TensorRegion(g.over({Axis::Tensor}), g.layout().sequence),
                      .attention = attention,
                      .batch = BatchRegion(g.over(shard_group(GridKind::Dense)))}} {
  const ParallelLayout& layout = g.layout();
  const std::vector<StageParts> all = split_stages(spec, c);
  params.set_holders(table_holders(spec, all, layout.pipeline));
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const int stage = chunk * layout.pipeline + g.coordinate(Axis::Pipeline);
    stages.emplace_back(params, spec, all[static_cast<size_t>(stage)].parts);
  }
  params.allocate();
  env.flow.set_bucket_users(bucket_users(stages));
  if (param_gather.gathers_on_demand()) env.param_gather = &param_gather;
}

RankModel::RankModel(const Config& c, Device& d, std::unique_ptr<SingleRankWorld> world)
    : RankModel(c, d, world->groups) {
  single_rank_world_ = std::move(world);
}

RankModel::RankModel(const Config& c, Device& d)
    : RankModel(c, d, std::make_unique<SingleRankWorld>()) {}

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
