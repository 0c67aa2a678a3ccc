// The checked fronts: what they refuse, what they count, and that they do not allocate. On the null
// device, where nothing else happens. Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "ops/make_device.h"
#include "ops/op_table.h"

namespace {

std::atomic<int64_t> heap_allocations{0};

}  // namespace

// Not inlined: g++ would take malloc and free for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++heap_allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort calls this one. Without it a sanitizer sees its own allocation passed to free().
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++heap_allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace bev::test {
namespace {

constexpr DType kBf16 = DType::bf16, kF32 = DType::f32;

Tensor make(const Shape& shape, DType dtype = kBf16) {
  return tensor_over(static_cast<std::byte*>(nullptr), dtype, shape);
}

class Front : public testing::Test {
 protected:
  std::unique_ptr<Device> device = make_null_device(DeviceKind::Reference, 1);
  Arena none{*device, 0, "none"};
  CostLog costs;
  Exec ex{*device, device->compute_stream(), none, none, none, &costs};

  // The message of the Internal error that `call` throws; empty when it throws none.
  template <class Call>
  std::string refusal(Call call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Internal) << error.what();
      return error.what();
    }
    return "";
  }

  template <class Call>
  void expect_cost(double flops, double bytes, Call call) {
    costs.clear();
    call();
    const Cost cost = total_of(costs.records());
    EXPECT_EQ(cost.flops, flops);
    EXPECT_EQ(cost.bytes_moved, bytes);
  }
};

ops::Matmul product() { return {.a = make({3, 5}), .b = make({5, 4}), .out = make({3, 4})}; }

// Fails when the message leaves out whose shape is wrong.
TEST_F(Front, NamesOpTensorAndShapes) {
  ops::Matmul m = product();
  m.b = make({6, 4});
  const std::string message = refusal([&] { ops::matmul(ex, m); });
  for (const char* part : {"matmul", "b", "bf16", "[6, 4]", "[5, 4]"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
}

// Fails when an operand that the epilogue does not read, or one it needs, goes unnoticed.
TEST_F(Front, MatmulRefuses) {
  using ops::Epilogue;
  const auto refuses = [&](auto change) {
    ops::Matmul m = product();
    change(m);
    return !refusal([&] { ops::matmul(ex, m); }).empty();
  };
  EXPECT_FALSE(refuses([](ops::Matmul&) {}));
  EXPECT_FALSE(refuses([](ops::Matmul& m) { m.out = make({3, 4}, kF32); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.out = make({3, 4}, DType::f64); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.out = make({3, 4}, DType::f16); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.b = make({5, 4}, kF32); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.a = make({3, 5}, DType::i32); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.a = make({3, 5, 1}); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.ta = ops::Transpose::Yes; }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.bias = make({4}); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.epilogue = Epilogue::Bias; }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.epilogue = Epilogue::ActivateBackward; }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.pre_activation = make({3, 4}); }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) {
    m.epilogue = Epilogue::Activate;
    m.activation = Activation::SwiGlu;
  }));
  EXPECT_TRUE(refuses([](ops::Matmul& m) { m.dbias = make({3}); }));  // not f32
  EXPECT_FALSE(refuses([](ops::Matmul& m) { m.dbias = make({3}, kF32); }));
}

// Fails when a last dim with gaps is accepted: no backend looks at that stride.
TEST_F(Front, RefusesAGapInTheLastDim) {
  ops::Matmul m = product();
  m.a.stride[1] = 2;
  EXPECT_NE(refusal([&] { ops::matmul(ex, m); }).find("stride"), std::string::npos);
}

// Fails when a device with memory is handed a null pointer.
TEST_F(Front, RefusesMissingMemory) {
  const auto host = make_device(DeviceKind::Reference, 1);
  Arena empty(*host, 0, "empty");
  Exec on_host{*host, host->compute_stream(), empty, empty, empty};
  EXPECT_NE(refusal([&] { ops::fill(on_host, {.out = make({2}, DType::f64)}); }).find("memory"),
            std::string::npos);
  EXPECT_EQ(refusal([&] { ops::fill(on_host, {.out = make({0}, DType::f64)}); }), "");
}

