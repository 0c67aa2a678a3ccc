#include "pipeline/rank_model.h"

#include <map>
#include <set>

#include "model/family/family.h"
#include "ops/make_device.h"

namespace bev {

namespace {

// The tables of a part.
std::vector<TableSpec*> tables_of(PartSpec& part) {
  if (auto* embedding = std::get_if<EmbeddingSpec>(&part.is)) {
    std::vector<TableSpec*> tables{&embedding->tokens};
    if (embedding->positions) tables.push_back(&*embedding->positions);
    if (embedding->types) tables.push_back(&*embedding->types);
    return tables;
  }
  if (auto* head = std::get_if<MaskedLmHeadSpec>(&part.is)) return {&head->logits.table};
  if (auto* head = std::get_if<LmHeadSpec>(&part.is)) return {&head->table};
  return {};
}

// Sets the holders of tables that parts on several pipeline ranks name.
ModelSpec with_holders(ModelSpec spec, const Config& config, const ParallelLayout& layout) {
  std::map<std::string, std::set<int>> holders;
  for (int stage = 0; stage < layout.stages(); ++stage) {
    const PartRange parts = parts_of(spec, stage_layers(config, layout, stage));
    for (size_t i = parts.first; i < parts.end; ++i)
      for (const TableSpec* table : tables_of(spec.parts[i]))
        holders[table->name].insert(stage % layout.pipeline);
  }
  for (PartSpec& part : spec.parts) {
    for (TableSpec* table : tables_of(part)) {
      const std::set<int>& ranks = holders.at(table->name);
      if (ranks.size() > 1) table->stages.assign(ranks.begin(), ranks.end());
    }
  }
  return spec;
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

RankModel::RankModel(const Config& c, Device& d, ProcessGroups& g, ShardRuleOf shard_rule)
    : config(c),
      device(d),
      groups(g),
      shape(resolve_model(c)),
      spec(with_holders(model_spec(c), c, g.layout())),
      params(d, g.layout(), g.rank(), resolve_dtype(c), shard_rule),
      param_gather(params, g),
      env{.borders = {.tensor = TensorRegion(g.over({Axis::Tensor}), g.layout().sequence),
                      .attention = attention}} {
  const ParallelLayout& layout = g.layout();
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const int stage = chunk * layout.pipeline + g.coordinate(Axis::Pipeline);
    stages.emplace_back(params, spec, parts_of(spec, stage_layers(c, layout, stage)));
  }
  params.allocate();
  env.flow.set_bucket_users(bucket_users(stages));
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

PartRange parts_of(const ModelSpec& spec, const StageLayers& layers) {
  std::vector<size_t> blocks;  // their parts
  for (size_t i = 0; i < spec.parts.size(); ++i)
    if (std::holds_alternative<BlockSpec>(spec.parts[i].is)) blocks.push_back(i);
  const auto begin = [&](int64_t block) {
    const auto index = static_cast<size_t>(block);
    if (index < blocks.size()) return blocks[index];
    return blocks.empty() ? spec.parts.size() : blocks.back() + 1;
  };
  return {layers.has_embedding ? 0 : begin(layers.first),
          layers.has_head ? spec.parts.size() : begin(layers.first + layers.count)};
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
