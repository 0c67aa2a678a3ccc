// Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/attention.h"
#include "ops/harness.h"
#include "ops/relative_bias.h"

namespace bev::test {
namespace {

// Below every legal page: using one of these is found out.
constexpr int64_t kNoPage = -100000;

int64_t pages_for(int64_t tokens, int64_t page) { return (tokens + page - 1) / page; }

// The numbers below count, in an order that is neither theirs nor its reverse.
std::vector<int64_t> shuffled(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int64_t> draws = random_integers(12, count, 0, 1 << 20);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return draws[static_cast<size_t>(a)] < draws[static_cast<size_t>(b)];
  });
  return order;
}

struct Heads {
  Tensor q, k, v;
};

// Views of one fused row per token, as a model has them.
Heads split(const Tensor& rows, int64_t heads, int64_t kv_heads, int64_t head_dim) {
  const int64_t q = heads * head_dim, kv = kv_heads * head_dim;
  return {split_last(slice(rows, 1, 0, q), head_dim), split_last(slice(rows, 1, q, kv), head_dim),
          split_last(slice(rows, 1, q + kv, kv), head_dim)};
}

// A cache has no gaps, whatever the placement.
Tensor cache(Trial& run, const char* name, int64_t places, int64_t kv_heads, int64_t head_dim) {
  const Tensor flat = run.updated(name, {places * kv_heads * head_dim});
  return reshape(flat, {places, kv_heads, head_dim});
}

struct DecodeCase {
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
  std::vector<int64_t> lengths{};
  int64_t page = 4;
  int64_t window = 0;
  int64_t spare_pages = 0;  // that a sequence may still fill
  bool settled = false;
  bool biased = false;

  std::string name() const {
    return label("heads={}/{} head_dim={} lengths={} page={} window={} spare={} settled={} bias={}",
                 heads, kv_heads, head_dim, fmt::join(lengths, ","), page, window, spare_pages,
                 settled, biased);
  }
  void operator()(Trial& run) const {
    const auto sequences = static_cast<int64_t>(lengths.size());
    const int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    const int64_t most = pages_for(longest, page) + spare_pages;
    const int64_t all = std::max<int64_t>(1, sequences * most);
    const std::vector<int64_t> order = shuffled(all);
    std::vector<int64_t> pages;
    for (int64_t i = 0; i < sequences; ++i) {
      for (int64_t p = 0; p < most; ++p) {
        const bool owned = p < pages_for(lengths[static_cast<size_t>(i)], page);
        pages.push_back(owned ? order[static_cast<size_t>(i * most + p)] : kNoPage);
      }
    }
    const Tensor rows = writable(run.input("qkv", {sequences, (heads + 2 * kv_heads) * head_dim}));
    const Heads in = split(rows, heads, kv_heads, head_dim);
    const Tensor keys = cache(run, "keys", all * page, kv_heads, head_dim);
    const Tensor values = cache(run, "values", all * page, kv_heads, head_dim);
    run.compare("keys", keys);
    run.compare("values", values);
    const Tensor out = run.output("out", {sequences, heads, head_dim}, Element::Value,
                                  {.reduction = std::max<int64_t>(1, longest), .ops = 2});
    // More columns than the longest sequence may have.
    const ConstTensor bias = biased ? run.input("bias", {heads, most * page + 3}) : ConstTensor{};
    const ConstTensor list = run.integers({sequences * most}, DType::i32, pages);
    ops::decode_attention(run.ex(), {.q = in.q,
                                     .k = in.k,
                                     .v = in.v,
                                     .lengths = run.integers({sequences}, DType::i32, lengths),
                                     .pages = reshape(list, {sequences, most}),
                                     .page = page,
                                     .scale = 1 / std::sqrt(static_cast<double>(head_dim)),
                                     .window = window,
                                     .keys = keys,
                                     .values = values,
                                     .out = out,
                                     .bias = bias,
                                     .cache_is_constant = settled});
  }
};

// Whether or not what is cached may be read early.
void expect_cuda_decodes(DecodeCase c, Storage storage) {
  for (const bool settled : {false, true}) {
    c.settled = settled;
    expect_cuda_agrees(c.name(), c, storage);
  }
}

