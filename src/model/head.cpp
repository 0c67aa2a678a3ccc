#include "model/head.h"

#include <algorithm>

#include "base/check.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"

namespace bev {

namespace {

using ops::Transpose;

// Large enough that the head's matrix is read few times, small enough that the logits of a large
// vocabulary stay a small part of memory.
constexpr int64_t kHostChunk = 256, kGpuChunk = 8192;

double effective_smoothing(const Blueprint& b) {
  const LossConfig& loss = b.config.loss;
  if (loss.smoothing == Smoothing::Torch) return loss.label_smoothing;
  const double classes = static_cast<double>(b.shape.padded_vocab);
  return loss.label_smoothing * classes / std::max(classes - 1, 1.0);
}

}  // namespace

int64_t head_chunk(const Config& config) {
  if (config.loss.chunk > 0) return config.loss.chunk;
  return config.device.kind == DeviceKind::Cuda ? kGpuChunk : kHostChunk;
}

Head::Head(ParamStore& params, const Blueprint& b)
    : chunk_(head_chunk(b.config)),
      classes_(b.shape.padded_vocab),
      smoothing_(effective_smoothing(b)),
      z_loss_(b.config.loss.z_loss),
      tied_(b.model().tied ? params.find("embedding.tokens.weight") : nullptr),
      own_(b.model().tied ? nullptr
                          : &params.declare({.name = "head.weight",
                                             .shape = {b.shape.padded_vocab, b.shape.width},
                                             .cut = Cut{.dim = 0, .axis = Axis::Tensor},
                                             .init = init_input(b)})) {
  BEV_CHECK(tied_ != nullptr || own_ != nullptr, Internal, "a tied head needs an embedding");
}

void Head::logits(Exec& ex, ConstTensor x, Tensor logits) const {
  ops::matmul(ex, {.a = x, .b = weight().value, .tb = Transpose::Yes, .out = logits});
}

void Head::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor dx) {
  const int64_t tokens = x.rows();
  for (int64_t begin = 0; begin < tokens; begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, tokens - begin);
    const ConstTensor rows = slice(x, 0, begin, count);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const ConstTensor weights = slice(micro.weight, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, classes_}, x.dtype, "head.logits");
    const Tensor loss = ex.scratch.allocate({count}, accumulation_of(x.dtype), "head.loss");

    logits(ex, rows, chunk);
    // The rows hold the whole vocabulary, so that there are no statistics to combine.
    ops::cross_entropy(ex, {.logits = chunk,
                            .targets = targets,
                            .weight = weights,
                            .classes = classes_,
                            .smoothing = env.training ? smoothing_ : 0.0,
                            .z_loss = env.training ? z_loss_ : 0.0,
                            .grad_scale = env.grad_scale,
                            .loss_scale = env.loss_scale,
                            .loss = loss,
                            .dlogits = dx.present() ? chunk : Tensor{}});
    ops::weighted_sum(ex, {.x = loss, .weight = weights, .out = env.loss});
    if (!dx.present()) continue;
    ops::matmul(ex, {.a = chunk, .b = weight().value, .out = slice(dx, 0, begin, count)});
    weight_grad(ex, env, weight(),
                {.a = chunk, .b = rows, .ta = Transpose::Yes, .out = weight().grad});
  }
}

}  // namespace bev
