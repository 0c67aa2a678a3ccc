// Small-M and medium-M GEMMs with a matrix that is read once, as in generation. Every test names
// the fault that makes it fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ops/harness.h"
#include "ops/matmul.h"

namespace bev::test {
namespace {

using ops::Epilogue;
using ops::Transpose;

struct SmallMProblem {
  int64_t m, n, k;
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::GeluTanh;
  bool addend = false;
  bool keeps_argument = false;
  Element out = Element::Value;

  std::string name() const {
    return label("m={} n={} k={} epilogue={} activation={} addend={} keeps={} out={}", m, n, k,
                 static_cast<int>(epilogue), name_of_choice(activation), addend, keeps_argument,
                 static_cast<int>(out));
  }
  // Scales b so that the results are of order 1 for every k.
  void operator()(Trial& run) const {
    const double scale = 1 / std::sqrt(static_cast<double>(k));
    const bool has_bias = epilogue == Epilogue::Bias || epilogue == Epilogue::BiasActivate;
    const Bound bound{.reduction = k, .ops = 2, .magnitude = 1};
    ops::Matmul args{.a = run.input("a", {m, k}),
                     .b = run.input("b", {n, k}, Element::Value, {.scale = scale}),
                     .tb = Transpose::Yes,
                     .out = run.output("out", {m, n}, out, bound),
                     .epilogue = epilogue,
                     .activation = activation};
    if (addend) args.addend = run.input("addend", {m, n}, out);
    if (has_bias) args.bias = run.input("bias", {n});
    if (keeps_argument) args.pre_activation = run.output("pre_activation", {m, n}, out, bound);
    ops::matmul(run.ex(), args);
  }
};

using CheckSmallM = void (*)(const SmallMProblem&);
void small_m_on_cpu(const SmallMProblem& c) { expect_cpu_agrees(c.name(), c); }
void small_m_on_cuda(const SmallMProblem& c) { expect_cuda_agrees(c.name(), c); }

// Fails when a row, a column or the end of the sum is left out.
void all_sizes(CheckSmallM agree) {
  for (const int64_t m : {1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 64, 65}) {
    for (const auto& [n, k] :
         {std::array<int64_t, 2>{8, 8}, {1, 40}, {67, 264}, {130, 1000}, {70, 2600}}) {
      agree({.m = m, .n = n, .k = k});
    }
  }
}
TEST(SmallMProblem, CpuAgreesAtAllSizes) { all_sizes(small_m_on_cpu); }
TEST(SmallMProblem, CudaAgreesAtAllSizes) { all_sizes(small_m_on_cuda); }

// Fails when a bias or an addend is added to another row, or pre_activation receives the activated
// value.
void every_small_m_epilogue(CheckSmallM agree) {
  for (const int64_t m : {1, 5, 12, 40}) {
    agree({.m = m, .n = 70, .k = 72, .epilogue = Epilogue::Bias});
    agree({.m = m, .n = 70, .k = 72, .addend = true});
    agree({.m = m, .n = 70, .k = 72, .epilogue = Epilogue::Bias, .addend = true});
    agree({.m = m, .n = 70, .k = 72, .epilogue = Epilogue::Bias, .out = Element::Sum});
    for (const Activation activation : {Activation::GeluTanh, Activation::GeluErf, Activation::Relu,
                                        Activation::SquaredRelu, Activation::Tanh}) {
      for (const bool keeps : {false, true}) {
        for (const Epilogue epilogue : {Epilogue::Activate, Epilogue::BiasActivate}) {
          agree({.m = m,
                 .n = 70,
                 .k = 72,
                 .epilogue = epilogue,
                 .activation = activation,
                 .keeps_argument = keeps});
        }
      }
    }
  }
}
TEST(SmallMProblem, CpuAgreesOnEveryEpilogue) { every_small_m_epilogue(small_m_on_cpu); }
TEST(SmallMProblem, CudaAgreesOnEveryEpilogue) { every_small_m_epilogue(small_m_on_cuda); }

// Fails when the parts of a long sum, or the blocks of a wide result, overlap. Uses one reference
// for all types, since computing it takes long.
TEST(SmallMProblem, CudaAgreesAtShapesOfModels) {
  for (const int64_t m : {1, 4, 16, 50}) {
    for (const auto& [n, k] :
         {std::array<int64_t, 2>{2304, 768}, {768, 3072}, {4096, 1024}, {4224, 968}, {64, 8192}}) {
      const SmallMProblem c{.m = m, .n = n, .k = k, .epilogue = Epilogue::Bias};
      expect_cuda_agrees(c.name(), c, Storage::Alike);
    }
  }
  const SmallMProblem vocabulary{.m = 2, .n = 50257, .k = 64};
  expect_cuda_agrees(vocabulary.name(), vocabulary, Storage::Alike);
}

// Fused norm. Fails when a row is normalised with the statistics of another row or of a part of it,
// or is not centred although it should be. The mean is far from 0, where computing the variance
// from sums of squares would fail.
struct NormedRows {
  int64_t m, n, k;
  NormKind kind;

