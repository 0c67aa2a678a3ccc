// What attention means, as equations between calls: each holds whatever the implementation and is
// checked on the reference, which defines the op. Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include "base/philox.h"
#include "ops/attention_case.h"

namespace bev::test {
namespace {

constexpr double kClose = 1e-13;

// Calls the op on given views and returns out [queries, heads, head_dim].
struct Call {
  Trial& run;
  ConstTensor q, k, v;
  ops::AttentionMask mask{};
  int64_t sequences = 1;
  ops::AttentionDropout dropout{};

  std::vector<double> operator()() const {
    const Tensor out = run.blank(q.shape);
    const Tensor lse = run.blank({sequences, q.shape[1], q.shape[0] / sequences});
    ops::attention(run.ex(), {{.q = q,
                               .k = k,
                               .v = v,
                               .sequences = sequences,
                               .scale = 0.5,
                               .mask = mask,
                               .dropout = dropout},
                              out,
                              lse});
    return run.read(out);
  }
};

struct Operands {
  ConstTensor q, k, v;
};

Operands draw(Trial& run, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t head_dim = 4) {
  return {run.input("q", {tokens, heads, head_dim}), run.input("k", {tokens, kv_heads, head_dim}),
          run.input("v", {tokens, kv_heads, head_dim})};
}

void expect_same(const std::vector<double>& found, std::span<const double> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], kClose) << i;
}

// Fails when documents see each other, or document_start is read by the wrong query.
TEST(AttentionMeaning, PackedDocumentsEqualSeparateOnes) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 12, 2, 1);
  const std::vector<int64_t> first{0, 0, 0, 3, 3, 3, 3, 7, 8, 8, 8, 8};
  const auto packed =
      Call{run, q, k, v, {.document_start = run.integers({12}, DType::i32, first)}}();
  std::vector<double> apart;
  for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 3}, {3, 4}, {7, 1}, {8, 4}}) {
    const auto part = Call{run, slice(q, 0, begin, count), slice(k, 0, begin, count),
                           slice(v, 0, begin, count)}();
    apart.insert(apart.end(), part.begin(), part.end());
  }
  expect_same(packed, apart);
}

// Fails when a sequence sees the keys of its neighbour.
TEST(AttentionMeaning, SequencesEqualSeparateCalls) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 15, 2, 2);
  for (const bool causal : {true, false}) {
    const auto together = Call{run, q, k, v, {.causal = causal}, 3}();
    std::vector<double> apart;
    for (const int64_t begin : {0, 5, 10}) {
      const auto part = Call{run,
                             slice(q, 0, begin, 5),
                             slice(k, 0, begin, 5),
                             slice(v, 0, begin, 5),
                             {.causal = causal}}();
      apart.insert(apart.end(), part.begin(), part.end());
    }
    expect_same(together, apart);
  }
}

// Fails when query heads are dealt to kv heads in turn instead of in groups.
TEST(AttentionMeaning, GroupedHeadsReadTheirKvHead) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 6, 6, 2);
  const auto grouped = Call{run, q, k, v}();
  for (int64_t head = 0; head < 6; ++head) {
    const auto alone =
        Call{run, slice(q, 1, head, 1), slice(k, 1, head / 3, 1), slice(v, 1, head / 3, 1)}();
    for (size_t token = 0; token < 6; ++token) {
      for (size_t d = 0; d < 4; ++d) {
        const size_t at = (token * 6 + static_cast<size_t>(head)) * 4 + d;
        EXPECT_NEAR(grouped[at], alone[token * 4 + d], kClose);
      }
    }
  }
}

// Fails when the offset is off by one.
TEST(AttentionMeaning, OffsetQueriesEqualTheTailOfAll) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 10, 2, 1);
  for (const int64_t window : {0, 3}) {
    const auto all = Call{run, q, k, v, {.window = window}}();
    const auto tail = Call{run, slice(q, 0, 6, 4), k, v, {.window = window, .query_offset = 6}}();
    expect_same(tail, std::span(all).last(tail.size()));
  }
}

// A window of w keys, the query's own included. Fails when it has w - 1 or w + 1.
TEST(AttentionMeaning, WindowEqualsFirstVisible) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 9, 2, 1);
  const std::vector<int64_t> first{0, 0, 0, 1, 2, 3, 4, 5, 6};
  const auto by_tensor =
      Call{run, q, k, v, {.document_start = run.integers({9}, DType::i32, first)}}();
  expect_same(Call{run, q, k, v, {.window = 3}}(), by_tensor);
}

// Fails when keys of the padding still take part in the softmax.
TEST(AttentionMeaning, PaddingEqualsFewerKeys) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 7, 2, 1);
  const std::vector<int64_t> lengths{5};
  const ops::AttentionMask padded{.causal = false,
                                  .key_lengths = run.integers({1}, DType::i32, lengths)};
  const auto fewer = Call{run, q, slice(k, 0, 0, 5), slice(v, 0, 0, 5), {.causal = false}}();
  expect_same(Call{run, q, k, v, padded}(), fewer);
}

