// Every test names the fault that makes it fail.
#include "ops/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/philox.h"
#include "device/device.h"
#include "ops/elementwise.h"
#include "ops/harness.h"
#include "support/temporary_directory.h"

namespace bev::test {
namespace {

using ops::Epilogue;
using ops::Transpose;

struct MatmulCase {
  int64_t m, n, k;
  Transpose ta = Transpose::No, tb = Transpose::No;
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::GeluTanh;
  bool accumulate = false;
  bool addend = false;
  bool keeps_argument = false;
  bool dbias = false;
  Element out = Element::Value;

  Shape a_shape() const { return ta == Transpose::No ? Shape{m, k} : Shape{k, m}; }
  Shape b_shape() const { return tb == Transpose::No ? Shape{k, n} : Shape{n, k}; }
  bool has_bias() const { return epilogue == Epilogue::Bias || epilogue == Epilogue::BiasActivate; }

  std::string name() const {
    return label(
        "m={} n={} k={} ta={} tb={} epilogue={} activation={} accumulate={} dbias={} out={}", m, n,
        k, static_cast<int>(ta), static_cast<int>(tb), static_cast<int>(epilogue),
        name_of_choice(activation), accumulate, dbias, static_cast<int>(out));
  }

  // Elements of the product are of size 1 whatever k.
  void operator()(Trial& run) const {
    const double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, k)));
    // A result that is the function of a sum loses a little more than the sum.
    const bool plain = epilogue == Epilogue::None || (epilogue == Epilogue::Bias && !addend);
    const int stores = plain ? 1 : 2;
    const Bound bound{.reduction = k, .ops = stores, .magnitude = 1};
    ops::Matmul args{.a = run.input("a", a_shape()),
                     .b = run.input("b", b_shape(), Element::Value, {.scale = scale}),
                     .ta = ta,
                     .tb = tb,
                     .out = accumulate ? run.updated("out", {m, n}, out) : run.blank({m, n}, out),
                     .accumulate = accumulate,
                     .epilogue = epilogue,
                     .activation = activation};
    run.compare("out", args.out, bound);
    if (addend) args.addend = run.input("addend", {m, n}, out);
    if (has_bias()) args.bias = run.input("bias", {n});
    if (epilogue == Epilogue::ActivateBackward) {
      args.activation_input = run.input("activation_input", {m, n}, out);
    }
    if (keeps_argument) args.pre_activation = run.output("pre_activation", {m, n}, out, bound);
    if (dbias) {
      args.dbias = run.updated("dbias", {m}, Element::Sum);
      run.compare("dbias", args.dbias,
                  {.reduction = k, .magnitude = std::sqrt(static_cast<double>(k))});
    }
    ops::matmul(run.ex(), args);
  }
};

// On the device under test.
using Agree = void (*)(const MatmulCase&);
void on_cpu(const MatmulCase& c) { expect_cpu_agrees(c.name(), c); }
void on_cuda(const MatmulCase& c) { expect_cuda_agrees(c.name(), c); }

// Fails when the last row, column or depth of a tile is left out, or when ta and tb are exchanged.
void awkward_sizes(Agree agree) {
  const std::array<std::array<int64_t, 3>, 20> sizes{
      {{1, 1, 1},    {1, 7, 3},   {2, 1, 5},    {5, 3, 1},    {7, 8, 9},
       {8, 16, 32},  {9, 17, 33}, {13, 11, 17}, {15, 31, 63}, {16, 15, 64},
       {17, 33, 65}, {31, 32, 8}, {33, 64, 16}, {63, 65, 7},  {64, 63, 31},
       {65, 9, 15},  {3, 129, 5}, {0, 4, 3},    {4, 0, 3},    {3, 5, 0}}};
  for (const auto& [m, n, k] : sizes) {
    for (const Transpose ta : {Transpose::No, Transpose::Yes}) {
      for (const Transpose tb : {Transpose::No, Transpose::Yes}) {
        agree({.m = m, .n = n, .k = k, .ta = ta, .tb = tb});
      }
    }
  }
}
TEST(Matmul, CpuAgreesAtAwkwardSizesInAllTranspositions) { awkward_sizes(on_cpu); }
TEST(Matmul, CudaAgreesAtAwkwardSizesInAllTranspositions) { awkward_sizes(on_cuda); }

