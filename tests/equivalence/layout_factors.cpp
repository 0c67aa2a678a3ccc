#include "equivalence/layout_factors.h"

#include "base/format.h"
#include "config/rules/config_check.h"
#include "equivalence/layout_cases.h"
#include "parallel/parallel_layout.h"
#include "pipeline/schedule.h"

namespace bev::test {

namespace {

// 1, 2 and 4 ranks.
size_t place_of_ranks(int64_t ranks) { return ranks == 1 ? 0 : ranks == 2 ? 1 : 2; }
int64_t ranks_at(size_t place) { return int64_t{1} << place; }

enum ModelValue : size_t {
  kGpt,
  kLlama,
  kBert,
  kPostNormBert,
  kT5,
  kRelativeT5,
  kSharedBiencoder,
  kSeparateBiencoder
};

void set_model(Config& c, size_t value) {
  switch (value) {
    case kGpt: c = divisible_gpt(); break;
    case kLlama: c = divisible_llama(); break;
    case kT5: c = divisible_t5(); break;
    case kRelativeT5: c = divisible_huggingface_t5(); break;
    case kSharedBiencoder:
    case kSeparateBiencoder: c = divisible_biencoder(value == kSharedBiencoder); break;
    default: c = divisible_bert();
  }
  if (value == kPostNormBert) c.model.norm_placement = NormPlacement::Post;
}

size_t model_in(const Config& c) {
  if (c.model.family == ModelFamily::Biencoder)
    return c.model.shared_towers ? kSharedBiencoder : kSeparateBiencoder;
  if (c.model.family == ModelFamily::Bert)
    return c.model.norm_placement == NormPlacement::Pre ? kBert : kPostNormBert;
  if (c.model.family == ModelFamily::T5)
    return c.model.position == PositionKind::Relative ? kRelativeT5 : kT5;
  return c.model.position == PositionKind::Rope ? kLlama : kGpt;
}

// While values are set, `threads` counts the ranks that share the batch.
void set_schedule(Config& c, size_t value) {
  c.parallel.schedule = static_cast<ScheduleKind>(value);
  c.parallel.chunks = c.parallel.schedule == ScheduleKind::Interleaved ? 2 : 1;
}

void set_dropout(Config& c, size_t value) {
  c.model.hidden_dropout = c.model.attention_dropout = value == 0 ? 0 : 0.1;
}

// Goes through all combinations of values. Returns false after the last one.
bool advance(FactorValues& values) {
  const std::vector<Factor>& factors = layout_factors();
  for (size_t i = 0; i < factors.size(); ++i) {
    if (++values[i] < factors[i].values.size()) return true;
    values[i] = 0;
  }
  return false;
}

Config configured(const FactorValues& values) {
  Config c;
  for (size_t i = 0; i < values.size(); ++i) layout_factors()[i].set(c, values[i]);
  c.parallel.ranks *= c.parallel.tensor * c.parallel.pipeline;
  return with_layers_for_all_stages(c);
}

}  // namespace

// The model comes first: it replaces the whole configuration.
const std::vector<Factor>& layout_factors() {
  static const std::vector<Factor> all{
      {"model",
       {"gpt", "llama", "bert", "post-norm bert", "t5", "relative t5", "shared bi-encoder",
        "separate bi-encoder"},
       set_model,
       model_in},
      {"tensor",
       {"1", "2", "4"},
       [](Config& c, size_t v) { c.parallel.tensor = ranks_at(v); },
       [](const Config& c) { return place_of_ranks(c.parallel.tensor); }},
      {"sequence",
       {"off", "on"},
       [](Config& c, size_t v) { c.parallel.sequence = v == 1; },
       [](const Config& c) -> size_t { return c.parallel.sequence ? 1 : 0; }},
      {"data",
       {"1", "2", "4"},
       [](Config& c, size_t v) { c.parallel.ranks = ranks_at(v); },
       [](const Config& c) { return place_of_ranks(layout_of(c).data); }},
      {"zero",
       {"0", "1", "2", "3"},
       [](Config& c, size_t v) { c.parallel.zero = static_cast<int64_t>(v); },
       [](const Config& c) { return static_cast<size_t>(c.parallel.zero); }},
      {"overlap",
       {"off", "on"},
       [](Config& c, size_t v) {
         c.parallel.overlap_gradients = c.parallel.overlap_parameters = v == 1;
       },
       [](const Config& c) -> size_t {
         return c.parallel.overlap_gradients || c.parallel.overlap_parameters ? 1 : 0;
       }},
      {"pipeline",
       {"1", "2", "4"},
       [](Config& c, size_t v) { c.parallel.pipeline = ranks_at(v); },
       [](const Config& c) { return place_of_ranks(c.parallel.pipeline); }},
      {"schedule",
       {"gpipe", "1f1b", "interleaved", "zero-bubble"},
       set_schedule,
       [](const Config& c) { return static_cast<size_t>(schedule_kind(c)); }},
      {"embedding",
       {"untied", "tied"},
       [](Config& c, size_t v) { c.model.tied = v == 1; },
       [](const Config& c) -> size_t { return c.model.tied ? 1 : 0; }},
      {"dropout",
       {"off", "on"},
       set_dropout,
       [](const Config& c) -> size_t { return c.model.hidden_dropout > 0 ? 1 : 0; }},
      {"recomputation",
       {"none", "selective", "full"},
       [](Config& c, size_t v) { c.recompute.granularity = static_cast<Recompute>(v); },
       [](const Config& c) { return static_cast<size_t>(c.recompute.granularity); }},
      {"optimizer",
       {"adam", "sgd", "lamb"},
       [](Config& c, size_t v) { c = with_optimizer(c, static_cast<OptimizerKind>(v)); },
       [](const Config& c) { return static_cast<size_t>(c.optim.kind); }},
  };
  return all;
}

FactorValues values_in(const Config& config) {
  FactorValues values;
  for (const Factor& factor : layout_factors()) values.push_back(factor.of(config));
  return values;
}

PairCoverage legal_pairs(ModelFamily family, int64_t most_ranks) {
  PairCoverage legal;
  FactorValues values(layout_factors().size());
  do {
    if (legal.gain(values) == 0) continue;
    const Config c = configured(values);
    const bool belongs = c.model.family == family && c.parallel.ranks <= most_ranks;
    if (belongs && check_config(c).empty()) legal.add(values);
  } while (advance(values));
  return legal;
}

std::string text_of(const ValuePair& pair) {
  const auto side = [&](size_t i) {
    const Factor& factor = layout_factors()[pair.factor[i]];
    return format("{} {}", factor.name, factor.values[pair.value[i]]);
  };
  return format("{} with {}", side(0), side(1));
}

}  // namespace bev::test