// One representative mistake per op. Fails when a front checks nothing.
TEST_F(Front, EveryOpRefusesAWrongOperand) {
  const Tensor x = make({4, 6}), w = make({6}), stat = make({4}, kF32), w32 = make({6}, kF32);
  const Tensor i32 = make({4}, DType::i32), q = make({4, 2, 6}), kv = make({4, 1, 6});
  const Tensor lse = make({1, 2, 4}, kF32), bad = make({4, 5});
  const Tensor flat = make({4}), f64 = make({1}, DType::f64), pair = make({2}, DType::f64);
  const auto refuses = [&](auto call) { EXPECT_NE(refusal(call), ""); };
  const auto rms = NormKind::RmsNorm;
  const auto relu = Activation::Relu;
  refuses([&] { ops::norm(ex, {rms, x, w, {}, 1e-5, bad, {}, stat}); });
  refuses([&] { ops::norm(ex, {rms, x, w, w, 1e-5, x, {}, stat}); });                   // a bias
  refuses([&] { ops::norm(ex, {NormKind::LayerNorm, x, w, {}, 1e-5, x, {}, stat}); });  // no mean
  refuses([&] { ops::residual_norm(ex, {x, bad, {}, x, rms, w, {}, 1e-5, x, {}, stat}); });
  refuses([&] { ops::norm_backward(ex, {rms, x, x, w, {}, stat, {}, x, w, {}}); });  // dweight bf16
  refuses([&] { ops::norm_backward(ex, {rms, x, x, w, {}, stat, {}, x, w32, {}, w}); });  // bf16
                                                                                          // sums
  refuses([&] { ops::dropout(ex, {x, {.probability = 0.5}, x}); });                       // no rows
  refuses([&] { ops::dropout(ex, {x, {.probability = 1}, x}); });
  refuses([&] { ops::residual_add(ex, {x, x, {}, bad}); });
  refuses([&] { ops::attention(ex, {{q, kv, q, 1, 1, {}, {}}, q, lse}); });
  refuses([&] { ops::attention(ex, {{q, kv, kv, 3, 1, {}, {}}, q, lse}); });  // 4 tokens, 3
                                                                              // sequences
  refuses([&] { ops::attention(ex, {{kv, q, q, 1, 1, {}, {}}, kv, lse}); });  // 1 head, 2 kv heads
  refuses([&] { ops::attention_backward(ex, {{q, kv, kv, 1, 1, {}, {}}, q, q, lse, q, kv, q}); });
  const auto biased = [&](const Tensor& bias, const Tensor& dbias) {
    ops::AttentionBackward a{{q, kv, kv, 1, 1, {}, {}}, q, q, lse, q, kv, kv};
    a.bias = bias;
    a.dbias = dbias;
    return refusal([&] { ops::attention_backward(ex, a); });
  };
  const Tensor pairs = make({2, 4, 4}), pairs32 = make({2, 4, 4}, kF32);
  EXPECT_EQ(biased(pairs, {}), "");
  EXPECT_EQ(biased(pairs, pairs32), "");
  EXPECT_NE(biased(pairs32, {}), "");
  EXPECT_NE(biased(make({1, 4, 4}), {}), "");
  EXPECT_NE(biased(pairs, pairs), "");
  EXPECT_NE(biased({}, pairs32), "");  // a gradient of nothing
  const auto looks_up = [&](const Tensor& table, int64_t most) {
    return refusal([&] { ops::relative_bias(ex, {table, {.max_distance = most}, pairs}); });
  };
  EXPECT_EQ(looks_up(make({8, 2}), 20), "");
  EXPECT_NE(looks_up(make({8, 3}), 20), "");
  EXPECT_NE(looks_up(make({8, 2}, kF32), 20), "");
  EXPECT_NE(looks_up(make({8, 2}), 2), "");  // as many distances as have a bucket each
  EXPECT_NE(looks_up(make({3, 2}), 20), "");
  EXPECT_NE(looks_up(make({ops::kMostRelativeBuckets + 1, 2}), 2000), "");
  refuses([&] { ops::relative_bias_backward(ex, {pairs, {}, make({32, 2}, kF32)}); });  // bf16
  refuses([&] { ops::relative_bias_backward(ex, {pairs32, {}, make({32, 3}, kF32)}); });
  refuses([&] { ops::rope(ex, {q, i32, make({9, 4}, kF32), make({9, 4}, kF32)}); });  // 8 of 6 dims
  refuses([&] { ops::rope(ex, {q, i32, make({9, 3}), make({9, 3})}); });              // bf16 angles
  refuses([&] { ops::activate(ex, {Activation::SwiGlu, x, x}); });
  refuses([&] { ops::activate_backward(ex, {relu, x, x, bad}); });
  refuses([&] { ops::embedding(ex, {x, stat, 0, false, x}); });  // ids f32
  refuses([&] { ops::embedding_backward(ex, {x, i32, 0, make({9, 6}, DType::f64)}); });
  refuses([&] { ops::softmax_stats(ex, {x, i32, 0, make({4, 3}, kF32)}); });
  refuses([&] {
    ops::cross_entropy(ex, {x, make({4, 4}, kF32), i32, stat, 1, 6, 0, 0, {}, stat});  // 7 of 6
  });
  refuses([&] { ops::cross_entropy(ex, {x, {}, i32, stat, 0, 7, 0, 0, {}, stat}); });  // 6 of 7
  refuses([&] { ops::copy(ex, {x, bad}); });
  refuses([&] { ops::copy(ex, {i32, stat}); });
  refuses([&] { ops::fill(ex, {Tensor{}, 0}); });
  refuses([&] { ops::squared_norm(ex, {x, stat}); });
  refuses([&] { ops::squared_norm(ex, {slice(x, 1, 0, 3), f64}); });  // gaps
  refuses([&] { ops::weighted_sum(ex, {flat, stat, {}, pair}); });    // bf16
  refuses([&] { ops::weighted_sum(ex, {stat, stat, pair, pair}); });  // two scales
  refuses([&] { ops::hash_bits(ex, {x, f64}); });
  refuses([&] { ops::hash_bits(ex, {slice(x, 1, 0, 3), make({1}, DType::i64)}); });  // gaps
  const Tensor cache = make({8, 1, 6}), pages = make({4, 2}, DType::i32);
  refuses([&] { ops::kv_cache_write(ex, {kv, q, i32, cache, cache}); });
  refuses([&] { ops::kv_cache_write(ex, {kv, kv, stat, cache, cache}); });  // places f32
  const auto decodes = [&](auto change) {
    ops::DecodeAttention d{q, kv, kv, i32, pages, 4, 1, 0, cache, cache, q};
    change(d);
    return refusal([&] { ops::decode_attention(ex, d); });
  };
  EXPECT_EQ(decodes([](ops::DecodeAttention&) {}), "");
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.page = 3; }), "");  // 8 places
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.page = 0; }), "");
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.window = -1; }), "");
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.keys = make({8, 2, 6}); }), "");
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.pages = make({4}, DType::i32); }), "");
  EXPECT_EQ(decodes([](ops::DecodeAttention& d) { d.bias = make({2, 8}); }), "");
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.bias = make({2, 7}); }), "");  // 8 places
  EXPECT_NE(decodes([](ops::DecodeAttention& d) { d.bias = make({1, 8}); }), "");
  const Tensor options = make({4, ops::kChoiceColumns}, DType::f64),
               draws = make({4, 2}, DType::i64);
  const auto chooses = [&](auto change) {
    ops::SampleTokens c{x, 5, options, draws, make({4, 1}, DType::i32), i32, stat};
    change(c);
    return refusal([&] { ops::sample_tokens(ex, c); });
  };
  EXPECT_EQ(chooses([](ops::SampleTokens&) {}), "");
  EXPECT_EQ(chooses([](ops::SampleTokens& c) { c.seen = {}; }), "");
  EXPECT_NE(chooses([](ops::SampleTokens& c) { c.classes = 7; }), "");  // 6 columns
  EXPECT_NE(chooses([](ops::SampleTokens& c) { c.classes = 0; }), "");
  EXPECT_NE(chooses([](ops::SampleTokens& c) { c.options = make({4, 5}, kF32); }), "");
  EXPECT_NE(chooses([](ops::SampleTokens& c) { c.logprobs = make({4}); }), "");  // bf16
  EXPECT_NE(chooses([](ops::SampleTokens& c) { c.seen = make({4, 2}, DType::i32); }), "");
  const Tensor state = make({kUpdateStates}, DType::f64);
  const Tensor decision = make({kUpdateDecisions}, DType::f64);
  refuses([&] { ops::loss_factors(ex, {pair, pair, {}, pair}); });
  refuses([&] { ops::loss_factors(ex, {pair, f64, {}, f64}); });
  refuses([&] { ops::decide_update(ex, {f64, pair, {}, state, pair}); });
  refuses([&] { ops::adamw(ex, {flat, {}, stat, stat, make({4}, DType::f64), decision}); });
  refuses([&] { ops::adamw(ex, {flat, {}, stat, stat, stat, pair}); });
  refuses([&] { ops::adamw(ex, {flat, {}, stat, stat, stat, decision, 0, 0, 0, true, 0, 3}); });
  refuses([&] { ops::sgd(ex, {flat, {}, w32, stat, decision}); });
  const Tensor chunks = make({2, ops::kChunkFields}, DType::i64);
  const Tensor squares = make({2, 2}, DType::f64), rows = make({3, 2}, DType::f64);
  const Tensor described = make({3, kLambParams}, DType::f64);
  const auto moments = [&](auto change) {
    ops::LambMoments a{stat, stat, stat, {}, stat, decision, chunks, {}, true, squares};
    change(a);
    return refusal([&] { ops::lamb_moments(ex, a); });
  };
  EXPECT_EQ(moments([](ops::LambMoments&) {}), "");
  EXPECT_EQ(moments([&](ops::LambMoments& a) { a.grad = flat; }), "");  // bf16
  EXPECT_NE(moments([&](ops::LambMoments& a) { a.weights = flat; }), "");
  EXPECT_NE(moments([&](ops::LambMoments& a) { a.q = stat; }), "");
  EXPECT_NE(moments([](ops::LambMoments& a) { a.rule.has_noise = true; }), "");
  EXPECT_NE(moments([&](ops::LambMoments& a) { a.squares = rows; }), "");
  EXPECT_NE(moments([](ops::LambMoments& a) { a.chunks = make({2, 3}, DType::i64); }), "");
  const auto updates = [&](auto change) {
    ops::LambUpdate a{flat, stat, stat, stat, {}, {}, decision, chunks, rows, {}, true};
    change(a);
    return refusal([&] { ops::lamb_update(ex, a); });
  };
  EXPECT_EQ(updates([](ops::LambUpdate&) {}), "");
  EXPECT_NE(updates([](ops::LambUpdate& a) { a.master = {}; }), "");
  EXPECT_NE(updates([&](ops::LambUpdate& a) { a.grad = stat; }), "");
  EXPECT_NE(updates([&](ops::LambUpdate& a) { a.ratios = described; }), "");
  const auto ratios = [&](auto change) {
    ops::LambRatios r{rows, {}, described, decision, {}, TrustRatio::Norms, 1, rows};
    change(r);
    return refusal([&] { ops::lamb_ratios(ex, r); });
  };
  EXPECT_EQ(ratios([](ops::LambRatios&) {}), "");
  EXPECT_NE(ratios([](ops::LambRatios& r) { r.kind = TrustRatio::Whole; }), "");
  EXPECT_NE(ratios([&](ops::LambRatios& r) { r.whole = rows; }), "");
  EXPECT_NE(ratios([&](ops::LambRatios& r) { r.squares = described; }), "");
  refuses([&] { ops::sum_segments(ex, {rows, chunks, rows}); });
}