// Fails when the blocks of a large product are summed in the wrong place or overwrite each other.
void several_blocks(Agree agree) {
  agree({.m = 197, .n = 131, .k = 523, .tb = Transpose::Yes});
  agree({.m = 67, .n = 1031, .k = 129});
  agree({.m = 257,
         .n = 70,
         .k = 1025,
         .ta = Transpose::Yes,
         .accumulate = true,
         .out = Element::Sum});
}
TEST(Matmul, CpuAgreesAcrossBlocks) { several_blocks(on_cpu); }
TEST(Matmul, CudaAgreesAcrossBlocks) { several_blocks(on_cuda); }

// Fails when a bias is added per row, an activation is applied before the bias, or the argument
// kept is the activated value.
void every_epilogue(Agree agree) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 2}, {17, 33, 9}, {64, 65, 300}, {40, 96, 64}}) {
    agree({.m = m, .n = n, .k = k, .tb = Transpose::Yes, .epilogue = Epilogue::Bias});
    for (const Activation activation : {Activation::GeluTanh, Activation::GeluErf, Activation::Relu,
                                        Activation::SquaredRelu, Activation::Tanh}) {
      for (const Epilogue epilogue :
           {Epilogue::Activate, Epilogue::BiasActivate, Epilogue::ActivateBackward}) {
        for (const bool keeps : {false, true}) {
          if (keeps && epilogue == Epilogue::ActivateBackward) continue;
          agree({.m = m,
                 .n = n,
                 .k = k,
                 .tb = Transpose::Yes,
                 .epilogue = epilogue,
                 .activation = activation,
                 .keeps_argument = keeps});
        }
      }
    }
  }
}
TEST(Matmul, CpuAgreesInEveryEpilogue) { every_epilogue(on_cpu); }
TEST(Matmul, CudaAgreesInEveryEpilogue) { every_epilogue(on_cuda); }

// Fails when the old content is dropped, added twice (once per block of k), or added after the
// epilogue instead of before.
void accumulating(Agree agree) {
  for (const Element out : {Element::Value, Element::Sum}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {31, 17, 64}, {9, 65, 1300}, {3, 5, 0}}) {
      for (const Epilogue epilogue : {Epilogue::None, Epilogue::Bias, Epilogue::BiasActivate}) {
        agree({.m = m,
               .n = n,
               .k = k,
               .ta = Transpose::Yes,
               .epilogue = epilogue,
               .accumulate = true,
               .out = out});
      }
    }
  }
}
TEST(Matmul, CpuAgreesWhenAccumulating) { accumulating(on_cpu); }
TEST(Matmul, CudaAgreesWhenAccumulating) { accumulating(on_cuda); }

// Fails when the addend is not read, is read at the place of out, or is added per row.
void with_addend(Agree agree) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 9, 33}, {130, 72, 600}}) {
    for (const Epilogue epilogue : {Epilogue::None, Epilogue::Bias}) {
      agree({.m = m, .n = n, .k = k, .tb = Transpose::Yes, .epilogue = epilogue, .addend = true});
    }
  }
}
TEST(Matmul, CpuAgreesWithAddend) { with_addend(on_cpu); }
TEST(Matmul, CudaAgreesWithAddend) { with_addend(on_cuda); }

// The product of a weight gradient: dweight [m, n] += dy^T x, dbias [m] += sums of dy over tokens.
// Fails when dbias is overwritten, or is added once per block of columns.
void bias_gradient(Agree agree) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 9, 33}, {65, 600, 130}}) {
    for (const Transpose ta : {Transpose::Yes, Transpose::No}) {
      agree({.m = m,
             .n = n,
             .k = k,
             .ta = ta,
             .accumulate = true,
             .dbias = true,
             .out = Element::Sum});
    }
  }
}
TEST(Matmul, CpuAgreesOnBiasGradient) { bias_gradient(on_cpu); }
TEST(Matmul, CudaAgreesOnBiasGradient) { bias_gradient(on_cuda); }

