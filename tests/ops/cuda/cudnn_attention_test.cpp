// cuDNN's attention: that it serves what it should, and agrees with our own kernels, which other
// tests compare with the reference.
#include "ops/cuda/attention/cudnn_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>

#include "base/philox.h"
#include "ops/attention.h"
#include "ops/cuda/gpu.h"
#include "ops/elementwise.h"
#include "ops/harness.h"
#include "support/tolerance.h"

namespace bev::test {
namespace {

struct CudnnCase {
  int64_t sequences, length, heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
  DType dtype = DType::bf16;
  int64_t keys = 0;  // of other tokens, if there is a number
  bool biased = false;
};

// One forward and one backward on a device of its own. Queries, keys and values lie side by side in
// one tensor, as the model has them, and so do their gradients.
class Bench {
 public:
  explicit Bench(bool deterministic)
      : device_(make_device(
            {.kind = DeviceKind::Cuda, .deterministic = deterministic, .cache = "off"})),
        none_(*device_, 0, "none"),
        scratch_(*device_, size_t{64} << 20, "scratch"),
        exec_{*device_, device_->compute_stream(), none_, scratch_, none_, nullptr} {
    device_->dispatch().enable();
  }

  // Empty when cuDNN is here.
  const std::string& why_no_cudnn() const {
    return static_cast<const cuda::Gpu&>(*device_).why_no_cudnn();
  }
  const DispatchLog& log() const { return device_->dispatch(); }

  struct Results {
    std::vector<float> out, lse, gradients, key_gradients, dbias;
  };

  Results run(const CudnnCase& c) {
    const int64_t tokens = c.sequences * c.length,
                  columns = (c.heads + 2 * c.kv_heads) * c.head_dim;
    const int64_t keys = c.keys > 0 ? c.keys : c.length;
    const Tensor qkv = drawn({tokens, columns}, c.dtype, 1), dqkv = zeros(qkv.shape, c.dtype);
    const Shape key_rows{c.sequences * keys, columns};
    const Tensor keys_of = c.keys > 0 ? drawn(key_rows, c.dtype, 3) : qkv;
    const Tensor dkeys_of = c.keys > 0 ? zeros(key_rows, c.dtype) : dqkv;
    const Shape pairs{c.heads, c.length, keys};
    Tensor bias, dbias;
    if (c.biased) {
      bias = drawn(pairs, c.dtype, 4);
      dbias = zeros(pairs, DType::f32);
    }
    const Shape shape{tokens, c.heads, c.head_dim};
    const Tensor out = blank(shape, c.dtype), dout = drawn(shape, c.dtype, 2);
    const Tensor lse = blank({c.sequences, c.heads, c.length}, DType::f32);
    const auto part = [&](const Tensor& t, int64_t first, int64_t heads) {
      return split_last(slice(t, 1, first * c.head_dim, heads * c.head_dim), c.head_dim);
    };
    const auto q = [&](const Tensor& t) { return part(t, 0, c.heads); };
    const auto k = [&](const Tensor& t) { return part(t, c.heads, c.kv_heads); };
    const auto v = [&](const Tensor& t) { return part(t, c.heads + c.kv_heads, c.kv_heads); };
    const ops::AttentionMask mask{.causal = c.causal, .window = c.window};
    const double scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
    const ops::AttentionInput input{.q = q(qkv),
                                    .k = k(keys_of),
                                    .v = v(keys_of),
                                    .sequences = c.sequences,
                                    .scale = scale,
                                    .mask = mask,
                                    .bias = bias};
    ops::attention(exec_, {input, out, lse});
    ops::attention_backward(exec_,
                            {input, dout, out, lse, q(dqkv), k(dkeys_of), v(dkeys_of), dbias});
    return {values(out), values(lse), values(dqkv), values(dkeys_of),
            c.biased ? values(dbias) : std::vector<float>{}};
  }

 private:
  Tensor blank(const Shape& shape, DType dtype) {
    const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
    buffers_.emplace_back(*device_, bytes, "operand");
    return tensor_over(buffers_.back().data(), dtype, shape);
  }

  Tensor zeros(const Shape& shape, DType dtype) {
    const Tensor t = blank(shape, dtype);
    ops::fill(exec_, {.out = t, .value = 0});
    return t;
  }

  Tensor drawn(const Shape& shape, DType dtype, uint64_t key) {
    const Tensor t = blank(shape, dtype);
    std::vector<uint16_t> words(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < words.size(); ++i) {
      const float value = normals_of(philox(key, 1, i))[0];
      words[i] = dtype == DType::bf16 ? std::bit_cast<uint16_t>(bf16(value))
                                      : std::bit_cast<uint16_t>(f16(value));
    }
    device_->upload(words.data(), t.data, bytes_of(t));
    return t;
  }