// Fails when accumulating does not count the read, or flops are counted per multiply-add.
TEST_F(Front, CountsProducts) {
  ops::Matmul m = product();
  expect_cost(2 * 3 * 4 * 5, 2 * (15 + 20 + 12), [&] { ops::matmul(ex, m); });
  m.out = make({3, 4}, kF32);
  m.accumulate = true;
  m.dbias = make({3}, kF32);
  expect_cost(120, 2 * (15 + 20) + 4 * 2 * (12 + 3), [&] { ops::matmul(ex, m); });
}

// Pairs counted one by one: 8 queries, 8 keys. Fails when the diagonal is counted twice or not at
// all.
TEST_F(Front, CountsVisiblePairs) {
  const Tensor q = make({16, 4, 3}), kv = make({16, 2, 3}), lse = make({2, 4, 8}, kF32);
  const auto pairs = [&](const ops::AttentionMask& mask) {
    costs.clear();
    ops::attention(ex, {{q, kv, kv, 2, 1, mask, {}}, q, lse});
    ops::attention_backward(ex, {{q, kv, kv, 2, 1, mask, {}}, q, q, lse, q, kv, kv});
    const double forward = costs.records()[0].flops;
    EXPECT_EQ(costs.records()[1].flops, 2.5 * forward);
    return forward / (4 * 2 * 4 * 3);  // sequences, heads, head_dim
  };
  EXPECT_EQ(pairs({.causal = false}), 64);
  EXPECT_EQ(pairs({.causal = true}), 36);
  EXPECT_EQ(pairs({.causal = true, .window = 3}), 1 + 2 + 6 * 3);
  EXPECT_EQ(pairs({.causal = true, .query_offset = -2}), 21);
  EXPECT_EQ(pairs({.causal = true, .query_offset = 100}), 64);
  expect_cost(4 * 36 * 24, 2 * (2 * 192 + 2 * 96) + 4 * 64,
              [&] { ops::attention(ex, {{q, kv, kv, 2, 1, {}, {}}, q, lse}); });
}

