// The cpu and cuda devices against the reference, and gradients against differences. Every test
// names the fault that makes it fail.
#include "ops/attention.h"

#include <gtest/gtest.h>

#include "ops/attention_case.h"

namespace bev::test {
namespace {

struct AttentionForward : AttentionCase {
  void operator()(Trial& run) const {
    const ops::Attention args = forward(run, inputs(run));
    run.compare("out", args.out, {.reduction = keys, .ops = 2});
    run.compare("lse", args.lse, {.reduction = keys, .magnitude = 1});
    ops::attention(run.ex(), args);
  }
};

struct AttentionBackward : AttentionCase {
  void operator()(Trial& run) const {
    // out and lse as a forward would have left them.
    Trial truth = run.truth();
    const ops::Attention kept = forward(truth, inputs(truth));
    ops::attention(truth.ex(), kept);

    const Inputs in = inputs(run), d = gradients(run);
    ops::Attention args = forward(run, in);
    ops::AttentionBackward b = backward(args, run.input("dout", q_shape()), d);
    b.out = run.given(q_shape(), truth.read(kept.out));
    b.lse = run.given(lse_shape(), truth.read(kept.lse), Element::Sum);
    // exp(score - lse) and dP - delta each lose a little before the sum over keys or queries.
    const Bound bound{.reduction = std::max(keys, queries) * head_dim, .ops = 2, .magnitude = 0.5};
    run.compare("dq", d.q, bound);
    run.compare("dk", d.k, bound);
    run.compare("dv", d.v, bound);
    if (biased) {
      b.dbias = run.updated("dbias", bias_shape(), Element::Sum);
      run.compare("dbias", b.dbias,
                  {.reduction = sequences * head_dim, .ops = 2, .magnitude = 0.5});
    }
    ops::attention_backward(run.ex(), b);
  }
};

// Self attention of an encoder and a decoder of T5, and its cross attention, at awkward sizes.
std::vector<AttentionCase> biased_cases() {
  std::vector<AttentionCase> all{
      {.biased = true},
      {.queries = 0, .keys = 0, .heads = 2, .kv_heads = 2, .head_dim = 4, .biased = true},
      {.queries = 7, .keys = 5, .heads = 3, .kv_heads = 3, .head_dim = 6, .causal = false},
  };
  for (const int64_t head_dim : {6, 64}) {
    for (const double probability : {0.0, 0.1}) {
      AttentionCase encoder{.queries = 67,
                            .keys = 67,
                            .heads = 3,
                            .kv_heads = 3,
                            .head_dim = head_dim,
                            .sequences = 3,
                            .causal = false,
                            .padding = true,
                            .probability = probability,
                            .biased = true,
                            .fused = true};
      AttentionCase decoder = encoder;
      decoder.causal = true;
      decoder.padding = false;
      // The keys are longer or shorter than the queries, and some are padding.
      AttentionCase cross = encoder;
      cross.fused = cross.biased = false;
      cross.query_padding = true;
      cross.queries = 37;
      AttentionCase biased_cross = cross;
      biased_cross.biased = true;
      biased_cross.queries = 130;
      for (const AttentionCase& c : {encoder, decoder, cross, biased_cross}) all.push_back(c);
    }
  }
  // Rows of the bias that are aligned, as libraries require.
  AttentionCase aligned{.queries = 72,
                        .keys = 72,
                        .heads = 2,
                        .kv_heads = 1,
                        .head_dim = 64,
                        .sequences = 3,
                        .biased = true,
                        .fused = true};
  all.push_back(aligned);
  aligned.causal = false;
  aligned.padding = true;
  all.push_back(aligned);
  aligned.fused = false;
  aligned.queries = 136;
  all.push_back(aligned);
  aligned.query_padding = true;
  all.push_back(aligned);
  // Grouped heads, a window, and the last queries of a longer sequence.
  all.push_back({.queries = 70,
                 .keys = 131,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 16,
                 .sequences = 2,
                 .window = 40,
                 .query_offset = 61,
                 .biased = true});
  return all;
}

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> all{
      {.queries = 1, .keys = 1},
      {.queries = 0, .keys = 0, .heads = 2, .kv_heads = 2, .head_dim = 4},
      {.queries = 7, .keys = 7, .heads = 3, .kv_heads = 3, .head_dim = 5},
      {.queries = 31, .keys = 31, .heads = 2, .kv_heads = 1, .head_dim = 16},
      {.queries = 33, .keys = 33, .heads = 4, .kv_heads = 2, .head_dim = 8, .sequences = 2},
      {.queries = 65, .keys = 65, .heads = 2, .kv_heads = 2, .head_dim = 17},
      {.queries = 129, .keys = 129, .heads = 1, .kv_heads = 1, .head_dim = 64},
      // Several tiles, shared among threads by kv head and by tile.
      {.queries = 193, .keys = 193, .heads = 4, .kv_heads = 2, .head_dim = 24, .sequences = 3},
      {.queries = 150,
       .keys = 150,
       .heads = 4,
       .kv_heads = 2,
       .head_dim = 8,
       .window = 70,
       .documents = true,
       .probability = 0.1},
      {.queries = 140,
       .keys = 90,
       .heads = 2,
       .kv_heads = 1,
       .head_dim = 8,
       .causal = false,
       .padding = true},
      // The last queries of a longer sequence, and one new token.
      {.queries = 9, .keys = 40, .heads = 2, .kv_heads = 1, .head_dim = 8, .query_offset = 31},
      {.queries = 1, .keys = 70, .heads = 4, .kv_heads = 2, .head_dim = 8, .query_offset = 69},
      // Keys that no query sees, and queries before the first key.
      {.queries = 5, .keys = 40, .heads = 2, .kv_heads = 1, .head_dim = 8, .query_offset = 3},
      {.queries = 20, .keys = 12, .heads = 2, .kv_heads = 1, .head_dim = 8, .query_offset = -6},
      {.queries = 12, .keys = 30, .heads = 2, .kv_heads = 2, .head_dim = 6, .causal = false},
      {.queries = 40,
       .keys = 17,
       .heads = 2,
       .kv_heads = 2,
       .head_dim = 8,
       .sequences = 3,
       .causal = false},
      {.queries = 67, .keys = 67, .heads = 2, .kv_heads = 1, .head_dim = 8, .window = 1},
      {.queries = 67, .keys = 67, .heads = 2, .kv_heads = 1, .head_dim = 8, .window = 20},
      {.queries = 35,
       .keys = 35,
       .heads = 2,
       .kv_heads = 1,
       .head_dim = 8,
       .sequences = 2,
       .window = 100},
      {.queries = 30,
       .keys = 30,
       .heads = 2,
       .kv_heads = 1,
       .head_dim = 8,
       .causal = false,
       .window = 7},
  };
  const AttentionCase base{
      .queries = 41, .keys = 41, .heads = 4, .kv_heads = 2, .head_dim = 8, .sequences = 2};
  for (const bool causal : {true, false}) {
    for (const bool documents : {true, false}) {
      for (const bool padding : {true, false}) {
        for (const double probability : {0.0, 0.25}) {
          AttentionCase c = base;
          c.causal = causal;
          c.documents = documents;
          c.padding = padding;
          c.probability = probability;
          c.fused = probability > 0;
          all.push_back(c);
        }
      }
    }
  }
  for (const AttentionCase& c : biased_cases()) all.push_back(c);
  AttentionCase everything = base;
  everything.documents = everything.padding = everything.fused = everything.biased = true;
  everything.window = 4;
  everything.probability = 0.4;
  all.push_back(everything);
  // A threshold of 0, and one at which all but a quarter is dropped.
  for (const double probability : {1e-6, 0.75}) {
    AttentionCase c = base;
    c.probability = probability;
    all.push_back(c);
  }
  return all;
}

// Fails when a tile on the diagonal is not masked, a mask is read by local instead of total query,
// a query without keys gives NaN, or the kv head is head % kv_heads.
TEST(Attention, CpuForwardAgrees) {
  for (const AttentionCase& c : attention_cases()) expect_cpu_agrees(c.name(), AttentionForward{c});
}

// Fails when the heads of one group overwrite each other's dk, delta includes the dropout factor
// twice, or dq of a fully masked query is not 0.
TEST(Attention, CpuBackwardAgrees) {
  for (const AttentionCase& c : attention_cases())
    expect_cpu_agrees(c.name(), AttentionBackward{c});
}

// Policy::Deterministic keeps cuDNN out: our own kernels serve everything, the backward in two
// passes. Without it they serve what cuDNN may not, the backward in one.
TEST(Attention, CudaForwardAgrees) {
  for (const AttentionCase& c : attention_cases()) {
    expect_cuda_agrees(c.name(), AttentionForward{c});
    expect_cuda_agrees(c.name(), AttentionForward{c}, Storage::Alike, Policy::Deterministic);
  }
}
TEST(Attention, CudaBackwardAgrees) {
  for (const AttentionCase& c : attention_cases()) {
    expect_cuda_agrees(c.name(), AttentionBackward{c}, Storage::All, Policy::Varies);
    expect_cuda_agrees(c.name(), AttentionBackward{c}, Storage::Alike, Policy::Deterministic);
  }
}

// Lengths around the tiles of the GPU, heads of every kernel: tensor cores up to 64, 128 and 256
// columns, f32 beyond.
std::vector<AttentionCase> attention_large_cases() {
  std::vector<AttentionCase> all;
  for (const int64_t length : {1, 17, 63, 64, 65, 127, 128, 129}) {
    for (const int64_t head_dim : {8, 40, 64, 80, 128, 256, 320}) {
      AttentionCase c{.queries = length,
                      .keys = length,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = head_dim,
                      .probability = length % 2 == 0 ? 0.1 : 0};
      all.push_back(c);
      // As many conditions at once as there are.
      c.probability = 0.1 - c.probability;
      c.window = 50;
      c.documents = length > 17;
      c.padding = head_dim % 16 == 0;
      c.fused = true;
      all.push_back(c);
    }
  }
  for (const int64_t length : {1023, 1025}) {
    all.push_back({.queries = length, .keys = length, .heads = 1, .kv_heads = 1, .head_dim = 64});
    all.push_back({.queries = length,
                   .keys = length,
                   .heads = 2,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .probability = 0.1,
                   .fused = true});
    all.push_back({.queries = length,
                   .keys = length,
                   .heads = 1,
                   .kv_heads = 1,
                   .head_dim = 128,
                   .window = 300,
                   .probability = 0.1});
    all.push_back({.queries = length,
                   .keys = length,
                   .heads = 1,
                   .kv_heads = 1,
                   .head_dim = 80,
                   .causal = false,
                   .padding = true});
  }
  all.push_back({.queries = 300,
                 .keys = 300,
                 .heads = 8,
                 .kv_heads = 2,
                 .head_dim = 64,
                 .documents = true,
                 .probability = 0.1,
                 .fused = true});
  all.push_back({.queries = 257,
                 .keys = 257,
                 .heads = 8,
                 .kv_heads = 2,
                 .head_dim = 128,
                 .sequences = 2,
                 .probability = 0.1});
  all.push_back({.queries = 100,
                 .keys = 700,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 64,
                 .query_offset = 600,
                 .probability = 0.1});
  all.push_back({.queries = 400,
                 .keys = 150,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 96,
                 .window = 90,
                 .query_offset = -70,
                 .probability = 0.1});
  // A bias, with every kernel: several tiles of it, several sequences for a block.
  for (const int64_t head_dim : {6, 64, 128, 200, 300}) {
    for (const double probability : {0.0, 0.1}) {
      AttentionCase c{.queries = 200,
                      .keys = 136,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = head_dim,
                      .sequences = 5,
                      .causal = false,
                      .padding = true,
                      .query_padding = true,
                      .probability = probability,
                      .biased = true};
      all.push_back(c);
      c.queries = c.keys = 129;
      c.causal = true;
      c.query_padding = false;
      c.documents = true;
      all.push_back(c);
    }
  }
  return all;
}

// Fails when a tile of the bias is read or added at another place, a sequence is left out of its
// gradient; when a tile that only some queries see is skipped, the tail of a tile is not masked, a
// draw belongs to another key of its block of eight, or memory of the last tile shows.
TEST(Attention, CudaForwardAgreesAroundTiles) {
  for (const AttentionCase& c : attention_large_cases()) {
    expect_cuda_agrees(c.name(), AttentionForward{c}, Storage::Alike, Policy::Deterministic);
  }
}
TEST(Attention, CudaBackwardAgreesAroundTiles) {
  for (const AttentionCase& c : attention_large_cases()) {
    expect_cuda_agrees(c.name(), AttentionBackward{c}, Storage::Alike, Policy::Deterministic);
  }
}

bool cudnn_may_serve(const AttentionCase& c) {
  return c.probability == 0 && !c.documents && !c.padding && c.head_dim <= 128 &&
         c.head_dim % 8 == 0;
}

// Also fails when dq of the last queries is not added, or that of a tile is added before all of it
// is there.
TEST(Attention, CudaBackwardInOnePassAgreesAroundTiles) {
  for (const AttentionCase& c : attention_large_cases()) {
    if (cudnn_may_serve(c)) continue;
    expect_cuda_agrees(c.name(), AttentionBackward{c}, Storage::Alike, Policy::Varies);
  }
}

// What cuDNN may serve, at lengths of several tiles.
TEST(Attention, CudaLibraryAgreesAroundTiles) {
  for (const AttentionCase& c : attention_large_cases()) {
    if (!cudnn_may_serve(c)) continue;
    expect_cuda_agrees(c.name(), AttentionForward{c}, Storage::Alike, Policy::Varies);
    expect_cuda_agrees(c.name(), AttentionBackward{c}, Storage::Alike, Policy::Varies);
  }
}

// Fails when a run that must repeat gets sums in no fixed order, or another gets the slower
// kernels.
TEST(Attention, CudaBackwardTakesTwoPassesOnlyToRepeat) {
  if (no_gpu()) return;
  for (const bool deterministic : {false, true}) {
    Trial run({.kind = DeviceKind::Cuda,
               .storage = DType::bf16,
               .exact_in = DType::bf16,
               .deterministic = deterministic});
    DispatchLog& log = run.ex().device.dispatch();
    log.enable();
    AttentionBackward{{.queries = 40, .keys = 40, .head_dim = 64, .probability = 0.1}}(run);
    const std::string wanted =
        deterministic ? "own, tensor cores, two passes" : "own, tensor cores, one pass";
    bool found = false;
    for (const DispatchLog::Choice& choice : log.choices()) {
      found = found || (choice.op == "attention_backward" && choice.chosen == wanted);
    }
    EXPECT_TRUE(found) << wanted;
  }
}

void expect_gradients_match(const AttentionCase& c) {
  SCOPED_TRACE(c.name());
  Trial run(gradient_run());
  const AttentionCase::Inputs in = c.inputs(run), d = c.gradients(run);
  const ops::Attention forward = c.forward(run, in);
  const ConstTensor dout = run.input("dout", c.q_shape());
  const auto loss = [&] {
    ops::attention(run.ex(), forward);
    return inner(dout, forward.out);
  };
  loss();
  ops::AttentionBackward backward = AttentionCase::backward(forward, dout, d);
  Tensor dbias;
  if (c.biased) {
    backward.dbias = dbias = run.blank(c.bias_shape());
    ops::fill(run.ex(), {.out = dbias, .value = 0});
  }
  ops::attention_backward(run.ex(), backward);
  expect_gradient("q", in.q, d.q, loss);
  expect_gradient("k", in.k, d.k, loss);
  expect_gradient("v", in.v, d.v, loss);
  if (c.biased) expect_gradient("bias", writable(forward.bias), dbias, loss);
}

// Fails when delta is left out, the scale is missing in dq or dk, or dropout is not in dP; when
// dbias has the scale, or what one sequence adds replaces what another did.
TEST(Attention, GradientsMatchDifferences) {
  const AttentionCase base{.queries = 5, .keys = 5, .heads = 4, .kv_heads = 2, .head_dim = 3};
  AttentionCase c = base;
  expect_gradients_match(c);
  c.causal = false;
  expect_gradients_match(c);
  c.padding = true;
  c.sequences = 2;
  expect_gradients_match(c);
  c = base;
  c.sequences = 2;
  c.documents = c.fused = true;
  expect_gradients_match(c);
  c.probability = 0.3;
  expect_gradients_match(c);
  c = base;
  c.window = 2;
  expect_gradients_match(c);
  c = base;
  c.queries = 3;
  c.query_offset = 2;
  c.probability = 0.5;
  expect_gradients_match(c);
  c.biased = true;
  expect_gradients_match(c);
  c.sequences = 3;
  c.causal = false;
  c.padding = c.query_padding = true;
  c.keys = 6;
  expect_gradients_match(c);
}

}  // namespace
}  // namespace bev::test
