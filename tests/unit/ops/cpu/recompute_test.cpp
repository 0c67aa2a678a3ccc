// What is recomputed, fused or spread over another number of threads has the same bits.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "device/exec.h"
#include "device/memory.h"
#include "ops/make_device.h"
#include "ops/op_table.h"

namespace bev::cpu {
namespace {

constexpr std::array<DType, 2> kTypes{DType::f32, DType::bf16};
constexpr std::array<Activation, 4> kPlain{Activation::GeluTanh, Activation::GeluErf,
                                           Activation::Relu, Activation::SquaredRelu};

// A cpu device and tensors on it.
class Bench {
 public:
  explicit Bench(int threads)
      : device_(make_device(DeviceKind::Cpu, threads)),
        none_(*device_, 0, "none"),
        exec_{*device_, device_->compute_stream(), none_, none_, none_} {}

  Exec& ex() { return exec_; }

  Tensor blank(Shape shape, DType dtype) {
    const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
    buffers_.emplace_back(*device_, bytes, "operand");
    return tensor_over(buffers_.back().data(), dtype, shape);
  }

  // The same numbers on every Bench.
  Tensor drawn(Shape shape, DType dtype, uint64_t key) {
    const Tensor t = blank(shape, dtype);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float value = normals_of(philox(key, 1, static_cast<uint64_t>(i)))[0];
      if (dtype == DType::f32) reinterpret_cast<float*>(t.data)[i] = value;
      if (dtype == DType::bf16) reinterpret_cast<bf16*>(t.data)[i] = bf16(value);
      if (dtype == DType::i64) reinterpret_cast<int64_t*>(t.data)[i] = 100 + i;
    }
    return t;
  }

 private:
  std::unique_ptr<Device> device_;
  Arena none_;
  Exec exec_;
  std::deque<Buffer> buffers_;
};

std::vector<std::byte> bytes(const ConstTensor& t) { return {t.data, t.data + bytes_of(t)}; }

// Fails when the fused op normalises the sum before it is rounded, or sums in another order.
TEST(CpuRecompute, ResidualNormEqualsItsParts) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : {7, 64, 100, 768}) {
      for (const double probability : {0.0, 0.2}) {
        Bench b(2);
        const Shape shape{50, width};
        const Tensor residual = b.drawn(shape, dtype, 1), delta = b.drawn(shape, dtype, 2);
        const Tensor weight = b.drawn({width}, dtype, 3), bias = b.drawn({width}, dtype, 4);
        const ops::Dropout dropout{.probability = probability,
                                   .key = 9,
                                   .rows = b.drawn({50}, DType::i64, 0),
                                   .column_begin = 3};
        const Tensor sum = b.blank(shape, dtype), y = b.blank(shape, dtype);
        const Tensor mean = b.blank({50}, DType::f32), rstd = b.blank({50}, DType::f32);
        ops::residual_norm(b.ex(), {.residual = residual,
                                    .delta = delta,
                                    .dropout = dropout,
                                    .sum = sum,
                                    .kind = NormKind::LayerNorm,
                                    .weight = weight,
                                    .bias = bias,
                                    .y = y,
                                    .mean = mean,
                                    .rstd = rstd});
        const Tensor sum2 = b.blank(shape, dtype), y2 = b.blank(shape, dtype);
        const Tensor mean2 = b.blank({50}, DType::f32), rstd2 = b.blank({50}, DType::f32);
        ops::residual_add(b.ex(), {residual, delta, dropout, sum2});
        ops::norm(b.ex(), {NormKind::LayerNorm, sum2, weight, bias, 1e-5, y2, mean2, rstd2});
        EXPECT_EQ(bytes(sum), bytes(sum2));
        EXPECT_EQ(bytes(y), bytes(y2));
        EXPECT_EQ(bytes(rstd), bytes(rstd2));
      }
    }
  }
}

// Fails when the product's epilogue activates the f32 sum and not the value it stores.
TEST(CpuRecompute, ActivationEqualsTheFusedOne) {
  for (const DType dtype : kTypes) {
    for (const Activation activation : kPlain) {
      Bench b(2);
      const Tensor x = b.drawn({37, 40}, dtype, 1), w = b.drawn({40, 53}, dtype, 2);
      const Tensor y = b.blank({37, 53}, dtype), pre = b.blank({37, 53}, dtype);
      ops::matmul(b.ex(), {.a = x,
                           .b = w,
                           .out = y,
                           .epilogue = ops::Epilogue::Activate,
                           .activation = activation,
                           .pre_activation = pre});
      const Tensor again = b.blank({37, 53}, dtype);
      ops::activate(b.ex(), {activation, pre, again});
      EXPECT_EQ(bytes(y), bytes(again)) << name_of_choice(activation);
    }
  }
}