std::vector<DecodeCase> decode_attention_small_cases() {
  return {
      {.heads = 1, .kv_heads = 1, .head_dim = 1, .lengths = {1}},
      {.heads = 2, .kv_heads = 1, .head_dim = 8, .lengths = {}},
      {.heads = 2, .kv_heads = 2, .head_dim = 8, .lengths = {0, 3, 0}, .spare_pages = 1},
      {.heads = 3, .kv_heads = 3, .head_dim = 5, .lengths = {7, 1, 9}, .page = 1},
      {.heads = 4, .kv_heads = 2, .head_dim = 16, .lengths = {33, 32, 31, 5}, .page = 16},
      {.heads = 6, .kv_heads = 2, .head_dim = 24, .lengths = {65, 2}, .page = 3, .spare_pages = 40},
      {.heads = 8, .kv_heads = 1, .head_dim = 64, .lengths = {100, 257}, .page = 16},
      {.heads = 2, .kv_heads = 2, .head_dim = 33, .lengths = {70, 12}, .page = 8},
      {.heads = 4, .kv_heads = 2, .head_dim = 32, .lengths = {90, 20, 3}, .page = 8, .window = 17},
      {.heads = 2, .kv_heads = 1, .head_dim = 8, .lengths = {9, 4}, .page = 2, .window = 1},
      {.heads = 2, .kv_heads = 1, .head_dim = 8, .lengths = {9, 4}, .page = 2, .window = 1000},
      {.heads = 4, .kv_heads = 4, .head_dim = 6, .lengths = {1, 0, 70, 33}, .biased = true},
      {.heads = 4,
       .kv_heads = 2,
       .head_dim = 32,
       .lengths = {90, 20, 3},
       .page = 8,
       .window = 17,
       .spare_pages = 2,
       .biased = true},
  };
}

// Fails when a page is taken for another, when the new key is left out or counted twice, when a
// sequence without tokens writes, or when a place beyond the length is seen.
TEST(DecodeAttention, CpuAgrees) {
  for (const DecodeCase& c : decode_attention_small_cases()) expect_cpu_agrees(c.name(), c);
  const DecodeCase shared{
      .heads = 6, .kv_heads = 3, .head_dim = 40, .lengths = {211, 180, 7, 97}, .page = 16};
  expect_cpu_agrees(shared.name(), shared);
}

// As above, and when what blocks have found of one sequence is put together wrongly.
TEST(DecodeAttention, CudaAgrees) {
  for (const DecodeCase& c : decode_attention_small_cases()) expect_cuda_decodes(c, Storage::All);
  for (const DecodeCase& c :
       {DecodeCase{.heads = 12, .kv_heads = 12, .head_dim = 64, .lengths = {1000}, .page = 16},
        DecodeCase{.heads = 12, .kv_heads = 1, .head_dim = 128, .lengths = {530}, .page = 64},
        DecodeCase{.heads = 5, .kv_heads = 1, .head_dim = 80, .lengths = {129, 3000}},
        DecodeCase{.heads = 4, .kv_heads = 2, .head_dim = 256, .lengths = {300, 40}, .page = 16},
        DecodeCase{.heads = 2, .kv_heads = 1, .head_dim = 300, .lengths = {150, 9}, .page = 32},
        DecodeCase{.heads = 2, .kv_heads = 1, .head_dim = 700, .lengths = {65}, .page = 32},
        DecodeCase{.heads = 16, .kv_heads = 2, .head_dim = 96, .lengths = {400, 61}, .page = 16},
        DecodeCase{.heads = 4, .kv_heads = 2, .head_dim = 64, .lengths = {2000}, .window = 333}}) {
    expect_cuda_decodes(c, Storage::All);
  }
  DecodeCase batch{.heads = 12, .kv_heads = 4, .head_dim = 64, .page = 16, .spare_pages = 30};
  batch.lengths = random_integers(4, 64, 0, 300);
  expect_cuda_decodes(batch, Storage::Alike);
}

