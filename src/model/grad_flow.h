// Gradients in a backward pass: between modules, into weights, and to the reducer.
#pragma once

#include <variant>
#include <vector>

#include "base/check.h"
#include "ops/matmul.h"
#include "param/grad_sink.h"
#include "param/param_store.h"

namespace bev {

// The gradient of a module's output.
struct Gradient {
  ConstTensor values;
  // The producer has added the sums of the values over tokens to the bias gradient of the layer
  // that wrote this output (Block::output_bias_grad).
  bool summed = false;
};

// Where a module writes the gradient of its input.
struct GradientTarget {
  Tensor values;
  Tensor sums{};  // [width], optional: the sums of the values over tokens are added
};

// A GEMM that computes a weight gradient, or adds to it.
struct GemmGrad {
  Param* weight;
  ops::Matmul gemm;

  void compute(Exec& ex) {
    gemm.accumulate = weight->accumulate();
    ops::matmul(ex, gemm);
  }
};

// A weight gradient whose arguments are plain data: a schedule may run it later.
using DeferredWeightGrad = std::variant<GemmGrad>;

inline void compute(Exec& ex, DeferredWeightGrad& grad) {
  std::visit([&](auto& g) { g.compute(ex); }, grad);
}

class GradFlow {
 public:
  // `sink`: notified of buckets; null: none. `users`: parts of the local stages that write
  // gradients of a bucket, by bucket.
  void observe(GradSink* sink) { sink_ = sink; }
  void set_bucket_users(std::vector<int64_t> users) { users_ = std::move(users); }
  // Before the first micro-batch of a step.
  void begin_step(int64_t micros) {
    left_ = users_;
    for (int64_t& left : left_) left *= micros;
  }

  // Weight gradients go into this list from now on; null: they are computed at once.
  void defer_into(std::vector<DeferredWeightGrad>* list) { deferred_ = list; }
  bool defers() const { return deferred_ != nullptr; }

  void weight_grad(Exec& ex, DeferredWeightGrad grad) const {
    if (deferred_ != nullptr) {
      deferred_->push_back(grad);
    } else {
      compute(ex, grad);
    }
  }
  // The arena for operands of weight gradients.
  Arena& operands(Exec& ex) const { return defers() ? ex.keep : ex.scratch; }

  // True if buckets share staging memory: a bucket must be reduced before the next one starts.
  bool streams_buckets() const { return sink_ != nullptr && sink_->streams_buckets(); }
  // A part starts to write gradients of the bucket in this micro-batch, and ends.
  void begin_bucket(Exec& ex, int bucket) const {
    if (sink_ != nullptr) sink_->begin_bucket_grads(ex, bucket);
  }
  void end_bucket(Exec& ex, int bucket) {
    if (sink_ == nullptr) return;
    const int64_t left = --left_[static_cast<size_t>(bucket)];
    // Deferred gradients are added to the bucket later.
    sink_->end_bucket_grads(ex, bucket, left == 0 && !defers());
  }

 private:
  GradSink* sink_ = nullptr;
  std::vector<int64_t> users_, left_;  // left_: end_bucket() calls of this step
  std::vector<DeferredWeightGrad>* deferred_ = nullptr;
};

}  // namespace bev
