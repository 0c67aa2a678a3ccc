// The time no trainer on these GEMMs can beat: the GEMMs of one step alone, on a GPU
// its attention alone too, and the optimizer's bytes at the measured bandwidth.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "bench/measure.h"
#include "config/config.h"
#include "config/resolve.h"

namespace bev {

struct Floor {
  double gemms = 0, attention = 0, optimizer = 0;  // seconds
  double total() const { return gemms + attention + optimizer; }
};

// The shape of one GEMM: op(a) [m, k] times op(b) [k, n].
struct GemmShape {
  int64_t m, n, k;
  bool ta, tb, accumulate;
  DType out;  // what it is stored in
};
std::vector<GemmShape> gemms_of(std::span<const OpCost> records);

// As in training, weights and weight gradients are walked through memory of their real size, while
// activations stay where they are.
class StepFloor {
 public:
  // `gemms`: those of one step.
  StepFloor(Device& device, const Config& config, std::vector<GemmShape> gemms);

  // Issues everything once and waits for it: seconds. Attention is timed on GPUs only, and 0
  // elsewhere.
  double time_gemms();
  double time_attention();

 private:
  // A stretch of memory from which tensors are taken in turn, again and again.
  struct Walk {
    Tensor memory{};
    int64_t next = 0;
    Tensor take(Shape shape);
  };
  struct Extents {
    int64_t activation = 0, weights = 0, gradients = 0;  // elements
    DType gradient = DType::f32;
  };
  struct AttentionOperands {
    Tensor q, k, v, out, dout, lse, dq, dk, dv;
  };
  static Extents extents_of(const std::vector<GemmShape>& gemms, int64_t micros);
  // Makes the operands in a rig.
  void place(OpRig& rig);
  void issue_gemm(Exec& ex, const GemmShape& p);
  void issue_attention(Exec& ex) const;
  double timed(const std::function<void()>& work);

  std::vector<GemmShape> gemms_;
  ModelShape model_;
  BatchShape batch_;
  DType dtype_;
  int64_t window_;
  bool attends_;
  Extents extents_;
  Tensor inputs_{}, outputs_{};
  Walk weights_{}, gradients_{};
  AttentionOperands attention_{};
  OpRig rig_;
};

// Bytes that one update of all parameters reads and writes.
double optimizer_bytes(const Config& config, int64_t parameters);

}  // namespace bev