// A table of pages long enough for several blocks, and lengths around what they are dealt. Fails
// when a block without keys is missed at a meeting or weighs something, when a stretch goes to no
// block or to two, or when a column is finished by none.
TEST(DecodeAttention, CudaAgreesAcrossBlocks) {
  const std::vector<int64_t> lengths{1, 2, 63, 0, 64, 65, 500, 1000};
  for (const int64_t page : {5, 16, 64}) {
    DecodeCase c{.heads = 2, .kv_heads = 2, .head_dim = 64, .lengths = lengths, .page = page};
    c.spare_pages = 200 / page;
    expect_cuda_decodes(c, Storage::Alike);
  }
  for (const int64_t head_dim : {20, 24, 80, 128, 200, 520}) {
    for (const int64_t heads : {1, 2, 4, 7}) {
      const DecodeCase c{.heads = heads,
                         .kv_heads = 1,
                         .head_dim = head_dim,
                         .lengths = {65, 300, 127},
                         .page = 16,
                         .spare_pages = 30};
      expect_cuda_decodes(c, Storage::Alike);
    }
  }
  // Clusters of 8, 4, 2 and 1.
  for (const int64_t sequences : {3, 15, 30, 70}) {
    DecodeCase c{.heads = 4, .kv_heads = 4, .head_dim = 64, .page = 16, .spare_pages = 16};
    c.lengths = random_integers(5, sequences, 0, 400);
    expect_cuda_decodes(c, Storage::Alike);
  }
}

// Fails when a block begins at a stretch that the window hides, or passes over one it shows.
TEST(DecodeAttention, CudaAgreesAcrossBlocksThroughAWindow) {
  for (const int64_t window : {1, 64, 129, 400, 900}) {
    DecodeCase c{.heads = 4, .kv_heads = 2, .head_dim = 64, .page = 16, .window = window};
    c.lengths = {1, 128, 129, 512, 1024, 1025, 2000};
    expect_cuda_decodes(c, Storage::Alike);
  }
}

// Fails when a block or a query head adds the bias of another, or a column next to the token's.
TEST(DecodeAttention, CudaAgreesAcrossBlocksWithABias) {
  for (const int64_t kv_heads : {1, 4}) {
    for (const int64_t head_dim : {6, 64, 128}) {
      DecodeCase c{.heads = 4, .kv_heads = kv_heads, .head_dim = head_dim, .page = 16};
      c.lengths = {1, 0, 129, 512, 1025};
      c.biased = true;
      expect_cuda_decodes(c, Storage::Alike);
    }
  }
  DecodeCase many{.heads = 2, .kv_heads = 2, .head_dim = 16, .page = 64, .biased = true};
  many.lengths = {700, 5000};
  expect_cuda_decodes(many, Storage::Alike);
}

// More blocks than a cluster has. Fails when a part is left out, or one that has no keys weighs
// something.
TEST(DecodeAttention, CudaAgreesOverManyKeys) {
  for (const int64_t window : {0, 4300}) {
    DecodeCase c{.heads = 4, .kv_heads = 2, .head_dim = 16, .page = 64, .window = window};
    c.lengths = {0, 1, 65, 129, 700, 5000};
    expect_cuda_decodes(c, Storage::Alike);
  }
}

struct WriteCase {
  int64_t tokens, kv_heads, head_dim;

  std::string name() const {
    return label("tokens={} kv_heads={} head_dim={}", tokens, kv_heads, head_dim);
  }
  void operator()(Trial& run) const {
    const int64_t all = tokens + 3;
    std::vector<int64_t> places = shuffled(all);
    places.resize(static_cast<size_t>(tokens));
    for (size_t t = 2; t < places.size(); t += 5) places[t] = t % 2 == 0 ? -1 : kNoPage;
    const Heads in = split(writable(run.input("qkv", {tokens, 4 * kv_heads * head_dim})),
                           2 * kv_heads, kv_heads, head_dim);
    const Tensor keys = cache(run, "keys", all, kv_heads, head_dim);
    const Tensor values = cache(run, "values", all, kv_heads, head_dim);
    run.compare("keys", keys);
    run.compare("values", values);
    ops::kv_cache_write(run.ex(), {.k = in.k,
                                   .v = in.v,
                                   .places = run.integers({tokens}, DType::i32, places),
                                   .keys = keys,
                                   .values = values});
  }
};

std::vector<WriteCase> write_cases() {
  return {{1, 1, 1}, {0, 2, 8}, {9, 3, 5}, {33, 2, 64}, {70, 4, 24}, {kSharedRows, 3, 130}};
}

