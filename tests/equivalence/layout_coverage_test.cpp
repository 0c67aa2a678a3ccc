// The list of layouts is what the equivalence tests are worth: what must be in it is computed here.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/format.h"
#include "config/resolve.h"
#include "config/rules/config_check.h"
#include "data/data_loader.h"
#include "equivalence/layout_cases.h"
#include "equivalence/layout_factors.h"
#include "model/family/family.h"
#include "parallel/parallel_layout.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"

namespace bev::test {
namespace {

constexpr int64_t kMostRanks = 16;

// Legal pairs of a model family that none of its cases has.
std::string missing_from(const std::vector<LayoutCase>& cases, ModelFamily family) {
  PairCoverage covered;
  for (const LayoutCase& c : cases)
    if (c.many.model.family == family) covered.add(values_in(c.many));
  std::string text;
  for (const ValuePair& pair : covered.missing(legal_pairs(family, kMostRanks)))
    text += format("  {}\n", text_of(pair));
  return text;
}

using Axes = std::set<std::string_view>;

// Over tensor ranks tokens may be cut too, over data ranks state, over pipeline ranks stages.
Axes axes_of(std::string_view text) {
  const ParallelLayout layout = layout_of([&] {
    Config c = divisible_gpt();
    c.parallel = parse_layout(text);
    return c;
  }());
  Axes axes;
  if (layout.tensor > 1) axes.insert(layout.sequence ? "sequence" : "tensor");
  if (layout.data > 1) axes.insert(layout.zero > 0 ? "zero" : "data");
  if (layout.pipeline > 1) axes.insert(layout.chunks > 1 ? "chunks" : "pipeline");
  return axes;
}

TEST(LayoutCoverage, QuickCasesHaveEveryLegalPair) {
  for (const ModelFamily family :
       {ModelFamily::Gpt, ModelFamily::Bert, ModelFamily::T5, ModelFamily::Biencoder}) {
    const std::string missing = missing_from(quick_layout_cases(), family);
    EXPECT_TRUE(missing.empty()) << "legal pairs that no case of " << name_of_choice(family)
                                 << " has:\n"
                                 << missing;
  }
}

TEST(LayoutCoverage, QuickCasesHaveTwentyLayoutsOfEachEncoderFamily) {
  for (const ModelFamily family : {ModelFamily::Bert, ModelFamily::T5, ModelFamily::Biencoder}) {
    std::set<std::string> layouts;
    for (const LayoutCase& c : quick_layout_cases())
      if (c.many.model.family == family) layouts.insert(c.layout);
    EXPECT_GE(layouts.size(), 20U) << name_of_choice(family);
  }
}

// Fails when a split is the default one, which other cases have.
TEST(LayoutCoverage, SplitsOfT5AreNotTheDefault) {
  const std::vector<LayoutCase> cases = split_layout_cases();
  EXPECT_GE(cases.size(), 16U);
  for (const LayoutCase& c : cases) {
    EXPECT_TRUE(check_config(c.many).empty()) << c.name;
    Config chosen = c.many;
    chosen.parallel.decoder_stage = 0;
    EXPECT_NE(decoder_stage(c.many), decoder_stage(chosen)) << c.name;
  }
}

TEST(LayoutCoverage, EveryAxisStandsAloneAndWithEveryOther) {
  std::set<Axes> present;
  for (const std::string_view layout : layouts()) present.insert(axes_of(layout));
  const Axes of_matrices{"tensor", "sequence"}, of_batch{"data", "zero"},
      of_layers{"pipeline", "chunks"};
  const std::vector<Axes> groups{of_matrices, of_batch, of_layers};
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const std::string_view a : groups[i]) {
      EXPECT_TRUE(present.contains({a})) << a;
      for (size_t j = i + 1; j < groups.size(); ++j) {
        for (const std::string_view b : groups[j])
          EXPECT_TRUE(present.contains({a, b})) << a << " with " << b;
      }
    }
  }
}

TEST(LayoutCoverage, ADozenLayoutsMixThreeAxesOnUpTo16Ranks) {
  int64_t mixtures = 0, most = 0;
  for (const std::string_view layout : layouts()) {
    mixtures += axes_of(layout).size() == 3 ? 1 : 0;
    most = std::max(most, parse_layout(layout).ranks);
  }
  EXPECT_GE(mixtures, 12);
  EXPECT_EQ(most, kMostRanks);
}

// The machinery itself: a pair that no case has is found and named.
TEST(LayoutCoverage, NamesWhatIsMissing) {
  std::vector<LayoutCase> cases = quick_layout_cases();
  std::erase_if(cases, [](const LayoutCase& c) {
    return c.many.parallel.tensor == 4 && c.many.parallel.pipeline == 4;
  });
  EXPECT_NE(missing_from(cases, ModelFamily::Gpt).find("tensor 4 with pipeline 4\n"),
            std::string::npos);
}

// The samples of BERT: a difference of two layouts shows only where sequences, micro-batches and
// losses differ.
TEST(LayoutCoverage, BertBatchesAreUneven) {
  const Config config = divisible_bert();
  DataLoader loader(std::make_shared<UnevenDataset>(config.model.vocab),
                    DataLoader::shape_of(config, model_spec(config).batch));
  std::set<int32_t> lengths;
  std::set<double> masked, labelled;
  int64_t micro_batches = 0, with_two_lengths = 0;
  for (int step = 0; step < 3; ++step) {
    for (const HostBatch& batch : loader.next()) {
      ASSERT_EQ(batch.sequences, 2);
      lengths.insert(batch.lengths.begin(), batch.lengths.end());
      masked.insert(batch.valid_tokens());
      labelled.insert(batch.valid_sequences());
      with_two_lengths += batch.lengths[0] != batch.lengths[1] ? 1 : 0;
      ++micro_batches;
      for (int64_t i = 0; i < std::ssize(batch.marked); ++i) {
        const int64_t sequence = i / batch.targets_each();
        EXPECT_LT(batch.marked[static_cast<size_t>(i)],
                  sequence * batch.length + batch.lengths[static_cast<size_t>(sequence)]);
      }
    }
  }
  EXPECT_LE(*lengths.begin(), config.train.sequence / 3) << "a short pair";
  EXPECT_EQ(*lengths.rbegin(), config.train.sequence) << "a pair without padding";
  EXPECT_GE(lengths.size(), 5U);
  EXPECT_GE(with_two_lengths, micro_batches / 2);
  EXPECT_GE(masked.size(), 4U) << "numbers of masked tokens of micro-batches";
  EXPECT_EQ(labelled, (std::set<double>{1, 2})) << "sequences with a label";
}

TEST(LayoutCoverage, TiersHaveNoCaseTwice) {
  std::set<std::string> names;
  const std::vector<LayoutCase> quick = quick_layout_cases(), slow = slow_layout_cases();
  for (const auto* cases : {&quick, &slow}) {
    for (const LayoutCase& c : *cases) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
  EXPECT_EQ(names.size() % layouts().size(), 0U);
}

}  // namespace
}  // namespace bev::test
