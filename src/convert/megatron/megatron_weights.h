// The weights of a checkpoint of Megatron-LM, put together from the shards of its ranks.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convert/array_patch.h"
#include "convert/megatron/megatron_model.h"
#include "convert/weight_source.h"

namespace bev {

class MegatronWeights final : public WeightSource {
 public:
  // Opens the shards that the model lists in `dir` and finds out which layers each of them has.
  // Data error.
  MegatronWeights(const std::filesystem::path& dir, const MegatronModel& model);

  DType dtype_of(const ParamSpec& spec) override;
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override;
  // Also that the copy of a tied embedding on the last stage is one.
  void check_all_used() override;

 private:
  struct Found {
    const ArrayFile* file = nullptr;
    const StoredTensor* array = nullptr;
  };
  // Of one parameter, by tensor rank.
  using Ranks = std::vector<Found>;

  // The stages in the order of the model: chunk by chunk, in each rank by rank.
  void add_stage(int64_t chunk, int64_t pipeline);
  void add(const std::string& ours, int64_t tensor, const Found& found);
  const Ranks& ranks_of(const ParamSpec& spec);
  std::vector<Patch> patches(const ParamSpec& spec);

  std::filesystem::path dir_;
  MegatronModel model_;
  std::deque<ArrayFile> files_;  // as in model.shards
  int64_t layers_ = 0;           // of the stages so far
  std::map<std::string, Ranks> arrays_;
  std::map<std::string, Ranks> copies_;  // on the last stage, of a tied embedding
  std::set<std::string> used_;
};

}  // namespace bev