// The rule of docs/performance.md: half of the square, whatever the window; four GEMMs backward.
TEST_F(Front, CountsModelFlopsOfAttention) {
  const Tensor q = make({16, 4, 3}), kv = make({16, 2, 3}), lse = make({2, 4, 8}, kF32);
  costs.set_place(Phase::Forward, 0);
  const auto model_flops = [&](const ops::AttentionMask& mask) {
    costs.clear();
    ops::attention(ex, {{q, kv, kv, 2, 1, mask, {}}, q, lse});
    ops::attention_backward(ex, {{q, kv, kv, 2, 1, mask, {}}, q, q, lse, q, kv, kv});
    const double forward = costs.records()[0].model_flops;
    EXPECT_EQ(costs.records()[0].dims, (std::array<int64_t, 4>{2, 8, 4, 3}));
    EXPECT_EQ(costs.records()[1].model_flops, 2 * forward);
    return forward;
  };
  EXPECT_EQ(model_flops({.causal = false}), 4 * 2 * 64 * 4 * 3);
  EXPECT_EQ(model_flops({.causal = true}), 4 * 2 * 32 * 4 * 3);
  EXPECT_EQ(model_flops({.causal = true, .window = 3}), 4 * 2 * 32 * 4 * 3);
}

// y = x W^T, dx = dy W, dW = dy^T x. Fails when a GEMM is put into another phase, or one that is
// computed again or updates a parameter counts as the model's.
TEST_F(Front, RecordsThePhaseOfProducts) {
  using ops::Transpose;
  const ops::Matmul y{
      .a = make({3, 5}), .b = make({4, 5}), .tb = Transpose::Yes, .out = make({3, 4})};
  const ops::Matmul dx{.a = make({3, 4}), .b = make({4, 5}), .out = make({3, 5})};
  const ops::Matmul dw{.a = make({3, 4}),
                       .b = make({3, 5}),
                       .ta = Transpose::Yes,
                       .out = make({4, 5}, kF32),
                       .accumulate = true};
  const auto record = [&](Phase phase, const ops::Matmul& m) {
    costs.clear();
    costs.set_place(phase, 3);
    ops::matmul(ex, m);
    return costs.records()[0];
  };
  for (const Phase phase : {Phase::Forward, Phase::BackwardInput}) {
    EXPECT_EQ(record(phase, dx).phase, Phase::BackwardInput);
    EXPECT_EQ(record(phase, dw).phase, Phase::BackwardWeight);
    EXPECT_EQ(record(phase, dw).model_flops, 120);
    EXPECT_EQ(record(phase, y).phase, phase);
    EXPECT_EQ(record(phase, y).recomputed, phase != Phase::Forward);
    EXPECT_EQ(total_of({costs.records()}).model_flops, phase == Phase::Forward ? 120 : 0);
  }
  EXPECT_EQ(record(Phase::Update, y).phase, Phase::Update);
  EXPECT_EQ(record(Phase::Update, y).model_flops, 0);
  const OpCost r = record(Phase::Forward, dw);
  EXPECT_EQ(r.op, "matmul");
  EXPECT_EQ(r.dims, (std::array<int64_t, 4>{4, 5, 3, 0}));
  EXPECT_EQ(r.dtype, kBf16);
  EXPECT_EQ(r.out, kF32);
  EXPECT_TRUE(r.ta && !r.tb && r.accumulate);
  EXPECT_EQ(r.stage, 3);
}

