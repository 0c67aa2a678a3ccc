// Runs the program of a pipeline rank on its stages: one loop, one switch. Owns the activation
// memory.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "device/device_graph.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/loss_normalizer.h"
#include "pipeline/rank_model.h"
#include "pipeline/schedule.h"

namespace bev {

// Key of the CUDA graph of one micro-batch: all that its work depends on and that differs between
// micro-batches. Equal keys: equal kernels with equal arguments.
struct MicroBatchKey {
  const std::byte* tokens;  // in one of the uploader's buffers
  const std::byte* document_start;
  int64_t sequences;
  std::array<int64_t, kMostTexts> lengths;
  bool is_first;  // of the step: gradients are begun instead of added to

  std::partial_ordering operator<=>(const MicroBatchKey&) const = default;
};

// The capacities of the arenas. A dry run on the null device finds them, and ignores them itself.
struct ArenaSizes {
  size_t keep = 0;   // of one slot
  size_t batch = 0;  // of one micro-batch's tokens
  size_t scratch = 0, recompute = 0;
};

class Executor {
 public:
  // `micros`: the largest number of micro-batches of a step. prepare() makes programs for fewer.
  // The model must outlive the executor.
  Executor(RankModel& model, int64_t micros, const ArenaSizes& sizes);

  // Builds and verifies the programs for steps of this many micro-batches.
  void prepare(int64_t micros) { programs_for(static_cast<size_t>(micros)); }

  // f64 [1]: multiplies all losses of train(). Absent: 1.
  void set_loss_scale(ConstTensor scale) { losses_.set_loss_scale(scale); }
  // Forward and backward of all micro-batches: accumulates parameter gradients and loss_sums().
  // The shard group counts the values of each loss first, so that the gradient is that of the mean.
  // Returns when the work is issued; the batches may then change.
  void train(std::span<const HostBatch> batches);
  // f64 [2 losses]: sum and count of the losses that this rank computed.
  Tensor loss_sums() const { return env_.losses.sums; }
  // Forward only, without dropout, of this rank's micro-batches; the sums over all ranks. Waits for
  // the result.
  LossSums evaluate(std::span<const HostBatch> batches);

  // Micro-batches that were launched as CUDA graphs.
  int64_t graph_launches() const { return graphs_.launches(); }

  ArenaSizes peaks() const;
  const Arena& keep() const { return slots_.front().keep; }
  // The program of this rank in a step of this many micro-batches.
  const Program& program_for(int64_t micros) {
    return programs_for(static_cast<size_t>(micros)).train;
  }
  const Arena& scratch() const { return scratch_; }

  // For everything else that runs on the device between programs.
  Exec exec();
  void count_into(CostLog* cost) { cost_ = cost; }
  void trace_into(Trace* trace) { trace_ = trace; }
  void set_wait_timer(WaitTimer* waits) { waits_ = waits; }

 private:
  // A micro-batch in flight in one of the stages.
  struct Slot {
    Arena keep;
    Stage::Saved saved;
    MicroBatch micro{};
    // Hidden states that enter and leave the stage, and their gradients, by state.
    std::vector<Tensor> input, output, doutput, dinput;
    std::vector<SendTicket> forward, backward;  // sends in flight
    std::vector<DeferredWeightGrad> deferred{};
  };
  struct Programs {
    Program train, evaluate;
  };
  const Programs& programs_for(size_t micros);
  size_t index_of(const Instr& instr) const;
  Exec exec_in(Slot& slot);
  Slot make_slot(size_t chunk, const ArenaSizes& sizes);
  // Memory for a hidden state that enters or leaves the stage.
  Tensor hidden(Slot& slot, const Stage& stage, int state, const char* name) const;
  // True if the work of a micro-batch may be captured in a CUDA graph: it has no communication, and
  // no trace, timer or cost log is set.
  bool can_capture(const Program& program) const;
  void begin_losses(const HostBatch& batch);
  void run_with_graphs(const Program& program, std::span<const HostBatch> batches);
  void run(const Program& program, std::span<const HostBatch> batches);
  void execute(const Instr& instr, std::span<const HostBatch> batches);
  void send(Slot& slot, const std::vector<int>& states, const std::vector<Tensor>& tensors, int to,
            Channel channel, std::vector<SendTicket>& tickets);
  void recv(Slot& slot, const std::vector<int>& states, const std::vector<Tensor>& tensors,
            int from, Channel channel);
  void wait_sends(Slot& slot, std::vector<SendTicket>& tickets);
  void empty(Slot& slot);

  RankModel& model_;
  Device& device_;
  ModelEnv& env_;
  Communicator& pipeline_;
  std::map<size_t, Programs> programs_;  // by micro-batches
  std::vector<size_t> first_slots_;      // by chunk, index into slots_
  std::vector<Slot> slots_;
  BatchUploader feed_;
  Arena scratch_, recompute_;
  LossNormalizer losses_;
  GraphCache<MicroBatchKey> graphs_;
  CostLog* cost_ = nullptr;
  Trace* trace_ = nullptr;
  WaitTimer* waits_ = nullptr;
};

}  // namespace bev
