#include "train/gather_model.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "comm/planning_communicator.h"
#include "ops/make_device.h"
#include "param/param_spec.h"

namespace bev {

namespace {

// What `rank` holds, without memory.
struct Imagined {
  Imagined(const Config& config, int rank)
      : device(make_null_device(config.device)),
        world(rank, layout_of(config).world()),
        groups(layout_of(config), world),
        model(config, *device, groups) {}

  std::unique_ptr<Device> device;
  PlanningCommunicator world;
  ProcessGroups groups;
  RankModel model;
};

// The elements of the local tensor that its rank owns, into the whole one. Both in host memory.
void place(const Param& param, const std::vector<Piece>& owned, const std::byte* local,
           std::byte* whole) {
  const size_t size = size_of(param.value.dtype);
  visit_runs(
      owned, param.value.shape, param.spec.shape, [&](int64_t from, int64_t to, int64_t count) {
        std::copy_n(local + static_cast<size_t>(from) * size, static_cast<size_t>(count) * size,
                    whole + static_cast<size_t>(to) * size);
      });
}

}  // namespace

Config single_rank_config(Config config) {
  config.model.vocab_multiple *= config.parallel.tensor;
  config.parallel = {};
  return config;
}

std::unique_ptr<RankModel> gather_model(const Config& whole, RankModel& mine, Exec& ex) {
  Communicator& world = mine.groups.world();
  const auto owned = [](const RankModel& model, const Param& param) {
    const ParamStore& params = model.params;
    if (params.shard_index(param.spec.place.grid) != 0) return std::vector<Piece>{};
    return owned_pieces(param.spec, params.layout(), params.rank());
  };
  if (world.rank() != 0) {
    for (const Param* param : mine.params.all()) {
      mine.param_gather.gather(ex, param->bucket);
      if (owned(mine, *param).empty()) continue;
      world.wait_send(ex, world.send(ex, param->value, 0, Channel::Forward));
    }
    return nullptr;
  }
  auto result = std::make_unique<RankModel>(whole, mine.device);
  for (int rank = 0; rank < world.size(); ++rank) {
    const Imagined imagined(mine.config, rank);
    std::vector<std::byte> local, all;
    for (const Param* param : imagined.model.params.all()) {
      const std::vector<Piece> pieces = owned(imagined.model, *param);
      if (rank == 0) mine.param_gather.gather(ex, param->bucket);
      if (pieces.empty()) continue;
      local.resize(bytes_of(param->value));
      if (rank == 0) {
        const Tensor value = mine.params.find(param->spec.name)->value;
        mine.device.download(value.data, local.data(), local.size());
      } else {
        const Buffer received(mine.device, local.size(), "a parameter of another rank");
        world.recv(ex, tensor_over(received.data(), param->value.dtype, param->value.shape), rank,
                   Channel::Forward);
        mine.device.download(received.data(), local.data(), local.size());
      }
      const Tensor target = result->params.find(param->spec.name)->value;
      all.resize(bytes_of(target));
      mine.device.download(target.data, all.data(), all.size());
      place(*param, pieces, local.data(), all.data());
      mine.device.upload(all.data(), target.data, all.size());
    }
  }
  return result;
}

}  // namespace bev