// Fails when an op of a forward pass that runs in a backward instruction is not flagged.
TEST_F(Front, FlagsRecomputedOps) {
  const Tensor x = make({4, 6}), wide = make({4, 12});
  costs.set_place(Phase::BackwardInput, 0);
  ops::activate(ex, {Activation::SwiGlu, wide, x});
  ops::activate_backward(ex, {Activation::SwiGlu, x, wide, wide});
  EXPECT_TRUE(costs.records()[0].recomputed);
  EXPECT_FALSE(costs.records()[1].recomputed);
}

// Fails when a gather counts its whole table.
TEST_F(Front, CountsRowsOfTables) {
  expect_cost(0, 2 * 2 * 30 + 4 * 5, [&] {
    ops::embedding(ex, {make({1000, 6}), make({5}, DType::i32), 0, false, make({5, 6})});
  });
  expect_cost(0, 2 * 30 + 4 * 5 + 2 * 4 * 30, [&] {
    ops::embedding_backward(ex, {make({5, 6}), make({5}, DType::i32), 0, make({1000, 6}, kF32)});
  });
}

// Logits are read once, and not at all where the statistics say enough. Fails when finding them is
// counted as a read of its own.
TEST_F(Front, CountsTheLoss) {
  const Tensor x = make({4, 6}), stats = make({4, ops::kSoftmaxStats}, kF32);
  const Tensor i32 = make({4}, DType::i32), stat = make({4}, kF32);
  constexpr double kRows = 3 * 4 * 4, kLogits = 2 * 24, kStats = 4 * 16;
  const auto expect = [&](double bytes, const Tensor& given, const Tensor& dlogits) {
    expect_cost(0, bytes, [&] {
      ops::cross_entropy(ex, {x, given, i32, stat, 0, 6, 0, 0, {}, stat, dlogits});
    });
  };
  expect(kRows + 2 * kLogits, {}, x);
  expect(kRows + kLogits, {}, {});
  expect(kRows + kStats + 2 * kLogits, stats, x);
  expect(kRows + kStats, stats, {});
}

