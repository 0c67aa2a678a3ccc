#include "bench/step_floor.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/integer.h"
#include "ops/attention.h"
#include "ops/matmul.h"

namespace bev {

namespace {

// Far more than any cache holds; larger models need not be walked as a whole.
constexpr int64_t kMostWalked = int64_t{1} << 28;

// The first elements of a long row, as a matrix.
Tensor front(const Tensor& memory, Shape shape) {
  return tensor_over(memory.data, memory.dtype, shape);
}

size_t size_of(StatePrecision precision) { return precision == StatePrecision::F32 ? 4 : 2; }

}  // namespace

std::vector<GemmShape> gemms_of(std::span<const OpCost> records) {
  std::vector<GemmShape> gemms;
  for (const OpCost& r : records) {
    if (r.op == "matmul")
      gemms.push_back({r.dims[0], r.dims[1], r.dims[2], r.ta, r.tb, r.accumulate, r.out});
  }
  return gemms;
}

Tensor StepFloor::Walk::take(Shape shape) {
  if (next + shape.elements() > memory.shape.elements()) next = 0;
  std::byte* data = memory.data;
  if (data != nullptr) data += static_cast<size_t>(next) * bev::size_of(memory.dtype);
  next += round_up(shape.elements(), 64);
  return tensor_over(data, memory.dtype, shape);
}

StepFloor::Extents StepFloor::extents_of(const std::vector<GemmShape>& gemms, int64_t micros) {
  Extents e;
  int64_t largest_weight = 0, largest_gradient = 0;
  for (const GemmShape& p : gemms) {
    const int64_t a = p.m * p.k, b = p.k * p.n, out = p.m * p.n;
    e.activation = std::max({e.activation, a, p.ta ? b : out});
    if (p.ta) {
      e.gradients += out;
      e.gradient = p.out;
      largest_gradient = std::max(largest_gradient, out);
    } else {
      e.weights += b;
      largest_weight = std::max(largest_weight, b);
    }
  }
  // A weight is read forwards and backwards, both once per micro-batch.
  e.weights = std::min(e.weights / (2 * micros), kMostWalked) + largest_weight;
  e.gradients = std::min(e.gradients / micros, kMostWalked) + largest_gradient;
  return e;
}

StepFloor::StepFloor(Device& device, const Config& config, std::vector<GemmShape> gemms)
    : gemms_(std::move(gemms)),
      model_(resolve_model(config)),
      batch_(resolve_batch(config)),
      dtype_(resolve_dtype(config)),
      window_(config.model.window),
      attends_(device.kind() == DeviceKind::Cuda),
      extents_(extents_of(gemms_, batch_.micros)),
      rig_(device, rig_sizes(device, [this](OpRig& dry_run) {
             place(dry_run);
             for (const GemmShape& p : gemms_) issue_gemm(dry_run.exec(), p);
             if (attends_) issue_attention(dry_run.exec());
           })) {
  place(rig_);
}

void StepFloor::place(OpRig& rig) {
  inputs_ = rig.make_varied({extents_.activation}, dtype_);
  outputs_ = rig.make_varied({extents_.activation}, dtype_);
  weights_ = {rig.make_varied({extents_.weights}, dtype_)};
  gradients_ = {rig.make_varied({extents_.gradients}, extents_.gradient)};
  if (!attends_) return;
  const int64_t tokens = batch_.tokens_per_micro();
  const auto heads = [&](int64_t count) {
    return rig.make_varied({tokens, count, model_.head_dim}, dtype_);
  };
  attention_ = {.q = heads(model_.heads),
                .k = heads(model_.kv_heads),
                .v = heads(model_.kv_heads),
                .out = heads(model_.heads),
                .dout = heads(model_.heads),
                .lse = rig.make_varied({batch_.micro_batch, model_.heads, batch_.sequence},
                                       accumulation_of(dtype_)),
                .dq = heads(model_.heads),
                .dk = heads(model_.kv_heads),
                .dv = heads(model_.kv_heads)};
}

void StepFloor::issue_gemm(Exec& ex, const GemmShape& p) {
  const Shape b_shape = p.tb ? Shape{p.n, p.k} : Shape{p.k, p.n};
  ops::matmul(ex, {.a = front(inputs_, p.ta ? Shape{p.k, p.m} : Shape{p.m, p.k}),
                   .b = p.ta ? front(outputs_, b_shape) : weights_.take(b_shape),
                   .ta = p.ta ? ops::Transpose::Yes : ops::Transpose::No,
                   .tb = p.tb ? ops::Transpose::Yes : ops::Transpose::No,
                   .out = p.ta ? gradients_.take({p.m, p.n}) : front(outputs_, {p.m, p.n}),
                   .accumulate = p.accumulate});
}

void StepFloor::issue_attention(Exec& ex) const {
  const AttentionOperands& a = attention_;
  const ops::AttentionInput input{.q = a.q,
                                  .k = a.k,
                                  .v = a.v,
                                  .sequences = batch_.micro_batch,
                                  .scale = 1 / std::sqrt(static_cast<double>(model_.head_dim)),
                                  .mask = {.causal = true, .window = window_}};
  ops::attention(ex, {input, a.out, a.lse});
  ops::attention_backward(ex, {input, a.dout, a.out, a.lse, a.dq, a.dk, a.dv});
}

double StepFloor::timed(const std::function<void()>& work) {
  rig_.exec().stream.synchronize();
  const double begin = seconds_now();
  work();
  rig_.exec().stream.synchronize();
  return seconds_now() - begin;
}

double StepFloor::time_gemms() {
  return timed([this] {
    for (const GemmShape& p : gemms_) issue_gemm(rig_.exec(), p);
  });
}

double StepFloor::time_attention() {
  if (!attends_) return 0;
  return timed([this] {
    const int64_t calls = model_.layers * batch_.micros;
    for (int64_t i = 0; i < calls; ++i) issue_attention(rig_.exec());
  });
}

double optimizer_bytes(const Config& config, int64_t parameters) {
  const DType dtype = resolve_dtype(config);
  const DType master = accumulation_of(dtype);
  const OptimConfig& o = config.optim;
  const size_t grad = dtype == master ? bev::size_of(master) : size_of(o.gradients);
  const size_t copy = dtype == master ? 0 : bev::size_of(dtype);  // is only written
  const size_t sum = bev::size_of(master);
  size_t bytes = copy;
  if (is_lamb(o.kind)) {
    // Two passes: weights and each state are read twice and written once.
    const bool has_noise = o.kind == OptimizerKind::MyLamb2;
    bytes += (has_noise ? 2 : 1) * grad + 3 * sum + 3 * (has_noise ? 3 : 2) * sum;
  } else if (o.kind == OptimizerKind::AdamW) {
    bytes += grad + 2 * sum;
    bytes += 2 * (dtype == master ? 2 * sum : size_of(o.first_moment) + size_of(o.second_moment));
  } else {
    bytes += grad + 2 * sum + (o.momentum > 0 ? 2 * sum : 0);
  }
  return static_cast<double>(bytes) * static_cast<double>(parameters);
}

}  // namespace bev
