#include "ops/operands.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"

namespace bev::ops {

namespace {

// Ops that only a forward pass calls.
constexpr std::array<std::string_view, 10> kForwardOps{
    "norm",      "residual_norm", "residual_add",        "attention",     "activate",
    "embedding", "softmax_stats", "merge_softmax_stats", "cross_entropy", "top_k_hits"};

}  // namespace

void Operands::begin_record() {
  record_ = cost_->records().size();
  cost_->add(op_, stream_.index());
  if (std::find(kForwardOps.begin(), kForwardOps.end(), op_) != kForwardOps.end())
    set_pass(Phase::Forward);
}

void Operands::set_pass(Phase pass) const {
  OpCost* const r = record();
  if (r == nullptr || r->phase == Phase::Update) return;
  r->recomputed = pass == Phase::Forward && r->phase != Phase::Forward;
  if (!r->recomputed) r->phase = pass;
}

void Operands::count(const ConstTensor& t, size_t times) const {
  OpCost* const r = record();
  if (r == nullptr) return;
  if (r->dims[0] == 0) {
    r->dims = shape_dims(t.shape);
    r->dtype = r->out = t.dtype;
  }
  r->bytes_moved += static_cast<double>(times * bytes_of(t));
}

void Operands::rank(const char* name, const ConstTensor& t, int expected) const {
  BEV_CHECK(t.shape.rank() == expected, Internal, "{}: {} {} should have {} dims", op_, name,
            to_string(t.shape), expected);
}

void Operands::floating(const char* name, const ConstTensor& t) const {
  BEV_CHECK(is_floating(t.dtype), Internal, "{}: {} {} is {}, not a floating type", op_, name,
            to_string(t.shape), name_of(t.dtype));
}

void Operands::check(const char* name, const ConstTensor& t, const Shape& shape,
                     DType dtype) const {
  BEV_CHECK(t.shape == shape && t.dtype == dtype, Internal, "{}: {} is {} {}, expected {} {}", op_,
            name, name_of(t.dtype), to_string(t.shape), name_of(dtype), to_string(shape));
  const int last = shape.rank() - 1;
  BEV_CHECK(last < 0 || shape[last] <= 1 || t.stride[static_cast<size_t>(last)] == 1, Internal,
            "{}: the last dim of {} {} has stride {}, expected 1", op_, name, to_string(t.shape),
            t.stride[static_cast<size_t>(last)]);
  BEV_CHECK(t.data != nullptr || !has_memory_ || shape.elements() == 0, Internal,
            "{}: {} {} has no memory", op_, name, to_string(t.shape));
}

void Operands::absent(const char* name, const ConstTensor& t) const {
  BEV_CHECK(!t.present(), Internal, "{}: {} {} is given but has no meaning here", op_, name,
            to_string(t.shape));
}

void Operands::contiguous(const char* name, const ConstTensor& t) const {
  BEV_CHECK(is_contiguous(t), Internal, "{}: {} {} has gaps", op_, name, to_string(t.shape));
}

void Operands::read(const char* name, const ConstTensor& t, const Shape& shape, DType dtype) const {
  check(name, t, shape, dtype);
  count(t, 1);
}

void Operands::write(const char* name, const Tensor& t, const Shape& shape, DType dtype) const {
  check(name, t, shape, dtype);
  count(t, 1);
}

void Operands::update(const char* name, const Tensor& t, const Shape& shape, DType dtype) const {
  check(name, t, shape, dtype);
  count(t, 2);
}

void Operands::count_bytes(size_t bytes) const {
  if (OpCost* const r = record()) r->bytes_moved += static_cast<double>(bytes);
}

void Operands::count_flops(double flops, double model_flops) const {
  OpCost* const r = record();
  if (r == nullptr) return;
  r->flops += flops;
  if (r->phase != Phase::Update) r->model_flops += model_flops;
}

void Operands::require(bool condition, const char* what) const {
  BEV_CHECK(condition, Internal, "{}: {}", op_, what);
}

int64_t leading_elements(const Shape& shape) {
  int64_t elements = 1;
  for (int dim = 0; dim + 1 < shape.rank(); ++dim) elements *= shape[dim];
  return elements;
}

}  // namespace bev::ops
