#include "optim/optimizer.h"

#include "ops/elementwise.h"
#include "ops/update.h"

namespace bev {

namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimConfig& config, ParamStore& params, const GradBuffer& grads)
      : Optimizer(params, grads), config_(config), moments_(make_state(2, "optimizer")) {}

  void step(Exec& ex, const StepInfo& info) override {
    for (const Range& r : ranges()) {
      ops::adamw(ex, {.param = param_range(r),
                      .master = master_range(r),
                      .m = range_of(moments_[0], r),
                      .v = range_of(moments_[1], r),
                      .grad = grad_range(r),
                      .control = info.control,
                      .lr = info.lr,
                      .beta1 = config_.beta1,
                      .beta2 = config_.beta2,
                      .eps = config_.eps,
                      .weight_decay = r.decay ? info.weight_decay : 0.0,
                      .step = info.step});
    }
  }

 private:
  OptimConfig config_;
  std::vector<Tensor> moments_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimConfig& config, ParamStore& params, const GradBuffer& grads)
      : Optimizer(params, grads), momentum_(config.momentum), state_(make_state(1, "optimizer")) {}

  void step(Exec& ex, const StepInfo& info) override {
    for (const Range& r : ranges()) {
      ops::sgd(ex, {.param = param_range(r),
                    .master = master_range(r),
                    .buffer = range_of(state_[0], r),
                    .grad = grad_range(r),
                    .control = info.control,
                    .lr = info.lr,
                    .momentum = momentum_,
                    .weight_decay = r.decay ? info.weight_decay : 0.0,
                    .step = info.step});
    }
  }

 private:
  double momentum_;
  std::vector<Tensor> state_;
};

}  // namespace

Optimizer::Optimizer(ParamStore& params, const GradBuffer& grads) : params_(params), grads_(grads) {
  const std::span<Param* const> all = params.distinct();
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t begin = params.flat_offset(*all[i]);
    const int64_t end =
        i + 1 < all.size() ? params.flat_offset(*all[i + 1]) : params.flat_elements();
    if (!ranges_.empty() && ranges_.back().decay == all[i]->spec.decay) {
      ranges_.back().count += end - begin;
    } else {
      ranges_.push_back({begin, end - begin, all[i]->spec.decay});
    }
  }
  std::byte* first = all.empty() ? nullptr : all.front()->value.data;
  values_ = tensor_over(first, params.dtype(), {params.flat_elements()});
  if (params.dtype() != accumulation_of(params.dtype())) {
    master_ = make_state(1, "master weights").front();
  }
}

std::vector<Tensor> Optimizer::make_state(int count, const char* purpose) {
  const DType dtype = accumulation_of(params_.dtype());
  const size_t bytes = static_cast<size_t>(params_.flat_elements()) * size_of(dtype);
  std::vector<Tensor> state;
  for (int i = 0; i < count; ++i) {
    buffers_.emplace_back(params_.device(), bytes, purpose);
    state.push_back(tensor_over(buffers_.back().data(), dtype, {params_.flat_elements()}));
  }
  return state;
}

Tensor Optimizer::range_of(const Tensor& flat, const Range& r) {
  return slice(flat, 0, r.begin, r.count);
}

Tensor Optimizer::param_range(const Range& r) const { return range_of(values_, r); }

Tensor Optimizer::master_range(const Range& r) const {
  return master_.present() ? range_of(master_, r) : Tensor{};
}

ConstTensor Optimizer::grad_range(const Range& r) const { return range_of(grads_.flat(), r); }

void Optimizer::refresh_master(Exec& ex) {
  if (master_.present()) ops::copy(ex, {.in = values_, .out = master_});
}

std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads) {
  if (config.kind == OptimizerKind::Sgd) return std::make_unique<Sgd>(config, params, grads);
  return std::make_unique<AdamW>(config, params, grads);
}

}  // namespace bev
