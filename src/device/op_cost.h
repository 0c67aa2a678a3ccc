// Costs as records: one per op and collective. A total is a fold over them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace bev {

// The part of an optimizer step. Update: everything outside the pipeline's program.
enum class Phase : uint8_t { Forward, BackwardInput, BackwardWeight, Update };

// Written by the checked front of every op and collective, whatever the device.
struct OpCost {
  std::string_view op{};  // a name of ops/op_list.inc, or a function of Communicator
  // matmul: m, n, k. attention: sequences, queries of each, heads, head_dim. Others: shape_dims()
  // of the first operand.
  std::array<int64_t, 4> dims{};
  DType dtype{}, out{};                             // of the first operand; matmul: of the result
  bool ta = false, tb = false, accumulate = false;  // matmul
  // A forward op within a backward instruction. Collectives: always false.
  bool recomputed = false;
  Phase phase = Phase::Update;
  uint8_t stream = 0;      // Stream::index()
  uint16_t group = 0;      // Communicator::label(); 0: no collective, or no label
  int16_t stage = -1;      // of the pipeline; -1: none
  double flops = 0;        // of GEMMs and attention, as executed
  double model_flops = 0;  // by the rule of docs/performance.md
  double bytes_moved = 0;  // through device memory
  double bytes_sent = 0;   // to other ranks
};

// The extents of a shape. Those of five dimensions: the first two multiplied.
std::array<int64_t, 4> shape_dims(const Shape& shape);

struct Cost {
  double flops = 0;
  double model_flops = 0;  // of records that are not recomputed
  double bytes_moved = 0;
  double bytes_sent = 0;
};
Cost total_of(std::span<const OpCost> records);

// Collects the records of a run. Grows with them: not for steps that must not allocate.
class CostLog {
 public:
  // Phase and stage of the records that follow.
  void set_place(Phase phase, int stage) {
    phase_ = phase;
    stage_ = static_cast<int16_t>(stage);
  }
  // Valid until the next record is added; its index is records().size() - 1.
  OpCost& add(std::string_view op, int stream);
  OpCost& operator[](size_t index) { return records_[index]; }

  std::span<const OpCost> records() const { return records_; }
  void clear() { records_.clear(); }

 private:
  Phase phase_ = Phase::Update;
  int16_t stage_ = -1;
  std::vector<OpCost> records_;
};

}  // namespace bev
