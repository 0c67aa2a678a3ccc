// Every test names the fault that makes it fail.
#include "ops/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/integer.h"
#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How one row is chosen.
struct Choice {
  double temperature = 1, top_k = 0, top_p = 1, min_p = 0, penalty = 1;
  int64_t key = 1, position = 0;
};

ConstTensor options_of(Trial& run, const std::vector<Choice>& choices) {
  std::vector<double> values;
  for (const Choice& c : choices) {
    for (const double value : {c.temperature, c.top_k, c.top_p, c.min_p, c.penalty})
      values.push_back(value);
  }
  const auto rows = static_cast<int64_t>(choices.size());
  return reshape(run.given({rows * ops::kChoiceColumns}, values, Element::F64),
                 {rows, ops::kChoiceColumns});
}

ConstTensor keys_of(Trial& run, const std::vector<Choice>& choices) {
  std::vector<int64_t> values;
  for (const Choice& c : choices) {
    values.push_back(c.key);
    values.push_back(c.position);
  }
  const auto rows = static_cast<int64_t>(choices.size());
  return reshape(run.integers({2 * rows}, DType::i64, values), {rows, 2});
}

Tensor seen_of(Trial& run, const std::vector<int64_t>& words, int64_t rows, int64_t classes) {
  const int64_t across = div_ceil(classes, 32);
  return reshape(run.updated_integers({rows * across}, DType::i32, words), {rows, across});
}

// All devices see draws of their own type, so that the sums of one differ from those of another by
// roundings only: no draw below falls so close to the border between two ids.
struct ChooseCase {
  int64_t columns, classes;
  std::vector<Choice> choices;
  double scale = 2;
  bool seen = true;

  std::string name() const {
    return label("columns={} classes={} rows={} scale={} seen={}", columns, classes, choices.size(),
                 scale, seen);
  }
  void operator()(Trial& run) const {
    const auto rows = static_cast<int64_t>(choices.size());
    const ConstTensor logits =
        run.input("logits", {rows * columns}, Element::Value, {.scale = scale});
    ops::SampleTokens args{
        .logits = reshape(logits, {rows, columns}),
        .classes = classes,
        .options = options_of(run, choices),
        .keys = keys_of(run, choices),
        .ids = run.updated_integers({rows}, DType::i32, random_integers(8, rows, -9, 0)),
        .logprobs = run.output("logprobs", {rows}, Element::Sum, {.reduction = classes})};
    run.compare("ids", args.ids);
    if (seen) {
      const int64_t words = rows * div_ceil(classes, 32);
      args.seen =
          seen_of(run, random_integers(9, words, INT32_MIN, int64_t{INT32_MAX} + 1), rows, classes);
      run.compare("seen", args.seen);
    }
    ops::sample_tokens(run.ex(), args);
  }
};

// One row of each kind, and all of them together.
std::vector<Choice> every_kind() {
  return {
      {.temperature = 0},
      {.temperature = 0, .top_k = 3, .penalty = 2},
      {.temperature = 0.7, .key = 3, .position = 7},
      {.temperature = 1, .top_k = 1, .key = 4},
      {.temperature = 1, .top_k = 5, .key = 5, .position = 11},
      {.temperature = 1.5, .top_k = 40, .penalty = 2, .key = 6},
      {.temperature = 0.8, .top_p = 0.9, .key = 7, .position = 2},
      {.temperature = 1, .top_p = 0.001, .key = 8},
      {.temperature = 1, .min_p = 0.3, .key = 9},
      {.temperature = 0.9, .top_k = 50, .top_p = 0.8, .min_p = 0.05, .key = 10},
      {.temperature = 2, .top_k = 1000000, .top_p = 0.5, .penalty = 0.5, .key = 11},
      {.temperature = 0.01, .top_k = 7, .top_p = 0.99, .key = 12, .position = 1},
  };
}

std::vector<ChooseCase> sampling_small_cases() {
  return {{.columns = 1, .classes = 1, .choices = every_kind()},
          {.columns = 40, .classes = 33, .choices = every_kind()},
          {.columns = 257, .classes = 257, .choices = every_kind()},
          {.columns = 257, .classes = 200, .choices = every_kind(), .seen = false},
          {.columns = 1000, .classes = 1000, .choices = every_kind(), .scale = 0},
          {.columns = 64, .classes = 64, .choices = {}}};
}

// Fails when columns beyond the classes are chosen, when equal logits are not ordered by id, when a
// restriction is taken in another order, or when the log of the probability is of penalised logits.
TEST(SampleTokens, CpuAgrees) {
  for (const ChooseCase& c : sampling_small_cases()) expect_cpu_agrees(c.name(), c);
  const ChooseCase vocabulary{.columns = 5000, .classes = 4999, .choices = every_kind()};
  expect_cpu_agrees(vocabulary.name(), vocabulary);
}