// Fails when f32 results of bf16 operands are rounded to bf16 on the way.
void wide_result(Agree agree) {
  agree({.m = 19, .n = 23, .k = 300, .tb = Transpose::Yes, .out = Element::Sum});
}
TEST(Matmul, CpuKeepsAccumulationTypeOfResult) { wide_result(on_cpu); }
TEST(Matmul, CudaKeepsAccumulationTypeOfResult) { wide_result(on_cuda); }

// Fails when a kernel for large tiles is given the wrong operand, layout or epilogue. One reference
// for all types: it takes long.
TEST(Matmul, CudaAgreesAtShapesOfModels) {
  const auto agree = [](const MatmulCase& c) { expect_cuda_agrees(c.name(), c, Storage::Alike); };
  constexpr auto kTurned = Transpose::Yes;
  // Of GPT-2 124M: queries, keys and values; up; the gradients of both operands of down.
  agree({.m = 160, .n = 2304, .k = 768, .tb = kTurned, .epilogue = Epilogue::Bias});
  agree({.m = 120,
         .n = 3072,
         .k = 768,
         .tb = kTurned,
         .epilogue = Epilogue::BiasActivate,
         .keeps_argument = true});
  agree({.m = 120, .n = 3072, .k = 768, .epilogue = Epilogue::ActivateBackward});
  agree({.m = 768,
         .n = 3072,
         .k = 120,
         .ta = kTurned,
         .accumulate = true,
         .dbias = true,
         .out = Element::Sum});
  // Few outputs and many tokens: the sum over k is divided.
  agree({.m = 64,
         .n = 128,
         .k = 32768,
         .ta = kTurned,
         .accumulate = true,
         .dbias = true,
         .out = Element::Sum});
  // A vocabulary that is a multiple of nothing: logits, and both gradients.
  constexpr int64_t kVocabulary = 50257;
  agree({.m = 5, .n = kVocabulary, .k = 64, .tb = kTurned});
  agree({.m = 7, .n = 64, .k = kVocabulary});
  agree(
      {.m = kVocabulary, .n = 64, .k = 6, .ta = kTurned, .accumulate = true, .out = Element::Sum});
}

// Fails when a proposal that wins by its speed computes something else.
TEST(Matmul, CudaAgreesWhenTuned) {
  const auto agree = [](const MatmulCase& c) {
    expect_cuda_agrees(c.name(), c, Storage::All, Policy::Tuned);
  };
  bias_gradient(agree);
  with_addend(agree);
  agree({.m = 120, .n = 328, .k = 72, .tb = Transpose::Yes, .epilogue = Epilogue::Bias});
  agree({.m = 136,
         .n = 320,
         .k = 64,
         .tb = Transpose::Yes,
         .epilogue = Epilogue::BiasActivate,
         .keeps_argument = true});
  agree({.m = 136, .n = 320, .k = 64, .epilogue = Epilogue::ActivateBackward});
  agree({.m = 64,
         .n = 128,
         .k = 4096,
         .ta = Transpose::Yes,
         .accumulate = true,
         .out = Element::Sum});
}

// Fails when a new process times again what an earlier one found, or does not believe its file.
TEST(Matmul, CudaRemembersWhatWasTuned) {
  if (no_gpu()) return;
  if (std::getenv("CUDA_FORCE_PTX_JIT") != nullptr) GTEST_SKIP() << "the library holds no PTX";
  const TemporaryDirectory folder;
  for (const char* expected : {", timed", ", remembered"}) {
    const std::unique_ptr<Device> device =
        make_device({.kind = DeviceKind::Cuda, .cache = folder.path().string()});
    device->dispatch().enable();
    Arena none(*device, 0, "none");
    Exec ex{*device, device->compute_stream(), none, none, none, nullptr};
    const Buffer operand(*device, sizeof(bf16) * 256 * 256, "operand");
    const Buffer result(*device, sizeof(bf16) * 256 * 256, "operand");
    const ConstTensor a = tensor_over(operand.data(), DType::bf16, {256, 256});
    AutotuneScope autotune(*device);
    ops::matmul(ex, {.a = a, .b = a, .out = tensor_over(result.data(), DType::bf16, {256, 256})});
    autotune.finish();
    ASSERT_EQ(device->dispatch().choices().size(), 1u);
    EXPECT_NE(device->dispatch().choices()[0].chosen.find(expected), std::string::npos)
        << device->dispatch().choices()[0].chosen;
    EXPECT_NE(device->autotune_summary(), "");
  }
}

