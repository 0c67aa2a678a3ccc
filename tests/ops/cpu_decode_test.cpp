// What the cpu device promises of generation beyond agreement with the reference. Every test names
// the fault that makes it fail.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/harness.h"
#include "ops/matmul.h"
#include "ops/sampling.h"

namespace bev::test {
namespace {

TrialSpec on_cpu(DType storage) {
  return {.kind = DeviceKind::Cpu, .threads = 2, .storage = storage, .exact_in = storage};
}

// The first row of a product whose other rows are whatever they are.
std::vector<double> first_row(DType storage, int64_t rows) {
  Trial run(on_cpu(storage));
  const Tensor out = run.blank({rows, 333});
  ops::matmul(run.ex(), {.a = run.input("a", {rows, 777}),
                         .b = run.input("b", {333, 777}),
                         .tb = ops::Transpose::Yes,
                         .out = out});
  std::vector<double> values = run.read(out);
  values.resize(333);
  return values;
}

// Fails when the order of a row's sums depends on how many rows there are: then a text would depend
// on what is generated beside it.
TEST(SmallMProblem, CpuRowDoesNotDependOnOthers) {
  for (const DType storage : {DType::f32, DType::bf16}) {
    const std::vector<double> alone = first_row(storage, 1);
    for (const int64_t rows : {2, 3, 4, 5, 8, 16}) EXPECT_EQ(first_row(storage, rows), alone);
  }
}

// Fails when heads beyond those that are weighed together are left out.
TEST(DecodeAttention, CpuAgreesOnManyHeadsOfOneKey) {
  expect_cpu_agrees("37 heads", [](Trial& run) {
    constexpr int64_t kHeads = 37, kDim = 12, kLength = 150, kPage = 64, kPages = 3;
    const std::vector<int64_t> pages{2, 0, 1}, lengths{kLength};
    const auto cache = [&](const char* name) {
      return reshape(run.updated(name, {kPages * kPage * kDim}), {kPages * kPage, 1, kDim});
    };
    const Tensor keys = cache("keys"), values = cache("values");
    const Bound bound{.reduction = kLength, .ops = 2};
    ops::decode_attention(run.ex(),
                          {.q = run.input("q", {1, kHeads, kDim}),
                           .k = run.input("k", {1, 1, kDim}),
                           .v = run.input("v", {1, 1, kDim}),
                           .lengths = run.integers({1}, DType::i32, lengths),
                           .pages = reshape(run.integers({kPages}, DType::i32, pages), {1, kPages}),
                           .page = kPage,
                           .scale = 0.3,
                           .keys = keys,
                           .values = values,
                           .out = run.output("out", {1, kHeads, kDim}, Element::Value, bound)});
  });
}

TEST(DecodeAttention, CpuRefusesWideHeads) {
  Trial run(on_cpu(DType::f32));
  const std::vector<int64_t> one{1}, none{0};
  const auto row = [&](const char* name) { return run.input(name, {1, 1, 513}); };
  try {
    ops::decode_attention(run.ex(), {.q = row("q"),
                                     .k = row("k"),
                                     .v = row("v"),
                                     .lengths = run.integers({1}, DType::i32, one),
                                     .pages = reshape(run.integers({1}, DType::i32, none), {1, 1}),
                                     .page = 1,
                                     .keys = reshape(run.updated("keys", {513}), {1, 1, 513}),
                                     .values = reshape(run.updated("values", {513}), {1, 1, 513}),
                                     .out = run.blank({1, 1, 513})});
    FAIL() << "heads of 513 were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_STREQ(error.what(), "decode_attention: the cpu device has head_dim up to 512, not 513");
  }
}

// A row of `classes` logits, most of them alike.
void choose_among(Trial& run, int64_t classes, double scale, std::vector<double> options) {
  const std::vector<int64_t> key{41, 5}, unset{-7};
  ops::SampleTokens args{
      .logits =
          reshape(run.input("logits", {classes}, Element::Value, {.scale = scale}), {1, classes}),
      .classes = classes,
      .options = reshape(run.given({ops::kChoiceColumns}, options, Element::F64),
                         {1, ops::kChoiceColumns}),
      .keys = reshape(run.integers({2}, DType::i64, key), {1, 2}),
      .ids = run.updated_integers({1}, DType::i32, unset),
      .logprobs = run.output("logprobs", {1}, Element::Sum, {.reduction = classes})};
  run.compare("ids", args.ids);
  ops::sample_tokens(run.ex(), args);
}

// Fails when the k-th likeliest is sought among those that were seen last, when a run of likeliest
// is cut where halves meet, or when of equal logits those with larger ids are kept.
TEST(SampleTokens, CpuAgreesOnLongRows) {
  for (const double scale : {0.0, 0.01, 3.0}) {
    for (const std::vector<double>& options : {std::vector<double>{1, 0, 1, 0, 1},
                                               {1, 50, 1, 0, 1},
                                               {1, 20000, 1, 0, 1},
                                               {0.7, 0, 0.5, 0, 1},
                                               {0.7, 0, 0.999, 0, 1},
                                               {2, 3000, 0.6, 0.01, 1}}) {
      expect_cpu_agrees(label("scale={} options={}", scale, fmt::join(options, ",")),
                        [&](Trial& run) { choose_among(run, 30011, scale, options); });
    }
  }
}

TEST(SampleTokens, CpuRefusesMoreClassesThanItHasRoomFor) {
  Trial run(on_cpu(DType::f32));
  try {
    choose_among(run, 600000, 1, {0, 0, 1, 0, 1});
    FAIL() << "600000 classes were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_STREQ(error.what(),
                 "sample_tokens: the cpu device chooses among up to 524288 classes, not 600000");
  }
}

}  // namespace
}  // namespace bev::test