// Fails when a token goes to another place, when keys and values are exchanged, or when a token
// without a place is written.
TEST(KvCacheWrite, CpuAgrees) {
  for (const WriteCase& c : write_cases()) expect_cpu_agrees(c.name(), c);
}
TEST(KvCacheWrite, CudaAgrees) {
  for (const WriteCase& c : write_cases()) expect_cuda_agrees(c.name(), c);
}

// A sequence token by token, the first of them at once, against attention over all of it.
struct TokenByToken {
  int64_t window = 0;
  bool biased = false;

  static constexpr int64_t kTokens = 23, kPrompt = 9, kPage = 4, kDim = 6, kQHeads = 4,
                           kKvHeads = 2;

  void check() const {
    Trial run(TrialSpec{});
    Exec& ex = run.ex();
    const Tensor rows = writable(run.input("qkv", {kTokens, (kQHeads + 2 * kKvHeads) * kDim}));
    const Heads in = split(rows, kQHeads, kKvHeads, kDim);
    const Tensor whole = run.blank({kTokens, kQHeads, kDim});
    const ConstTensor table = run.input("table", {8, kQHeads});
    // For the whole sequence, and for one query with a column for each place.
    const auto bias = [&](int64_t queries, int64_t positions) -> ConstTensor {
      if (!biased) return {};
      const Tensor t = run.blank({kQHeads, queries, positions});
      ops::relative_bias(ex, {.table = table,
                              .positions = {.max_distance = 20,
                                            .bidirectional = false,
                                            .query_offset = positions - queries},
                              .bias = t});
      return t;
    };
    ops::attention(ex, {{.q = in.q,
                         .k = in.k,
                         .v = in.v,
                         .sequences = 1,
                         .scale = 0.3,
                         .mask = {.causal = true, .window = window},
                         .bias = bias(kTokens, kTokens)},
                        whole,
                        run.blank({1, kQHeads, kTokens}, Element::Sum)});

    const int64_t most = pages_for(kTokens, kPage);
    const std::vector<int64_t> order = shuffled(most);
    const ConstTensor pages = run.integers({1, most}, DType::i32, order);
    const Tensor keys = cache(run, "keys", most * kPage, kKvHeads, kDim);
    const Tensor values = cache(run, "values", most * kPage, kKvHeads, kDim);
    const ConstTensor row = bias(1, most * kPage);
    const ConstTensor newest = biased ? reshape(row, {kQHeads, most * kPage}) : row;
    std::vector<int64_t> places;
    for (int64_t t = 0; t < kPrompt; ++t)
      places.push_back(order[static_cast<size_t>(t / kPage)] * kPage + t % kPage);
    ops::kv_cache_write(ex, {.k = slice(in.k, 0, 0, kPrompt),
                             .v = slice(in.v, 0, 0, kPrompt),
                             .places = run.integers({kPrompt}, DType::i32, places),
                             .keys = keys,
                             .values = values});
    for (int64_t t = kPrompt; t < kTokens; ++t) {
      const std::vector<int64_t> length{t + 1};
      const Tensor out = run.blank({1, kQHeads, kDim});
      ops::decode_attention(ex, {.q = slice(in.q, 0, t, 1),
                                 .k = slice(in.k, 0, t, 1),
                                 .v = slice(in.v, 0, t, 1),
                                 .lengths = run.integers({1}, DType::i32, length),
                                 .pages = pages,
                                 .page = kPage,
                                 .scale = 0.3,
                                 .window = window,
                                 .keys = keys,
                                 .values = values,
                                 .out = out,
                                 .bias = newest});
      const std::vector<double> found = run.read(out), expected = run.read(slice(whole, 0, t, 1));
      for (size_t e = 0; e < found.size(); ++e)
        EXPECT_NEAR(found[e], expected[e], 1e-12) << "token " << t << " element " << e;
    }
  }
};

// Fails when a token does not see itself, sees one too many with a window, or when its key is not
// there for the next.
TEST(DecodeAttention, EqualsAttentionOfTheWholeSequence) {
  for (const int64_t window : {0, 1, 5}) {
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(label("window={} bias={}", window, biased));
      TokenByToken{window, biased}.check();
    }
  }
}

}  // namespace
}  // namespace bev::test
