// Runs a program on a stage: one loop, one switch. Owns the activation memory.
#pragma once

#include <span>

#include "model/stage.h"
#include "pipeline/batch_feed.h"
#include "pipeline/schedule.h"

namespace bev {

// The capacities of the three arenas; found by a dry run on the null device, where they are
// ignored.
struct ArenaSizes {
  size_t keep = 0;   // of one slot
  size_t batch = 0;  // of one micro-batch's tokens
  size_t scratch = 0, recompute = 0;
};

// What a run of a program summed up, over this rank's tokens.
struct LossSum {
  double loss = 0;    // of weighted token losses
  double weight = 0;  // of weights
};

class Executor {
 public:
  // `micros`: how many micro-batches a step usually has; another number is possible and costs a new
  // program. The stage and env must outlive the executor.
  Executor(Device& device, Stage& stage, ModelEnv& env, int64_t micros, const ArenaSizes& sizes);

  // Forward and backward of all micro-batches: parameter gradients are added to, loss() is summed.
  // Returns when the work is issued; the batches may then change.
  void train(std::span<const HostBatch> batches, double grad_scale);
  ConstTensor loss() const { return env_.loss; }
  // Forward only, without dropout. Waits for the result.
  LossSum evaluate(std::span<const HostBatch> batches);

  // Inference of one batch into the caller's tensors.
  void infer(const HostBatch& batch, const Stage::Outputs& outputs);

  ArenaSizes peaks() const;
  const Arena& keep() const { return slots_.front().keep; }
  // Copies of the tokens' memory.
  size_t batch_copies() const { return feed_.copies(); }
  const Arena& scratch() const { return scratch_; }

  // For everything else that runs on the device between programs.
  Exec exec();
  void count_into(Cost* cost) { cost_ = cost; }
  void trace_into(Trace* trace) { trace_ = trace; }

 private:
  struct Slot {
    Arena keep;
    Stage::Saved saved;
    MicroBatch micro;
  };
  Exec exec_in(Slot& slot);
  void make_programs(size_t micros);
  void run(const Program& program, std::span<const HostBatch> batches);

  Device& device_;
  Stage& stage_;
  ModelEnv& env_;
  Program train_program_, evaluate_program_;
  size_t micros_;  // of the two programs
  std::vector<Slot> slots_;
  BatchFeed feed_;
  Arena scratch_, recompute_;
  Buffer loss_;
  Cost* cost_ = nullptr;
  Trace* trace_ = nullptr;
};

}  // namespace bev
