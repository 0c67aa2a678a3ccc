#include "optim/optimizer.h"

#include "ops/elementwise.h"

namespace bev {

UpdateBuffers::UpdateBuffers(ParamStore& params, const GradBuffer& grads)
    : params_(params), grads_(grads) {
  for (const FlatSection& section : params.sections()) {
    const FlatRange here = params.layout().zero > 0 ? section.shard() : FlatRange(section);
    for (const FlatParam& place : params.flat()) {
      const FlatRange both = intersection(here, {place.begin, place.count});
      if (both.count == 0) continue;
      ranges_.push_back({both, elements_, &place, grads.dtype_of(*place.param)});
      elements_ += both.count;
    }
  }
  for (const UpdateRange& range : ranges_) {
    const bool joins = !runs_.empty() && runs_.back().end() == range.begin &&
                       runs_.back().spec().decays() == range.spec().decays() &&
                       runs_.back().grad == range.grad;
    if (joins) {
      runs_.back().count += range.count;
    } else {
      runs_.push_back(range);
    }
  }
  if (params.dtype() != accumulation_of(params.dtype()))
    master_ = make_state(StatePrecision::F32, "master weights");
}

Tensor UpdateBuffers::make_state(StatePrecision precision, const char* purpose) {
  const DType dtype =
      precision == StatePrecision::Bf16 ? DType::bf16 : accumulation_of(params_.dtype());
  buffers_.emplace_back(params_.device(), static_cast<size_t>(elements_) * size_of(dtype), purpose);
  return tensor_over(buffers_.back().data(), dtype, {elements_});
}

Optimizer::Optimizer(const OptimConfig& config, ParamStore& params, const GradBuffer& grads,
                     ProcessGroups& groups, uint64_t seed)
    : buffers_(params, grads),
      method_(is_lamb(config.kind)                ? make_lamb(config, params, buffers_, groups)
              : config.kind == OptimizerKind::Sgd ? make_sgd(config, buffers_)
                                                  : make_adamw(config, buffers_, seed)) {}

std::vector<OptimizerState> Optimizer::states() const {
  std::vector<OptimizerState> all = method_->states();
  if (buffers_.master().present()) all.insert(all.begin(), {"master", buffers_.master()});
  return all;
}

void Optimizer::refresh_master(Exec& ex) {
  if (!buffers_.master().present()) return;
  for (const UpdateRange& r : buffers_.runs())
    ops::copy(ex, {.in = buffers_.param(r), .out = buffers_.master(r)});
}

}  // namespace bev
