// Every test names the fault that makes it fail.
#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr int64_t kTableRows = 50;

struct Tables {
  ConstTensor cosine, sine;
};

Tables tables(Trial& run, int64_t half) {
  std::vector<double> cosine, sine;
  for (int64_t position = 0; position < kTableRows; ++position) {
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = -static_cast<double>(i) / static_cast<double>(half);
      const double angle = static_cast<double>(position) * std::pow(100.0, exponent);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  }
  return {run.given({kTableRows, half}, cosine, Element::Sum),
          run.given({kTableRows, half}, sine, Element::Sum)};
}

ConstTensor positions(Trial& run, int64_t tokens) {
  return run.integers({tokens}, DType::i32, random_integers(3, tokens, 0, kTableRows));
}

struct Turn {
  int64_t tokens, heads, head_dim, half;
  bool inverse = false;

  std::string name() const {
    return label("tokens={} heads={} head_dim={} half={} inverse={}", tokens, heads, head_dim, half,
                 inverse);
  }
  void operator()(Trial& run) const {
    const Tensor x = run.updated("x", {tokens, heads, head_dim});
    run.compare("x", x, {.reduction = 2});
    const auto [cosine, sine] = tables(run, half);
    ops::rope(run.ex(), {.x = x,
                         .positions = positions(run, tokens),
                         .cosine = cosine,
                         .sine = sine,
                         .inverse = inverse});
  }
};

// Fails when pairs are adjacent dims instead of halves, when dims beyond 2 * half are turned, or
// when the token's index is used for its position.
TEST(Rope, CpuAgrees) {
  for (const bool inverse : {false, true}) {
    for (const Turn& c :
         {Turn{1, 1, 2, 1, inverse}, Turn{0, 2, 8, 4, inverse}, Turn{3, 5, 6, 3, inverse},
          Turn{7, 3, 64, 32, inverse}, Turn{5, 2, 64, 16, inverse}, Turn{2, 3, 17, 8, inverse},
          Turn{9, 1, 34, 17, inverse}, Turn{33, 4, 20, 5, inverse}, Turn{65, 2, 16, 7, inverse},
          Turn{2, 2, 130, 63, inverse}, Turn{kSharedRows, 5, 130, 63, inverse}}) {
      expect_cpu_agrees(c.name(), c);
    }
  }
}

TEST(Rope, CudaAgrees) {
  for (const bool inverse : {false, true}) {
    for (const Turn& c :
         {Turn{1, 1, 2, 1, inverse}, Turn{0, 2, 8, 4, inverse}, Turn{3, 5, 6, 3, inverse},
          Turn{7, 3, 64, 32, inverse}, Turn{5, 2, 64, 16, inverse}, Turn{2, 3, 17, 8, inverse},
          Turn{9, 1, 34, 17, inverse}, Turn{33, 4, 20, 5, inverse}, Turn{65, 2, 16, 7, inverse},
          Turn{2, 2, 130, 63, inverse}, Turn{kSharedRows, 5, 130, 63, inverse},
          Turn{5, 4, 96, 24, inverse}, Turn{5, 4, 24, 12, inverse}, Turn{300, 12, 64, 32, inverse},
          Turn{65, 32, 128, 64, inverse}}) {
      expect_cuda_agrees(c.name(), c);
    }
  }
}

// A view of some heads of a fused row. Fails when heads outside the view are turned: Trial reports
// writes outside a view only between rows, so the neighbours are compared as well.
struct FusedTurn {
  void operator()(Trial& run) const {
    const int64_t tokens = 6, head_dim = 8;
    const Tensor fused = run.updated("fused", {tokens, 5 * head_dim});
    run.compare("fused", fused, {.reduction = 2});
    const auto [cosine, sine] = tables(run, head_dim / 2);
    ops::rope(run.ex(), {.x = split_last(slice(fused, 1, head_dim, 2 * head_dim), head_dim),
                         .positions = positions(run, tokens),
                         .cosine = cosine,
                         .sine = sine});
  }
};

TEST(Rope, CpuTurnsOnlyTheHeadsOfItsView) { expect_cpu_agrees("fused rows", FusedTurn{}); }
TEST(Rope, CudaTurnsOnlyTheHeadsOfItsView) { expect_cuda_agrees("fused rows", FusedTurn{}); }

// Fails when inverse is ignored, or negates the cosine.
TEST(Rope, InverseTurnsBack) {
  Trial run(gradient_run());
  const Tensor x = run.updated("x", {5, 2, 10});
  const std::vector<double> before = run.read(x);
  const auto [cosine, sine] = tables(run, 4);
  ops::Rope args{.x = x, .positions = positions(run, 5), .cosine = cosine, .sine = sine};
  ops::rope(run.ex(), args);
  EXPECT_NE(run.read(x), before);
  args.inverse = true;
  ops::rope(run.ex(), args);
  const std::vector<double> after = run.read(x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-14);
}

// q . k depends on the difference of their positions only. Fails when the two halves turn in
// opposite senses.
TEST(Rope, ProductsDependOnDistanceOnly) {
  const auto product = [](int64_t query_position, int64_t key_position) {
    Trial run(TrialSpec{});
    const Tensor q = run.updated("q", {1, 1, 8}), k = run.updated("k", {1, 1, 8});
    const auto [cosine, sine] = tables(run, 4);
    const std::vector<int64_t> at_q{query_position}, at_k{key_position};
    ops::rope(run.ex(), {q, run.integers({1}, DType::i32, at_q), cosine, sine});
    ops::rope(run.ex(), {k, run.integers({1}, DType::i32, at_k), cosine, sine});
    return inner(q, k);
  };
  EXPECT_NEAR(product(7, 3), product(24, 20), 1e-12);
  EXPECT_GT(std::abs(product(7, 3) - product(7, 4)), 1e-3);
}

// Fails when the inverse is not the transpose of the turn.
TEST(Rope, GradientsMatchDifferences) {
  for (const int64_t half : {3, 2}) {
    Trial run(gradient_run());
    const Shape shape{4, 2, 6};
    const Tensor x = run.updated("x", shape), dx = run.updated("dy", shape);
    const ConstTensor dy = run.input("dy", shape);
    const Tensor y = run.blank(shape);
    const auto [cosine, sine] = tables(run, half);
    const ConstTensor at = positions(run, 4);
    ops::rope(run.ex(), {dx, at, cosine, sine, true});
    expect_gradient("x", x, dx, [&] {
      ops::copy(run.ex(), {.in = x, .out = y});
      ops::rope(run.ex(), {y, at, cosine, sine});
      return inner(dy, y);
    });
  }
}

}  // namespace
}  // namespace bev::test