// Fails when dbias needs a product, or when nothing to multiply is left as it was.
TEST(Matmul, CudaAgreesOnEmptySums) {
  for (const Epilogue epilogue : {Epilogue::None, Epilogue::Bias, Epilogue::BiasActivate}) {
    on_cuda({.m = 33, .n = 40, .k = 0, .epilogue = epilogue});
  }
  on_cuda({.m = 17, .n = 0, .k = 9, .ta = Transpose::Yes, .dbias = true, .out = Element::Sum});
}

// Fails when the sums of a bias gradient leave out the last rows of a slice, the last slice, or the
// columns beyond a strip, or when they are stored before all warps are done.
TEST(Matmul, CudaAgreesOnLongBiasGradients) {
  for (const auto& [m, k] : {std::array<int64_t, 2>{768, 1023}, {257, 9001}, {8, 20000}, {3, 65}}) {
    on_cuda({.m = m,
             .n = 1,
             .k = k,
             .ta = Transpose::Yes,
             .accumulate = true,
             .dbias = true,
             .out = Element::Sum});
  }
}

// Fails when a deterministic device activates inside the product, which sees an unrounded sum: what
// is recomputed from the kept argument must have the same bits.
TEST(Matmul, CudaActivationEqualsTheSeparateOneWhenDeterministic) {
  if (no_gpu()) return;
  const std::unique_ptr<Device> device =
      make_device({.kind = DeviceKind::Cuda, .deterministic = true, .cache = "off"});
  Arena none(*device, 0, "none");
  Exec ex{*device, device->compute_stream(), none, none, none, nullptr};
  constexpr int64_t kRows = 200, kColumns = 320, kInner = 64;
  const auto drawn = [](int64_t count, uint64_t key) {
    std::vector<bf16> values;
    for (int64_t i = 0; i < count; ++i) {
      values.emplace_back(normals_of(philox(key, 1, static_cast<uint64_t>(i)))[0]);
    }
    return values;
  };
  const auto room = [&](int64_t count) { return Buffer(*device, sizeof(bf16) * count, "operand"); };
  const Buffer x = room(kRows * kInner), w = room(kColumns * kInner), pre = room(kRows * kColumns),
               y = room(kRows * kColumns), again = room(kRows * kColumns);
  device->upload(drawn(kRows * kInner, 1).data(), x.data(), x.bytes());
  device->upload(drawn(kColumns * kInner, 2).data(), w.data(), w.bytes());
  const auto over = [](const Buffer& b, int64_t rows, int64_t columns) {
    return tensor_over(b.data(), DType::bf16, {rows, columns});
  };
  for (const Activation activation : {Activation::GeluTanh, Activation::GeluErf, Activation::Relu,
                                      Activation::SquaredRelu, Activation::Tanh}) {
    ops::matmul(ex, {.a = over(x, kRows, kInner),
                     .b = over(w, kColumns, kInner),
                     .tb = Transpose::Yes,
                     .out = over(y, kRows, kColumns),
                     .epilogue = Epilogue::Activate,
                     .activation = activation,
                     .pre_activation = over(pre, kRows, kColumns)});
    ops::activate(ex, {activation, over(pre, kRows, kColumns), over(again, kRows, kColumns)});
    std::vector<std::byte> fused(y.bytes()), separate(y.bytes());
    device->download(y.data(), fused.data(), y.bytes());
    device->download(again.data(), separate.data(), y.bytes());
    EXPECT_EQ(fused, separate) << name_of_choice(activation);
  }
}