// As above, and when parts of a row are put together wrongly, or a list of candidates that is too
// long for its room is cut.
TEST(SampleTokens, CudaAgrees) {
  for (const ChooseCase& c : sampling_small_cases()) expect_cuda_agrees(c.name(), c);
  for (const ChooseCase& c :
       {ChooseCase{.columns = 9000, .classes = 8999, .choices = every_kind()},
        ChooseCase{.columns = 50304, .classes = 50257, .choices = every_kind()},
        // Everything is as likely as everything else, or nearly.
        ChooseCase{.columns = 20000, .classes = 20000, .choices = every_kind(), .scale = 0},
        ChooseCase{.columns = 30000, .classes = 30000, .choices = every_kind(), .scale = 0.01}}) {
    expect_cuda_agrees(c.name(), c);
  }
}

struct SampledToken {
  std::vector<double> ids, logprobs, seen;
};

// The same row of logits for each choice.
SampledToken choose(const TrialSpec& spec, const std::vector<double>& row,
                    const std::vector<Choice>& choices, const std::vector<int64_t>& seen_row = {}) {
  Trial run(spec);
  const auto rows = static_cast<int64_t>(choices.size()),
             classes = static_cast<int64_t>(row.size());
  std::vector<double> logits;
  std::vector<int64_t> words;
  for (int64_t i = 0; i < rows; ++i) {
    logits.insert(logits.end(), row.begin(), row.end());
    words.insert(words.end(), seen_row.begin(), seen_row.end());
  }
  const std::vector<int64_t> none(choices.size(), -7);
  ops::SampleTokens args{.logits = reshape(run.given({rows * classes}, logits), {rows, classes}),
                         .classes = classes,
                         .options = options_of(run, choices),
                         .keys = keys_of(run, choices),
                         .ids = run.updated_integers({rows}, DType::i32, none),
                         .logprobs = run.blank({rows}, Element::Sum)};
  if (!seen_row.empty()) args.seen = seen_of(run, words, rows, classes);
  ops::sample_tokens(run.ex(), args);
  return {run.read(args.ids), run.read(args.logprobs),
          args.seen.present() ? run.read(args.seen) : std::vector<double>{}};
}

std::vector<Choice> with_keys(Choice choice, int64_t count) {
  std::vector<Choice> choices;
  for (choice.key = 0; choice.key < count; ++choice.key) choices.push_back(choice);
  return choices;
}

// What is drawn with 200 keys: every kept id of a few is among them.
std::set<double> drawn(const TrialSpec& spec, const std::vector<double>& row,
                       const Choice& choice) {
  const SampledToken chosen = choose(spec, row, with_keys(choice, 200));
  return {chosen.ids.begin(), chosen.ids.end()};
}

using Ids = std::set<double>;

// Weights 1, 1/2, 1/4, 1/4 and, nearly, 0.
std::vector<double> halves() { return {-1, 0, -2, -kInfinity, -2, -40}; }
constexpr double kBinary = 1.4426950408889634;  // the temperature at which exp is a power of two

void keeps_the_likeliest(const TrialSpec& spec) {
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary}), (Ids{0, 1, 2, 4}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_k = 1}), (Ids{1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_k = 2}), (Ids{0, 1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_k = 3}), (Ids{0, 1, 2}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_p = 0.4}), (Ids{1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_p = 0.7}), (Ids{0, 1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_p = 0.8}), (Ids{0, 1, 2}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_p = 0.9}), (Ids{0, 1, 2, 4}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .min_p = 0.3}), (Ids{0, 1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .min_p = 0.2}), (Ids{0, 1, 2, 4}));
  // 1 and 1/2 are 1.5 of 1.75, that is 0.857, of the three; 0.75 of all.
  EXPECT_EQ(drawn(spec, halves(), {.temperature = kBinary, .top_k = 3, .top_p = 0.8}), (Ids{0, 1}));
  EXPECT_EQ(drawn(spec, halves(), {.temperature = 0}), (Ids{1}));
}
// Fails when a run of likeliest is one too long or short, when equal ones are not taken by id, when
// top_p is measured against what top_k has left out, or when an id without a chance is drawn.
TEST(SampleTokens, KeepsTheLikeliest) { keeps_the_likeliest({}); }
TEST(SampleTokens, CpuKeepsTheLikeliest) {
  keeps_the_likeliest({.kind = DeviceKind::Cpu, .threads = 2, .storage = DType::f32});
}
TEST(SampleTokens, CudaKeepsTheLikeliest) {
  if (no_gpu()) return;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    keeps_the_likeliest({.kind = DeviceKind::Cuda, .storage = dtype});
}