// Fails when the slope of the epilogue is another formula than that of the op. (In bf16 the op sees
// a rounded gradient, the epilogue does not.)
TEST(CpuRecompute, ActivationGradientEqualsTheFusedOne) {
  for (const Activation activation : kPlain) {
    Bench b(2);
    const Tensor dy = b.drawn({37, 40}, DType::f32, 1), w = b.drawn({40, 53}, DType::f32, 2);
    const Tensor input = b.drawn({37, 53}, DType::f32, 3);
    const Tensor fused = b.blank({37, 53}, DType::f32), dx = b.blank({37, 53}, DType::f32);
    ops::matmul(b.ex(), {.a = dy,
                         .b = w,
                         .out = fused,
                         .epilogue = ops::Epilogue::ActivateBackward,
                         .activation = activation,
                         .activation_input = input});
    ops::matmul(b.ex(), {.a = dy, .b = w, .out = dx});
    ops::activate_backward(b.ex(), {activation, dx, input, dx});
    EXPECT_EQ(bytes(fused), bytes(dx)) << name_of_choice(activation);
  }
}

struct AttentionProblem {
  int64_t length, heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
  int64_t padding = 0;
  double probability = 0;
};

// out, lse, dq, dk and dv.
std::vector<std::vector<std::byte>> run_attention(const AttentionProblem& p, DType dtype,
                                                  int threads) {
  Bench b(threads);
  const Shape query{p.length, p.heads, p.head_dim}, key{p.length, p.kv_heads, p.head_dim};
  const Tensor q = b.drawn(query, dtype, 1), k = b.drawn(key, dtype, 2);
  const Tensor v = b.drawn(key, dtype, 3), dout = b.drawn(query, dtype, 4);
  const Tensor out = b.blank(query, dtype), lse = b.blank({1, p.heads, p.length}, DType::f32);
  const Tensor dq = b.drawn(query, dtype, 5), dk = b.drawn(key, dtype, 6);
  const Tensor dv = b.drawn(key, dtype, 7), lengths = b.blank({1}, DType::i32);
  *reinterpret_cast<int32_t*>(lengths.data) = static_cast<int32_t>(p.length - p.padding);
  const ops::AttentionMask mask{
      .causal = p.causal, .window = p.window, .query_lengths = lengths, .key_lengths = lengths};
  const ops::AttentionDropout dropout{
      .probability = p.probability, .key = 3, .rows = b.drawn({p.length}, DType::i64, 0)};
  const double scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  ops::attention(b.ex(), {{q, k, v, 1, scale, mask, dropout}, out, lse});
  ops::attention_backward(b.ex(), {{q, k, v, 1, scale, mask, dropout}, dout, out, lse, dq, dk, dv});
  return {bytes(out), bytes(lse), bytes(dq), bytes(dk), bytes(dv)};
}

// One thread takes a kv head in one pass, many threads take tiles in two, and the query tiles of a
// task differ. Fails when the passes add in another order, or dq is not started by the first tile.
TEST(CpuRecompute, AttentionDoesNotDependOnThreads) {
  const std::vector<AttentionProblem> problems{
      {.length = 330, .heads = 4, .kv_heads = 2, .head_dim = 64},
      {.length = 200, .heads = 2, .kv_heads = 1, .head_dim = 20, .probability = 0.2},
      {.length = 300, .heads = 2, .kv_heads = 2, .head_dim = 16, .window = 90},
      {.length = 200, .heads = 2, .kv_heads = 2, .head_dim = 48, .causal = false, .padding = 70},
      {.length = 150, .heads = 1, .kv_heads = 1, .head_dim = 9, .padding = 129},
      {.length = 70, .heads = 2, .kv_heads = 1, .head_dim = 512, .probability = 0.1},
  };
  for (const AttentionProblem& p : problems) {
    for (const DType dtype : kTypes) {
      const auto one = run_attention(p, dtype, 1);
      for (const int threads : {2, 5}) {
        EXPECT_EQ(one, run_attention(p, dtype, threads))
            << p.length << " " << p.head_dim << " " << threads;
      }
    }
  }
}

// Fails when a sum over rows is cut by thread.
TEST(CpuRecompute, NormGradientsDoNotDependOnThreads) {
  for (const int64_t width : {40, 768}) {
    std::vector<std::byte> first;
    for (const int threads : {1, 2, 3, 7}) {
      Bench b(threads);
      const Shape shape{1000, width};
      const Tensor dy = b.drawn(shape, DType::f32, 1), dweight = b.drawn({width}, DType::f32, 2);
      const Tensor dx_sums = b.drawn({width}, DType::f32, 6);
      ops::norm_backward(b.ex(), {.kind = NormKind::RmsNorm,
                                  .dy = dy,
                                  .x = b.drawn(shape, DType::f32, 3),
                                  .weight = b.drawn({width}, DType::f32, 4),
                                  .rstd = b.drawn({1000}, DType::f32, 5),
                                  .dx = dy,
                                  .dweight = dweight,
                                  .dx_sums = dx_sums});
      std::vector<std::byte> result = bytes(dweight);
      for (const Tensor& other : {dy, dx_sums}) {
        const std::vector<std::byte> more = bytes(other);
        result.insert(result.end(), more.begin(), more.end());
      }
      if (first.empty()) first = result;
      EXPECT_EQ(first, result) << threads;
    }
  }
}

}  // namespace
}  // namespace bev::cpu
