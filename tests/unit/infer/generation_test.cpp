#include "infer/generation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

bool go_on(std::span<const Continuation>) { return true; }

// The likeliest token behind a context, without Sampler.
int32_t likeliest(LoadedModel& model, const Ids& context) {
  const std::vector<double> all = test::all_logits(model, context);
  const auto last = all.end() - model.vocab();
  return static_cast<int32_t>(std::max_element(last, all.end()) - last);
}

TEST(Generation, GreedyIsTheLikeliestAtEachStep) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 7);
  const Ids prompt{3, 1};
  // More tokens than the context: the oldest fall out.
  const auto texts =
      generate(model, prompt, {.tokens = 12, .context = 7, .sampling = {.temperature = 0}}, go_on);
  ASSERT_EQ(texts.size(), 1u);
  ASSERT_EQ(texts[0].ids.size(), 12u);
  EXPECT_FALSE(texts[0].ended);
  Ids all = prompt;
  for (const int32_t id : texts[0].ids) {
    const size_t begin = all.size() > 7 ? all.size() - 7 : 0;
    EXPECT_EQ(id, likeliest(model, Ids(all.begin() + static_cast<ptrdiff_t>(begin), all.end())));
    all.push_back(id);
  }
}

TEST(Generation, LongPromptsAreCropped) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 4);
  const GenerationOptions options{.tokens = 5, .context = 4, .sampling = {.temperature = 0}};
  const auto texts = generate(model, Ids{9, 8, 7, 6, 5, 4, 3, 2, 1}, options, go_on);
  EXPECT_EQ(texts[0].ids, generate(model, Ids{4, 3, 2, 1}, options, go_on)[0].ids);
}

TEST(Generation, SamplesDoNotDependOnEachOther) {
  const test::StoredModel stored;
  for (const DeviceKind kind : {DeviceKind::Reference, DeviceKind::Cpu}) {
    LoadedModel alone = stored.load(1, 7, kind), several = stored.load(5, 7, kind);
    const Ids prompt{3, 1, 2};
    GenerationOptions options{.tokens = 10, .context = 7, .sampling = {.seed = 4}};
    const Continuation one = generate(alone, prompt, options, go_on)[0];
    options.samples = 5;
    const auto five = generate(several, prompt, options, go_on);
    EXPECT_EQ(five[0].ids, one.ids);
    for (size_t i = 1; i < 5; ++i) EXPECT_NE(five[i].ids, five[0].ids);
  }
}

TEST(Generation, EndsWithTheEnd) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(6, 7);
  const Ids prompt{3};
  GenerationOptions options{
      .samples = 6, .tokens = 30, .context = 7, .end = 5, .sampling = {.temperature = 2}};
  const auto ended = generate(model, prompt, options, go_on);
  options.end = -1;
  const auto free = generate(model, prompt, options, go_on);
  int ends = 0;
  for (size_t i = 0; i < 6; ++i) {
    const auto end = std::find(free[i].ids.begin(), free[i].ids.end(), 5);
    EXPECT_EQ(ended[i].ids, Ids(free[i].ids.begin(), end)) << i;
    EXPECT_EQ(ended[i].ended, end != free[i].ids.end()) << i;
    ends += ended[i].ended ? 1 : 0;
  }
  EXPECT_GT(ends, 0);
}

TEST(Generation, StopsWhenAllHaveEnded) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 7);
  const Ids prompt{3};
  const GenerationOptions options{
      .tokens = 50, .context = 7, .end = likeliest(model, prompt), .sampling = {.temperature = 0}};
  int steps = 0;
  const auto texts = generate(model, prompt, options, [&](std::span<const Continuation>) {
    ++steps;
    return true;
  });
  EXPECT_EQ(steps, 1);
  EXPECT_TRUE(texts[0].ended);
  EXPECT_TRUE(texts[0].ids.empty());
}

TEST(Generation, StopsWhenToldTo) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 7);
  const auto texts = generate(model, Ids{3}, {.tokens = 50, .context = 7},
                              [](std::span<const Continuation> t) { return t[0].ids.size() < 3; });
  EXPECT_EQ(texts[0].ids.size(), 3u);
}

}  // namespace
}  // namespace bev