// Fails when the param of an update with a master is counted as read.
TEST_F(Front, CountsUpdates) {
  const Tensor state = make({10}, kF32), decision = make({kUpdateDecisions}, DType::f64);
  constexpr double kDecision = 8 * kUpdateDecisions;
  expect_cost(0, 20 + 3 * 80 + 40 + kDecision,
              [&] { ops::adamw(ex, {make({10}), state, state, state, state, decision}); });
  expect_cost(0, 2 * 20 + 80 + 40 + kDecision,
              [&] { ops::sgd(ex, {make({10}), {}, state, state, decision}); });
}

// 42 bytes per element: 24 in the first pass, 18 in the second.
TEST_F(Front, CountsThePassesOfLamb) {
  const Tensor state = make({10}, kF32), decision = make({kUpdateDecisions}, DType::f64);
  const Tensor chunks = make({1, ops::kChunkFields}, DType::i64);
  const Tensor squares = make({1, 2}, DType::f64);
  constexpr double kTables = 8 * kUpdateDecisions + 8 * ops::kChunkFields;
  expect_cost(0, 240 + kTables + 16, [&] {
    ops::lamb_moments(ex, {state, state, state, {}, state, decision, chunks, {}, true, squares});
  });
  expect_cost(0, 180 + kTables, [&] {
    ops::lamb_update(
        ex, {make({10}), state, state, state, {}, {}, decision, chunks, squares, {}, true});
  });
}

