// Rules about blends of token files and the order of samples.
#include "base/format.h"
#include "config/blend.h"
#include "config/rules/rule.h"
#include "config/sample_ranges.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found lists_are_blends(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  for (const auto& [path, list] :
       {std::pair{"data.path", &d.path}, std::pair{"data.train_path", &d.train_path},
        std::pair{"data.valid_path", &d.valid_path}, std::pair{"data.test_path", &d.test_path}}) {
    if (list->empty()) continue;
    if (*list == TextList{""})
      return Problem{.what = format("{} is an empty text", path),
                     .where = f.where({path}),
                     .why = "a token file has a name",
                     .legal = "one path without the ending .bin"};
    const ParsedBlend parsed = parse_blend(*list);
    if (parsed.blend) continue;
    return Problem{.what = format("{} is not a blend of token files", path),
                   .where = f.where({path}),
                   .why = parsed.why,
                   .legal =
                       "token files (A B), or each after its weight above 0 (0.3 A 0.7 B), without "
                       "the ending .bin"};
  }
  return {};
}

// NumPy's generator takes 32 bits.
Found megatron_seed(const RuleInput& f) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1;
  if (f.config.data.order != SampleOrder::Megatron || f.config.train.seed <= kMost) return {};
  return Problem{.what = "the seed is too large for Megatron-LM's order of samples",
                 .where = f.where({"train.seed", "data.order"}),
                 .why = "its random numbers start from 32 bits",
                 .legal = format("train.seed at most {}", kMost)};
}

Found cyclic_has_samples(const RuleInput& f) {
  if (f.config.data.sampler != SamplerKind::Cyclic || f.config.data.order == SampleOrder::Megatron)
    return {};
  return Problem{.what = "a cyclic order needs Megatron-LM's samples",
                 .where = f.where({"data.sampler", "data.order"}),
                 .why =
                     "it shuffles their numbers again, epoch by epoch; the arithmetic order does "
                     "that by itself",
                 .legal = "data.sampler single, or data.order megatron"};
}

Found skip_is_ranges(const RuleInput& f) {
  ParsedRanges parsed = parse_sample_ranges(f.config.data.skip);
  if (parsed.why.empty()) return {};
  return Problem{.what = "data.skip is not a list of samples",
                 .where = f.where({"data.skip"}),
                 .why = std::move(parsed.why),
                 .legal = std::string(kLegalSampleRanges)};
}

}  // namespace

std::vector<Rule> data_rules() {
  return {
      {{"data.path", "data.train_path", "data.valid_path", "data.test_path"}, lists_are_blends},
      {{"train.seed", "data.order"}, megatron_seed},
      {{"data.sampler", "data.order"}, cyclic_has_samples},
      {{"data.skip"}, skip_is_ranges},
  };
}

}  // namespace bev