// Fails when the log does not say which algorithm a product has, or when a second call of the same
// kind looks for one again.
TEST(Matmul, CudaNotesItsChoiceOnce) {
  if (no_gpu()) return;
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 1);
  device->dispatch().enable();
  Arena none(*device, 0, "none");
  Exec ex{*device, device->compute_stream(), none, none, none, nullptr};
  const Buffer square(*device, sizeof(bf16) * 64 * 64, "operand");
  const Buffer result(*device, sizeof(bf16) * 64 * 64, "operand");
  const ConstTensor a = tensor_over(square.data(), DType::bf16, {64, 64});
  const size_t before = device->allocations();
  for (int call = 0; call < 3; ++call) {
    ops::matmul(ex, {.a = a, .b = a, .out = tensor_over(result.data(), DType::bf16, {64, 64})});
  }
  device->compute_stream().synchronize();
  EXPECT_EQ(device->allocations(), before);
  ASSERT_EQ(device->dispatch().choices().size(), 1u);
  EXPECT_EQ(device->dispatch().choices()[0].op, "matmul m=64 n=64 k=64 NN bf16 to bf16");
  // The library has nothing to choose from where all code comes from PTX.
  const char* wanted = std::getenv("CUDA_FORCE_PTX_JIT") != nullptr ? "own" : "cublasLt algorithm";
  EXPECT_NE(device->dispatch().choices()[0].chosen.find(wanted), std::string::npos);
}

// y = activation(x w^T + bias), loss = sum(dy * y). The gradients come from products alone.
struct LinearGradient {
  Activation activation;
  int64_t tokens = 5, in = 4, out = 3;

  void check() const {
    Trial run(gradient_run());
    Exec& ex = run.ex();
    const Tensor x = run.updated("x", {tokens, in});
    const Tensor w = run.updated("w", {out, in});
    const Tensor bias = run.updated("bias", {out});
    const ConstTensor dy = run.input("dy", {tokens, out});
    const Tensor y = run.blank({tokens, out}), argument = run.blank({tokens, out});
    const auto loss = [&] {
      ops::matmul(ex, {.a = x,
                       .b = w,
                       .tb = Transpose::Yes,
                       .out = y,
                       .epilogue = Epilogue::BiasActivate,
                       .bias = bias,
                       .activation = activation,
                       .pre_activation = argument});
      return inner(dy, y);
    };
    loss();
    // dargument = (dy I) * activation'(argument): the epilogue under test on a product with I.
    std::vector<double> unit(static_cast<size_t>(out * out), 0.0);
    for (int64_t i = 0; i < out; ++i) unit[static_cast<size_t>(i * out + i)] = 1;
    const Tensor dargument = run.blank({tokens, out});
    ops::matmul(ex, {.a = dy,
                     .b = run.given({out, out}, unit),
                     .out = dargument,
                     .epilogue = Epilogue::ActivateBackward,
                     .activation = activation,
                     .activation_input = argument});
    const Tensor dx = run.blank({tokens, in});
    ops::matmul(ex, {.a = dargument, .b = w, .out = dx});
    const std::vector<double> zeros(static_cast<size_t>(out * in), 0.0);
    const Tensor dw = run.updated_given({out, in}, zeros);
    const Tensor dbias = run.updated_given({out}, std::span(zeros).first(static_cast<size_t>(out)));
    ops::matmul(ex, {.a = dargument,
                     .b = x,
                     .ta = Transpose::Yes,
                     .out = dw,
                     .accumulate = true,
                     .dbias = dbias});
    expect_gradient("x", x, dx, loss);
    expect_gradient("w", w, dw, loss);
    expect_gradient("bias", bias, dbias, loss);
  }
};

// Fails when any slope is wrong by 1e-6, for example gelu's without the derivative of its tanh.
TEST(Matmul, GradientsMatchDifferences) {
  for (const Activation activation : {Activation::GeluTanh, Activation::GeluErf, Activation::Relu,
                                      Activation::SquaredRelu, Activation::Tanh}) {
    SCOPED_TRACE(name_of_choice(activation));
    LinearGradient{activation}.check();
  }
}

}  // namespace
}  // namespace bev::test