// Fails when probabilities do not sum to 1, or a query without keys is not zero with lse -infinity.
TEST(AttentionMeaning, ProbabilitiesSumToOneOrNothing) {
  Trial run(TrialSpec{});
  const auto [q, k, unused] = draw(run, 5, 2, 1);
  const std::vector<double> ones(20, 1.0);
  const std::vector<int64_t> first{0, 0, 3, 0, 4};  // query 2 starts after itself
  const Tensor out = run.blank({5, 2, 4}), lse = run.blank({1, 2, 5});
  ops::attention(run.ex(), {{.q = q,
                             .k = k,
                             .v = run.given({5, 1, 4}, ones),
                             .mask = {.document_start = run.integers({5}, DType::i32, first)}},
                            out,
                            lse});
  const auto values = run.read(out), logs = run.read(lse);
  for (size_t query = 0; query < 5; ++query) {
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(values[query * 8 + i], query == 2 ? 0 : 1, kClose);
    EXPECT_EQ(std::isinf(logs[query]), query == 2);
  }
}

ops::AttentionDropout dropped(Trial& run, int64_t row_begin, int64_t rows, int64_t head_begin) {
  std::vector<int64_t> logical;
  for (int64_t row = 0; row < rows; ++row) logical.push_back(row_begin + row);
  return {.probability = 0.4,
          .key = 17,
          .rows = run.integers({rows}, DType::i64, logical),
          .head_begin = head_begin};
}

// Heads on another rank, queries in another chunk. Fails when a draw uses the local head or query.
TEST(AttentionMeaning, DropoutDoesNotDependOnCut) {
  Trial run(TrialSpec{});
  const auto [q, k, v] = draw(run, 8, 4, 4);
  const auto whole = Call{run, q, k, v, {}, 1, dropped(run, 50, 8, 0)}();
  const auto heads = Call{run, slice(q, 1, 2, 2),     slice(k, 1, 2, 2), slice(v, 1, 2, 2), {},
                          1,   dropped(run, 50, 8, 2)}();
  for (size_t token = 0; token < 8; ++token) {
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(heads[token * 8 + i], whole[token * 16 + 8 + i]);
  }
  const auto tail =
      Call{run, slice(q, 0, 5, 3), k, v, {.query_offset = 5}, 1, dropped(run, 55, 3, 0)}();
  expect_same(tail, std::span(whole).last(tail.size()));
}

// The draw as the contract writes it, with v the unit vectors so that out shows the probabilities.
// Fails when row, head or key enter philox differently.
TEST(AttentionMeaning, DropoutDrawsWhatTheContractSays) {
  Trial run(TrialSpec{});
  const int64_t keys = 19;
  std::vector<double> unit(19 * 19, 0.0);
  for (size_t i = 0; i < 19; ++i) unit[i * 19 + i] = 1;
  const Shape shape{keys, 1, keys};
  const ConstTensor q = run.input("q", shape), k = run.input("k", shape);
  const ConstTensor v = run.given(shape, unit);
  const auto kept = Call{run, q, k, v, {}}();
  const auto thinned = Call{run, q, k, v, {}, 1, dropped(run, 90, keys, 3)}();
  for (int64_t i = 0; i < keys; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const auto column = static_cast<uint64_t>(j);
      const uint32_t word = philox<7>(17, static_cast<uint64_t>(90 + i),
                                      uint64_t{3} << 32 | column / 8)[column / 2 % 4];
      const uint32_t draw = column % 2 == 0 ? word & 0xFFFF : word >> 16;
      // 0.4 is 26214.4 / 65536.
      const double factor = draw < 26214 ? 0 : 65536.0 / (65536 - 26214);
      const auto at = static_cast<size_t>(i * keys + j);
      EXPECT_NEAR(thinned[at], factor * kept[at], kClose);
    }
  }
}

// Equal probabilities of ones, thinned: each query gives the mean of its factors, and all together
// 1 within five standard deviations. Fails when the scale is not the inverse of how often a
// probability is kept.
TEST(AttentionMeaning, DropoutKeepsTheExpectation) {
  Trial run(TrialSpec{});
  const int64_t queries = 200, keys = 250, heads = 4;
  const std::vector<double> zeros(static_cast<size_t>(queries * heads), 0.0);
  const std::vector<double> ones(static_cast<size_t>(keys * heads), 1.0);
  const ConstTensor v = run.given({keys, heads, 1}, ones);
  const auto out = Call{run, run.given({queries, heads, 1}, zeros), v, v, {.causal = false},
                        1,   dropped(run, 1000, queries, 0)}();
  double sum = 0;
  for (const double mean : out) sum += mean;
  const auto means = static_cast<double>(out.size());
  const double deviation = std::sqrt(0.4 / 0.6 / (means * static_cast<double>(keys)));
  EXPECT_NEAR(sum / means, 1, 5 * deviation);
}

}  // namespace
}  // namespace bev::test