  std::vector<float> values(const Tensor& t) {
    const auto count = static_cast<size_t>(t.shape.elements());
    std::vector<float> result(count);
    if (t.dtype == DType::f32) {
      device_->download(t.data, result.data(), bytes_of(t));
      return result;
    }
    std::vector<uint16_t> words(count);
    device_->download(t.data, words.data(), bytes_of(t));
    for (size_t i = 0; i < count; ++i) {
      result[i] = t.dtype == DType::bf16 ? static_cast<float>(std::bit_cast<bf16>(words[i]))
                                         : static_cast<float>(std::bit_cast<f16>(words[i]));
    }
    return result;
  }

  std::unique_ptr<Device> device_;
  Arena none_, scratch_;
  Exec exec_;
  std::deque<Buffer> buffers_;
};

void expect_near(const char* what, const std::vector<float>& expected,
                 const std::vector<float>& found, double relative) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double error = std::abs(static_cast<double>(expected[i]) - static_cast<double>(found[i]));
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  EXPECT_LE(worst, relative * largest) << what;
}

// Fails when a layout, a mask, the scale or the meaning of lse is stated wrongly to cuDNN, or when
// a plan that should fit its workspace is refused.
TEST(CudnnAttention, CudaServesAndAgreesWithOwnKernels) {
  if (no_gpu()) return;
  const std::vector<CudnnCase> cases{
      {.sequences = 2, .length = 256, .heads = 4, .kv_heads = 4, .head_dim = 64},
      {.sequences = 3, .length = 200, .heads = 4, .kv_heads = 2, .head_dim = 64},
      {.sequences = 1, .length = 1024, .heads = 2, .kv_heads = 2, .head_dim = 128},
      {.sequences = 2, .length = 256, .heads = 2, .kv_heads = 2, .head_dim = 64, .causal = false},
      {.sequences = 2, .length = 384, .heads = 2, .kv_heads = 1, .head_dim = 64, .window = 100},
      {.sequences = 2,
       .length = 256,
       .heads = 2,
       .kv_heads = 2,
       .head_dim = 64,
       .dtype = DType::f16},
      // T5: self attention of an encoder and a decoder, cross attention.
      {.sequences = 3,
       .length = 256,
       .heads = 4,
       .kv_heads = 4,
       .head_dim = 64,
       .causal = false,
       .biased = true},
      {.sequences = 2, .length = 200, .heads = 4, .kv_heads = 4, .head_dim = 64, .biased = true},
      {.sequences = 2,
       .length = 128,
       .heads = 2,
       .kv_heads = 2,
       .head_dim = 64,
       .causal = false,
       .dtype = DType::f16,
       .biased = true},
      {.sequences = 3,
       .length = 120,
       .heads = 4,
       .kv_heads = 4,
       .head_dim = 64,
       .causal = false,
       .keys = 512},
      {.sequences = 3,
       .length = 256,
       .heads = 4,
       .kv_heads = 2,
       .head_dim = 64,
       .causal = false,
       .keys = 72,
       .biased = true},
  };
  for (const CudnnCase& c : cases) {
    SCOPED_TRACE(
        label("sequences={} length={} keys={} heads={}/{} head_dim={} causal={} window={} "
              "bias={} {}",
              c.sequences, c.length, c.keys, c.heads, c.kv_heads, c.head_dim, c.causal, c.window,
              c.biased, name_of(c.dtype)));
    Bench cudnn(false), own(true);
    if (!cudnn.why_no_cudnn().empty()) GTEST_SKIP() << cudnn.why_no_cudnn();
    const Bench::Results expected = own.run(c), found = cudnn.run(c);
    ASSERT_EQ(cudnn.log().choices().size(), 2u);
    for (const DispatchLog::Choice& choice : cudnn.log().choices()) {
      EXPECT_TRUE(choice.chosen.starts_with("cuDNN")) << choice.op << ": " << choice.refused;
    }
    for (const DispatchLog::Choice& choice : own.log().choices()) {
      EXPECT_FALSE(choice.chosen.starts_with("cuDNN")) << choice.op;
    }
    // Two computations, each of which stores what the other reads once or twice.
    expect_near("out", expected.out, found.out, tolerance(c.dtype, c.length, 4));
    expect_near("lse", expected.lse, found.lse, tolerance(DType::f32, c.length * c.head_dim, 4));
    const double bound = tolerance(c.dtype, c.length * c.head_dim, 4);
    expect_near("gradients", expected.gradients, found.gradients, bound);
    expect_near("key gradients", expected.key_gradients, found.key_gradients, bound);
    expect_near("dbias", expected.dbias, found.dbias, bound);
  }
}

}  // namespace
}  // namespace bev::test