void draws_by_weight(const TrialSpec& spec) {
  constexpr int64_t kKeys = 4000;
  const SampledToken chosen = choose(spec, halves(), with_keys({.temperature = kBinary}, kKeys));
  std::vector<double> counts(halves().size(), 0.0);
  for (const double id : chosen.ids) ++counts[static_cast<size_t>(id)];
  const std::vector<double> expected{0.25, 0.5, 0.125, 0, 0.125, 0};
  for (size_t id = 0; id < counts.size(); ++id)
    EXPECT_NEAR(counts[id] / kKeys, expected[id], 0.03) << id;  // four standard deviations
}
// Fails when the draws are not uniform, or a temperature is multiplied.
TEST(SampleTokens, DrawsByWeight) { draws_by_weight({}); }
TEST(SampleTokens, CpuDrawsByWeight) {
  draws_by_weight({.kind = DeviceKind::Cpu, .threads = 2, .storage = DType::f32});
}
TEST(SampleTokens, CudaDrawsByWeight) {
  if (no_gpu()) return;
  draws_by_weight({.kind = DeviceKind::Cuda, .storage = DType::f32});
}

// Fails when a draw depends on the row or on what is beside it, or not on the position.
TEST(SampleTokens, DrawsByKeyAndPosition) {
  const std::vector<double> flat(1000, 0.5);
  const Choice one{.key = 5, .position = 3}, later{.key = 5, .position = 4},
      other{.key = 6, .position = 3};
  const std::vector<double> ids = choose({}, flat, {one, later, other, one}).ids;
  EXPECT_EQ(ids[0], ids[3]);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_EQ(ids[0], choose({}, flat, {one}).ids[0]);
  EXPECT_EQ(ids[0], std::floor(ops::choice_draw(5, 3) * 1000));
}

void penalises_what_was_seen(const TrialSpec& spec) {
  const std::vector<double> row{-1, 3, 2, -0.5};
  const auto greedy = [&](int64_t seen, double penalty) {
    return choose(spec, row, {{.temperature = 0, .penalty = penalty}}, {seen});
  };
  EXPECT_EQ(greedy(0b0000, 2).ids[0], 1);
  EXPECT_EQ(greedy(0b0010, 2).ids[0], 2);  // 1.5 against 2
  EXPECT_EQ(greedy(0b0010, 1.25).ids[0], 1);
  EXPECT_EQ(greedy(0b0110, 8).ids[0], 1);
  const std::vector<double> below{-2, -3, -1};
  EXPECT_EQ(choose(spec, below, {{.temperature = 0, .penalty = 4}}, {0b100}).ids[0], 0);
  // Of the logits as they are.
  double sum = 0;
  for (const double logit : row) sum += std::exp(logit);
  const SampledToken second = greedy(0b0010, 2);
  EXPECT_NEAR(second.logprobs[0], 2 - std::log(sum), 1e-5);
  EXPECT_EQ(second.seen[0], 0b0110);
  EXPECT_EQ(greedy(0b1000, 1).seen[0], 0b1010);
}
// Fails when a penalty raises a negative logit, reaches the log of the probability, or falls on
// another id, or when the chosen id is not marked.
TEST(SampleTokens, PenalisesWhatWasSeen) { penalises_what_was_seen({}); }
TEST(SampleTokens, CpuPenalisesWhatWasSeen) {
  penalises_what_was_seen({.kind = DeviceKind::Cpu, .threads = 2, .storage = DType::f32});
}
TEST(SampleTokens, CudaPenalisesWhatWasSeen) {
  if (no_gpu()) return;
  penalises_what_was_seen({.kind = DeviceKind::Cuda, .storage = DType::f32});
}

void passes_by_what_is_not_finite(const TrialSpec& spec) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Choice& choice : {Choice{.temperature = 0}, Choice{.temperature = 1},
                               Choice{.temperature = 1, .top_k = 2, .top_p = 0.9}}) {
    const SampledToken none = choose(spec, {-kInfinity, nan, kInfinity}, {choice}, {0});
    EXPECT_EQ(none.ids[0], -1);
    EXPECT_TRUE(std::isnan(none.logprobs[0]));
    EXPECT_EQ(none.seen[0], 0);
    EXPECT_EQ(choose(spec, {-kInfinity, nan, -3, kInfinity}, {choice}, {0}).ids[0], 2);
    const SampledToken only = choose(spec, {-kInfinity, -3}, {choice}, {0});
    EXPECT_EQ(only.ids[0], 1);
    EXPECT_EQ(only.logprobs[0], 0);
  }
}
// Fails when an infinity or a NaN is the likeliest, or when a row without a chance has an id.
TEST(SampleTokens, PassesByWhatIsNotFinite) { passes_by_what_is_not_finite({}); }
TEST(SampleTokens, CpuPassesByWhatIsNotFinite) {
  passes_by_what_is_not_finite({.kind = DeviceKind::Cpu, .threads = 2, .storage = DType::f32});
}
TEST(SampleTokens, CudaPassesByWhatIsNotFinite) {
  if (no_gpu()) return;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    passes_by_what_is_not_finite({.kind = DeviceKind::Cuda, .storage = dtype});
}

}  // namespace
}  // namespace bev::test
