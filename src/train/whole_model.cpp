#include "train/whole_model.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "comm/phantom.h"
#include "ops/make_device.h"

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
  PhantomCommunicator world;
  Groups groups;
  PlacedModel model;
};

// The elements of the local tensor that its rank owns, into the whole one. Both in host memory.
void place(const Param& param, const std::vector<Piece>& owned, const std::byte* local,
           std::byte* whole) {
  const Shape &here = param.value.shape, &all = param.spec.shape;
  const auto columns = static_cast<size_t>(here.elements() / here[0]);
  const auto all_columns = static_cast<size_t>(all.elements() / all[0]);
  const size_t size = size_of(param.value.dtype);
  for (const Piece& piece : owned) {
    const auto extent = static_cast<size_t>(piece.extent);
    const auto from = static_cast<size_t>(piece.local_begin);
    const auto to = static_cast<size_t>(piece.logical_begin);
    if (piece.dim == 0) {
      std::copy_n(local + from * columns * size, extent * columns * size,
                  whole + to * all_columns * size);
      continue;
    }
    for (size_t row = 0; row < static_cast<size_t>(here[0]); ++row)
      std::copy_n(local + (row * columns + from) * size, extent * size,
                  whole + (row * all_columns + to) * size);
  }
}

}  // namespace

Config on_one_rank(Config config) {
  config.model.vocab_multiple *= config.parallel.tensor;
  config.parallel = {};
  return config;
}

std::unique_ptr<PlacedModel> gather_model(const Config& whole, PlacedModel& mine, Exec& ex) {
  Communicator& world = mine.groups.world();
  const auto owned = [](const PlacedModel& model, const Param& param) {
    return owned_pieces(param.spec, model.params.grid(), model.params.rank());
  };
  if (world.rank() != 0) {
    for (const Param* param : mine.params.distinct()) {
      mine.leases.need(ex, param->bucket);
      if (owned(mine, *param).empty()) continue;
      world.await(ex, world.send(ex, param->value, 0, Channel::Forward));
    }
    return nullptr;
  }
  auto result = std::make_unique<PlacedModel>(whole, mine.device);
  for (int rank = 0; rank < world.size(); ++rank) {
    const Imagined imagined(mine.config, rank);
    std::vector<std::byte> local, all;
    for (const Param* param : imagined.model.params.distinct()) {
      const std::vector<Piece> pieces = owned(imagined.model, *param);
      if (rank == 0) mine.leases.need(ex, param->bucket);
      if (pieces.empty()) continue;
      local.resize(bytes_of(param->value));
      if (rank == 0) {
        const Tensor value = mine.params.find(param->spec.name)->value;
        mine.device.download(value.data, local.data(), local.size());
      } else {
        world.recv(ex, tensor_over(local.data(), param->value.dtype, param->value.shape), rank,
                   Channel::Forward);
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
