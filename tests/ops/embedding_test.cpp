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

struct EmbeddingForward : Lookup {
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

struct EmbeddingBackward : Lookup {
  Element sums = Element::Sum;

  void operator()(Trial& run) const {
    const Tensor dtable = run.updated("dtable", {rows, width}, sums);
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
      expect_cpu_agrees(c.name(), EmbeddingForward{c});
    }
  }
}

// Every id occurs many times. Fails when two threads add to one row, when dtable is overwritten, or
// when the order of the additions depends on the threads.
TEST(Embedding, CpuBackwardAgrees) {
  for (const Lookup& c : kCases) expect_cpu_agrees(c.name(), EmbeddingBackward{c});
}

// More tokens than one stretch, tile or digit of the sort; most rows are in several stretches.
const std::vector<Lookup> kLargeCases{{63, kVocab, 8},    {64, kVocab, 8},    {65, kVocab, 264},
                                      {1024, kVocab, 9},  {1025, kVocab, 16}, {1500, kVocab, 768},
                                      {3001, 2, 65, 7},   {5003, 1, 24, 3},   {700, 20, 1600, 9},
                                      {500, kVocab, 2048}};

TEST(Embedding, CudaForwardAgrees) {
  for (const auto* list : {&kCases, &kLargeCases}) {
    for (Lookup c : *list) {
      for (const bool accumulate : {false, true}) {
        c.accumulate = accumulate;
        expect_cuda_agrees(c.name(), EmbeddingForward{c},
                           list == &kCases ? Storage::All : Storage::Alike);
      }
    }
  }
}

// Fails when a piece of a row is lost or counted twice, or the order of tokens depends on the run;
// with sums in the type of dout, when every addition is rounded and not their sum.
TEST(Embedding, CudaBackwardAgrees) {
  for (const auto* list : {&kCases, &kLargeCases}) {
    for (const Lookup& c : *list) {
      for (const Element sums : {Element::Sum, Element::Value}) {
        expect_cuda_agrees(c.name(), EmbeddingBackward{c, sums},
                           list == &kCases ? Storage::All : Storage::Alike);
      }
    }
  }
}

// The sizes of a training step with whole numbers, whose sums are exact in any order. Fails when a
// token is lost, doubled or given to another row.
void expect_exact_sums(int64_t tokens, int64_t rows, int64_t width, std::span<const int32_t> ids) {
  Trial run({.kind = DeviceKind::Cuda, .storage = DType::bf16, .exact_in = DType::bf16});
  Device& device = run.ex().device;
  std::vector<bf16> dout(static_cast<size_t>(tokens * width));
  std::vector<float> expected(static_cast<size_t>(rows * width), 2.0f);
  for (size_t t = 0; t < static_cast<size_t>(tokens); ++t) {
    for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
      const float value = static_cast<float>((t * 7 + c * 13 + t / 64) % 17) - 8;
      dout[t * static_cast<size_t>(width) + c] = bf16(value);
      expected[static_cast<size_t>(ids[t] * width) + c] += value;
    }
  }
  std::vector<float> found(expected.size(), 2.0f);
  Buffer dout_memory(device, dout.size() * sizeof(bf16), "dout");
  Buffer ids_memory(device, ids.size_bytes(), "ids");
  Buffer table_memory(device, found.size() * sizeof(float), "dtable");
  device.upload(dout.data(), dout_memory.data(), dout_memory.bytes());
  device.upload(ids.data(), ids_memory.data(), ids_memory.bytes());
  device.upload(found.data(), table_memory.data(), table_memory.bytes());
  ops::embedding_backward(run.ex(),
                          {.dout = tensor_over(dout_memory.data(), DType::bf16, {tokens, width}),
                           .ids = tensor_over(ids_memory.data(), DType::i32, {tokens}),
                           .dtable = tensor_over(table_memory.data(), DType::f32, {rows, width})});
  device.download(table_memory.data(), found.data(), table_memory.bytes());
  EXPECT_TRUE(found == expected);
}

TEST(Embedding, CudaBackwardIsExactForAStepOfTraining) {
  if (no_gpu()) return;
  const int64_t tokens = 65536, vocab = 50257;
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  const std::vector<int64_t> drawn = random_integers(4, tokens, 0, vocab);
  for (size_t t = 0; t < ids.size(); ++t) {
    // Frequent tokens and rare ones: a quarter is one of four, a quarter one of a hundred.
    const auto id = static_cast<int32_t>(drawn[t]);
    ids[t] = t % 4 == 0 ? id % 4 : t % 4 == 1 ? id % 100 : id;
  }
  expect_exact_sums(tokens, vocab, 768, ids);
  for (size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<int32_t>(t % 1024);
  expect_exact_sums(tokens, 1024, 768, ids);  // positions
  for (size_t t = 0; t < ids.size(); ++t) ids[t] = t % 13 == 0 ? 50256 : 11;
  expect_exact_sums(tokens, vocab, 64, ids);  // 60 thousand times the same token
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
