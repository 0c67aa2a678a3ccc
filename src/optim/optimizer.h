// Gradients to parameters. State is kept in flat buffers laid out like the parameters, so an
// elementwise update is a few streaming passes over long ranges.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "optim/grad_buffer.h"
#include "parallel/process_groups.h"

namespace bev {

// The elements of one parameter that this rank updates, with the gap after the parameter.
struct UpdateRange : FlatRange {
  int64_t state;           // where it begins in flat states
  const FlatParam* place;  // of the parameter; of the first one in a merged run
  DType grad;

  const ParamSpec& spec() const { return place->param->spec; }
};

// Kept besides the parameters: a value for each element, in the order of the update ranges; or an
// f64 for each parameter, in the order of ParamStore::all().
struct OptimizerState {
  std::string_view name;  // "master", "adam.m", "adam.v", "sgd.momentum", "lamb.update_norm"
  Tensor flat;
  bool per_param = false;
};

// The memory that an update reads and writes: parameters, gradients, master weights, states.
class UpdateBuffers {
 public:
  // Both must outlive this.
  UpdateBuffers(ParamStore& params, const GradBuffer& grads);

  // Per parameter, in the flat order.
  const std::vector<UpdateRange>& ranges() const { return ranges_; }
  // Adjacent ranges of parameters that all decay or all do not, with gradients of one dtype,
  // merged: as a rule one run of matrices and one of vectors.
  const std::vector<UpdateRange>& runs() const { return runs_; }

  // A flat state for the elements that this rank updates, zero at first.
  Tensor make_state(StatePrecision precision, const char* purpose);

  Tensor param(const UpdateRange& r) const { return params_.value_range(r.begin, r.count); }
  ConstTensor grad(const UpdateRange& r) const { return grads_.range(r.begin, r.count); }
  static Tensor state(const Tensor& flat, const UpdateRange& r) {
    return slice(flat, 0, r.state, r.count);
  }
  // Absent if the parameters are their own master weights.
  Tensor master(const UpdateRange& r) const {
    return master_.present() ? state(master_, r) : master_;
  }
  const Tensor& master() const { return master_; }

 private:
  ParamStore& params_;
  const GradBuffer& grads_;
  std::vector<UpdateRange> ranges_, runs_;
  int64_t elements_ = 0;  // of a state
  std::vector<Buffer> buffers_;
  Tensor master_;
};

// An update rule with its states. The buffers must outlive it.
class UpdateMethod {
 public:
  virtual ~UpdateMethod() = default;
  virtual void step(Exec& ex, ConstTensor decision) = 0;
  // Without the master weights.
  virtual std::vector<OptimizerState> states() const = 0;
};
// `seed` draws the rounding of bf16 moments.
std::unique_ptr<UpdateMethod> make_adamw(const OptimConfig& config, UpdateBuffers& buffers,
                                         uint64_t seed);
std::unique_ptr<UpdateMethod> make_sgd(const OptimConfig& config, UpdateBuffers& buffers);
// LAMB and its variants. All ranks of a world construct theirs together.
std::unique_ptr<UpdateMethod> make_lamb(const OptimConfig& config, const ParamStore& params,
                                        UpdateBuffers& buffers, ProcessGroups& groups);

class Optimizer {
 public:
  // All must outlive this. All ranks of a world construct theirs together.
  Optimizer(const OptimConfig& config, ParamStore& params, const GradBuffer& grads,
            ProcessGroups& groups, uint64_t seed);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters as `decision` (ops/update_rule.h) says. If the shard group shards the
  // state, each rank updates its shards.
  void step(Exec& ex, ConstTensor decision) { method_->step(ex, decision); }

  // Copies the parameters into the master weights. Call it after setting parameters.
  void refresh_master(Exec& ex);

  std::vector<OptimizerState> states() const;
  const std::vector<UpdateRange>& ranges() const { return buffers_.ranges(); }

 private:
  UpdateBuffers buffers_;
  std::unique_ptr<UpdateMethod> method_;
};

}  // namespace bev
