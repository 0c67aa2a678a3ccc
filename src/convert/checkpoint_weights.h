// The weights in a checkpoint of ours, whatever layout wrote it. What an optimizer keeps is left
// alone.
#pragma once

#include <set>
#include <string>

#include "checkpoint/checkpoint_reader.h"
#include "convert/weight_source.h"

namespace bev {

class CheckpointWeights final : public WeightSource {
 public:
  // `vocab` rows of a vocabulary must be there; it may be padded to any number. With
  // `prefers_masters`, the more exact copy that an optimizer keeps of a weight is read where there
  // is one. REQUIRES: the checkpoint outlives this.
  CheckpointWeights(const StoredCheckpoint& stored, int64_t vocab, bool prefers_masters = false)
      : stored_(stored), vocab_(vocab), prefers_masters_(prefers_masters) {}

  DType dtype_of(const ParamSpec& spec) override;
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override;
  void check_all_used() override;

 private:
  const StoredCheckpoint::Logical& find(const ParamSpec& spec);

  const StoredCheckpoint& stored_;
  int64_t vocab_;
  bool prefers_masters_;
  std::set<std::string> used_;
};

}  // namespace bev
