// Every test names the fault that makes it fail.
#include "ops/embedding.h"

#include <gtest/gtest.h>

#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr int64_t kVocab = 23;

struct Lookup {
  int64_t tokens, rows, width, row_begin = 0;
  bool accumulate = false;

  std::string name() const {
    return label("tokens={} rows={} width={} row_begin={} accumulate={}", tokens, rows, width,
                 row_begin, accumulate);
  }
  ConstTensor ids(Trial& run) const {
    return run.integers({tokens}, DType::i32, random_integers(9, tokens, 0, kVocab));
  }
};

struct Forward : Lookup {
  void operator()(Trial& run) const {
    const Shape shape{tokens, width};
    const Tensor out = accumulate ? run.updated("out", shape) : run.blank(shape);
    run.compare("out", out, {.reduction = accumulate ? 2 : 1});
    ops::embedding(run.ex(), {.table = run.input("table", {rows, width}),
                              .ids = ids(run),
                              .row_begin = row_begin,
                              .accumulate = accumulate,
                              .out = out});
  }
};

struct Backward : Lookup {
  void operator()(Trial& run) const {
    const Tensor dtable = run.updated("dtable", {rows, width}, Element::Sum);
    run.compare("dtable", dtable, {.reduction = tokens});
    ops::embedding_backward(run.ex(), {.dout = run.input("dout", {tokens, width}),
                                       .ids = ids(run),
                                       .row_begin = row_begin,
                                       .dtable = dtable});
  }
};

// rows and row_begin: the whole vocabulary, or a shard that most ids miss.
const std::vector<Lookup> kCases{{1, kVocab, 1},   {0, kVocab, 8},
                                 {5, kVocab, 3},   {17, kVocab, 8},
                                 {64, kVocab, 17}, {33, 7, 31, 8},
                                 {33, 1, 33, 22},  {130, 8, 64, 15},
                                 {9, kVocab, 65},  {2 * kSharedRows, 5, kSharedWidth}};

// Fails when ids of other shards read beyond the table, or leave the row as it was.
TEST(Embedding, CpuForwardAgrees) {
  for (Lookup c : kCases) {
    for (const bool accumulate : {false, true}) {
      c.accumulate = accumulate;
      expect_cpu_agrees(c.name(), Forward{c});
    }
  }
}

// Every id occurs many times. Fails when two threads add to one row, when dtable is overwritten, or
// when the order of the additions depends on the threads.
TEST(Embedding, CpuBackwardAgrees) {
  for (const Lookup& c : kCases) expect_cpu_agrees(c.name(), Backward{c});
}

// Fails when row_begin is added instead of subtracted, or repeated ids count once.
TEST(Embedding, GradientsMatchDifferences) {
  Trial run(gradient_run());
  const Lookup c{.tokens = 12, .rows = 9, .width = 3, .row_begin = 6};
  const Tensor table = run.updated("table", {c.rows, c.width});
  const ConstTensor ids = c.ids(run), dout = run.input("dout", {c.tokens, c.width});
  const Tensor out = run.blank({c.tokens, c.width});
  const std::vector<double> zeros(static_cast<size_t>(c.rows * c.width), 0.0);
  const Tensor dtable = run.updated_given({c.rows, c.width}, zeros);
  ops::embedding_backward(run.ex(),
                          {.dout = dout, .ids = ids, .row_begin = c.row_begin, .dtable = dtable});
  expect_gradient("table", table, dtable, [&] {
    ops::embedding(run.ex(), {.table = table, .ids = ids, .row_begin = c.row_begin, .out = out});
    return inner(dout, out);
  });
}

// The shards of a table, added up, are the table. Fails when a shard answers for a row it does not
// hold.
TEST(Embedding, ShardsAddUp) {
  Trial run(TrialSpec{});
  const Lookup c{.tokens = 40, .rows = kVocab, .width = 5};
  const ConstTensor table = run.input("table", {kVocab, 5}), ids = c.ids(run);
  const Tensor whole = run.blank({40, 5}), sum = run.blank({40, 5});
  ops::embedding(run.ex(), {.table = table, .ids = ids, .out = whole});
  for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 8}, {8, 8}, {16, 7}}) {
    ops::embedding(run.ex(), {.table = slice(table, 0, begin, count),
                              .ids = ids,
                              .row_begin = begin,
                              .accumulate = begin > 0,
                              .out = sum});
  }
  EXPECT_EQ(run.read(whole), run.read(sum));
}

}  // namespace
}  // namespace bev::test
