#include "pipeline/rank_model.h"

#include <map>
#include <set>

#include "base/check.h"
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
                      .attention = attention}} {
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

namespace {

// The first block of each stage of a segment: the first stage has `first` blocks and the last one
// `last`, if these are above 0; the others about the same number each.
std::vector<int64_t> first_blocks(int64_t count, int64_t stages, int64_t first, int64_t last) {
  const int64_t own_front = first > 0 ? 1 : 0, own_back = last > 0 ? 1 : 0;  // stages
  const int64_t even_stages = stages - own_front - own_back;
  std::vector<int64_t> begins{0};
  for (int64_t stage = 1; stage < stages; ++stage)
    begins.push_back(even_stages == 0
                         ? first
                         : first + (count - first - last) * (stage - own_front) / even_stages);
  return begins;
}

}  // namespace

std::vector<StageParts> split_stages(const ModelSpec& spec, const Config& config) {
  const int64_t stages = layout_of(config).stages();
  std::vector<Segment> segments = spec.segments;
  if (segments.empty()) segments = {{spec.parts.size(), stages}};
  std::vector<StageParts> all;
  int64_t block = 0;
  size_t part = 0;
  for (const Segment& segment : segments) {
    std::vector<size_t> blocks;  // their parts
    for (size_t i = part; i < segment.end; ++i)
      if (std::holds_alternative<BlockSpec>(spec.parts[i].is)) blocks.push_back(i);
    const auto count = std::ssize(blocks);
    const bool is_front = all.empty(), is_back = segment.end == spec.parts.size();
    std::vector<int64_t> begins =
        first_blocks(count, segment.stages, is_front ? config.parallel.first_layers : 0,
                     is_back ? config.parallel.last_layers : 0);
    begins.push_back(count);
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      const bool ends = i + 2 == begins.size();
      BEV_CHECK(ends || (begins[i] < begins[i + 1] && begins[i + 1] < count), Internal,
                "{} blocks for {} pipeline stages", count, segment.stages);
      const size_t end = ends ? segment.end : blocks[static_cast<size_t>(begins[i + 1])];
      all.push_back({.parts = {part, end},
                     .first_block = block + begins[i],
                     .blocks = begins[i + 1] - begins[i],
                     .is_first = all.empty(),
                     .is_last = end == spec.parts.size()});
      part = end;
    }
    block += count;
  }
  BEV_CHECK(std::ssize(all) == stages, Internal, "{} of {} pipeline stages", all.size(), stages);
  return all;
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
