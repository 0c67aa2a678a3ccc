// State passed to every module: parallel regions, mode of the pass, losses, parameters, gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "model/grad_flow.h"
#include "model/losses.h"
#include "model/model_spec.h"
#include "ops/elementwise.h"
#include "parallel/attention_core.h"
#include "parallel/batch_region.h"
#include "parallel/tensor_region.h"
#include "param/param_gather.h"

namespace bev {

// All communication of a module. A module does not depend on its device or on the parallel layout.
struct Borders {
  TensorRegion tensor;
  AttentionCore& attention;
  BatchRegion batch;
};

struct Pass {
  bool training = true;         // dropout is drawn
  int64_t classes = INT64_MAX;  // of the softmax over the vocabulary; ids beyond are padding
};

struct ModelEnv {
  Borders borders;
  Pass pass{};
  Losses losses{};
  ParamGather* param_gather = nullptr;  // null: values of parameters are always valid
  GradFlow flow{};

  // A pass is about to use these buckets in this order.
  void begin_gathers(const std::vector<int>& order) const {
    if (param_gather != nullptr) param_gather->set_order(order);
  }
  // Before a module reads values of the bucket's parameters.
  void gather(Exec& ex, int bucket) const {
    if (param_gather != nullptr) param_gather->gather(ex, bucket);
  }
  // The value of a parameter whose bucket was gathered, valid across gathers of other
  // buckets until the current arena scope ends.
  ConstTensor keep_value(Exec& ex, const Param& param) const {
    if (param_gather == nullptr) return param.value;
    const Tensor copy = ex.scratch.allocate(param.value.shape, param.value.dtype, "kept_value");
    ops::copy(ex, {.in = param.value, .out = copy});
    return copy;
  }

  // `rows`: of the micro-batch, one per token.
  ops::Dropout dropout(const DropoutSpec& spec, ConstTensor rows) const {
    return {.probability = pass.training ? spec.probability : 0.0,
            .key = spec.key,
            .rows = borders.tensor.local_rows(rows)};
  }
};

}  // namespace bev