  std::string name() const {
    return label("m={} n={} k={} norm={}", m, n, k, name_of_choice(kind));
  }
  void operator()(Trial& run) const {
    const double scale = 1 / std::sqrt(static_cast<double>(k));
    const bool centred = kind == NormKind::LayerNorm;
    ops::DecodeGemm args{
        .gemm = {.a = run.input("a", {m, k}, Element::Value, {.offset = centred ? 8.0 : 0.5}),
                 .b = run.input("b", {n, k}, Element::Value, {.scale = scale}),
                 .tb = Transpose::Yes,
                 .out = run.output("out", {m, n}, Element::Value,
                                   {.reduction = k, .ops = 6, .magnitude = 4}),
                 .epilogue = Epilogue::Bias,
                 .bias = run.input("bias", {n})},
        .norm = {.kind = kind, .weight = run.input("weight", {k}, Element::Value, {.offset = 1})}};
    if (centred) args.norm.bias = run.input("shift", {k});
    ops::decode_gemm(run.ex(), args);
  }
};

template <class Agree>
void normed_rows(Agree agree) {
  for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
    for (const int64_t m : {1, 3, 8, 9}) {
      for (const auto& [n, k] :
           {std::array<int64_t, 2>{8, 8}, {67, 264}, {33, 1600}, {19, 2048}, {20, 2304}})
        agree(NormedRows{.m = m, .n = n, .k = k, .kind = kind});
    }
  }
}
TEST(SmallMProblem, CpuAgreesOnNormedRows) {
  normed_rows([](const NormedRows& c) { expect_cpu_agrees(c.name(), c); });
}
TEST(SmallMProblem, CudaAgreesOnNormedRows) {
  normed_rows([](const NormedRows& c) { expect_cuda_agrees(c.name(), c); });
}

// A chain of GEMMs, each of which reads the result of the previous one; all weights are in memory
// before the first. Fails when a GEMM starts to read before the previous one is done.
struct Chain {
  int64_t rows, width;
  bool normed = false;

  std::string name() const {
    return label("chain rows={} width={} normed={}", rows, width, normed);
  }
  void operator()(Trial& run) const {
    constexpr size_t kLinks = 12;
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const ConstTensor x = run.input("x", {rows, width});
    const ConstTensor weight = run.input("weight", {width}, Element::Value, {.offset = 1});
    std::vector<ConstTensor> matrices;
    std::vector<Tensor> results;
    for (size_t link = 0; link < kLinks; ++link) {
      const std::string name = fmt::format("w{}", link);
      matrices.push_back(run.input(name.c_str(), {width, width}, Element::Value, {.scale = scale}));
      results.push_back(run.blank({rows, width}, Element::Value));
    }
    for (size_t link = 0; link < kLinks; ++link) {
      ops::DecodeGemm gemm{.gemm = {.a = link == 0 ? x : results[link - 1],
                                    .b = matrices[link],
                                    .tb = Transpose::Yes,
                                    .out = results[link]}};
      if (normed) gemm.norm = {.kind = NormKind::RmsNorm, .weight = weight};
      ops::decode_gemm(run.ex(), gemm);
    }
    run.compare("y", results.back(), {.reduction = width, .ops = 4 * kLinks, .magnitude = 2});
  }
};

// Small GEMMs end before the next one begins: these fill the GPU, and use all kinds of kernels.
template <class Agree>
void chains(Agree agree) {
  agree(Chain{.rows = 2, .width = 1600});
  agree(Chain{.rows = 1, .width = 1600, .normed = true});
  agree(Chain{.rows = 4, .width = 2560});
  agree(Chain{.rows = 40, .width = 1024});
}
TEST(SmallMProblem, CpuAgreesOnAChain) {
  const Chain chain{.rows = 2, .width = 512};
  expect_cpu_agrees(chain.name(), chain);
}
TEST(SmallMProblem, CudaAgreesOnAChain) {
  chains([](const Chain& c) { expect_cuda_agrees(c.name(), c, Storage::Alike); });
}

// Fails when a GEMM of generation goes to cuBLASLt, or one of training does not. Medium-M GEMMs
// have a custom kernel on Hopper only.
TEST(SmallMProblem, CudaNotesWhatServes) {
  if (no_gpu()) return;
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 1);
  device->dispatch().enable();
  Arena none(*device, 0, "none");
  Exec ex{*device, device->compute_stream(), none, none, none, nullptr};
  const Buffer square(*device, sizeof(bf16) * 65 * 64, "operand");
  const Buffer result(*device, sizeof(bf16) * 65 * 64, "operand");
  const ConstTensor b = tensor_over(square.data(), DType::bf16, {64, 64});
  for (const int64_t m : {1, 65}) {
    ops::matmul(ex, {.a = tensor_over(square.data(), DType::bf16, {m, 64}),
                     .b = b,
                     .tb = Transpose::Yes,
                     .out = tensor_over(result.data(), DType::bf16, {m, 64})});
  }
  device->compute_stream().synchronize();
  ASSERT_EQ(device->dispatch().choices().size(), 2u);
  EXPECT_EQ(device->dispatch().choices()[0].op, "matmul m=1 n=64 k=64 NT bf16 to bf16");
  EXPECT_EQ(device->dispatch().choices()[0].chosen, "own kernel for few rows");
  EXPECT_FALSE(device->dispatch().choices()[1].chosen.starts_with("own kernel for"));
}

}  // namespace
}  // namespace bev::test