// The step path. Fails when a check builds its message, or a shape as a vector, before it fails.
TEST_F(Front, DoesNotAllocate) {
  const Tensor x = make({4, 6}), w = make({6}), stat = make({4}, kF32), w32 = make({6}, kF32);
  const Tensor wide = make({4, 12}), i32 = make({4}, DType::i32), rows = make({4}, DType::i64);
  const Tensor q = make({4, 2, 6}), kv = make({4, 1, 6}), lse = make({2, 2, 2}, kF32);
  const Tensor stats = make({4, 4}, kF32), angles = make({9, 3}, kF32);
  const Tensor f64 = make({1}, DType::f64), pair = make({2}, DType::f64), flat = make({4});
  const Tensor state = make({kUpdateStates}, DType::f64), hash = make({1}, DType::i64);
  const Tensor decision = make({kUpdateDecisions}, DType::f64);
  const ops::Dropout drops{.probability = 0.1, .key = 1, .rows = rows};
  const Tensor cache = make({8, 1, 6}), pages = make({4, 2}, DType::i32);
  const Tensor options = make({4, ops::kChoiceColumns}, DType::f64),
               draws = make({4, 2}, DType::i64);
  const Tensor seen = make({4, 1}, DType::i32);
  const Tensor chunks = make({2, ops::kChunkFields}, DType::i64);
  const Tensor segments = make({2, 2}, DType::i64), squares = make({2, 2}, DType::f64);
  const Tensor described = make({2, kLambParams}, DType::f64);
  const auto layer = NormKind::LayerNorm;
  ex.cost = nullptr;
  const int64_t before = heap_allocations;
  ops::matmul(ex, product());
  ops::norm(ex, {layer, x, w, w, 1e-5, x, stat, stat});
  ops::residual_norm(ex, {x, x, drops, x, layer, w, w, 1e-5, x, stat, stat});
  ops::norm_backward(ex, {layer, x, x, w, stat, stat, x, x, w32, w32, w32});
  ops::dropout(ex, {x, drops, x});
  ops::residual_add(ex, {x, x, drops, x});
  ops::attention(ex, {{q, kv, kv, 2, 1, {.document_start = i32}, {}}, q, lse});
  ops::attention_backward(ex, {{q, kv, kv, 2, 1, {}, {}}, q, q, lse, q, kv, kv});
  ops::relative_bias(ex, {make({8, 2}), {}, make({2, 4, 4})});
  ops::relative_bias_backward(ex, {lse, {}, make({8, 2}, kF32)});
  ops::rope(ex, {q, i32, angles, angles});
  ops::activate(ex, {Activation::SwiGlu, wide, x});
  ops::activate_backward(ex, {Activation::SwiGlu, x, wide, wide});
  ops::embedding(ex, {x, i32, 0, true, x});
  ops::embedding_backward(ex, {x, i32, 0, make({9, 6}, kF32)});
  ops::softmax_stats(ex, {x, i32, 0, stats});
  ops::cross_entropy(ex, {x, stats, i32, stat, 0, 6, 0, 0, f64, stat, x});
  ops::cross_entropy(ex, {x, {}, i32, stat, 0, 6, 0, 0, f64, stat, x});
  ops::copy(ex, {x, x});
  ops::fill(ex, {x, 1});
  ops::squared_norm(ex, {x, f64});
  ops::weighted_sum(ex, {stat, stat, f64, pair});
  ops::weighted_sum(ex, {stat, stat, {}, pair});
  ops::hash_bits(ex, {x, hash});
  ops::kv_cache_write(ex, {kv, kv, i32, cache, cache});
  ops::decode_attention(ex, {q, kv, kv, i32, pages, 4, 1, 0, cache, cache, q});
  ops::sample_tokens(ex, {x, 6, options, draws, seen, i32, stat});
  ops::loss_factors(ex, {pair, f64, {}, pair});
  ops::decide_update(ex, {f64, pair, {}, state, decision});
  ops::adamw(ex, {flat, stat, stat, stat, stat, decision});
  ops::sgd(ex, {flat, stat, stat, stat, decision});
  ops::lamb_moments(ex, {stat, stat, stat, {}, stat, decision, chunks, {}, true, squares});
  ops::sum_segments(ex, {squares, segments, squares});
  ops::lamb_ratios(ex, {squares, {}, described, decision, {}, TrustRatio::Norms, 1, squares});
  ops::lamb_update(ex, {flat, stat, stat, stat, {}, {}, decision, chunks, squares, {}, true});
  EXPECT_EQ(heap_allocations, before);
}

// Fails when the reference computes in a type it does not have.
TEST_F(Front, ReferenceRefusesOtherFloats) {
  const auto host = make_device(DeviceKind::Reference, 1);
  Arena arena(*host, 4096, "operands");
  Exec on_host{*host, host->compute_stream(), arena, arena, arena};
  const Tensor x = arena.allocate({2, 2}, kF32, "x");
  try {
    ops::dropout(on_host, {x, {}, x});
    FAIL() << "accepted f32";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("dropout"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("f32"), std::string::npos);
  }
}

}  // namespace
}  // namespace bev::test
