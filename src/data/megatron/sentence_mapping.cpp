#include "data/megatron/sentence_mapping.h"

#include <algorithm>
#include <cmath>

namespace bev {

namespace {

constexpr double kMostOneIn = 0x1p31 - 1;

class Mapper {
 public:
  Mapper(const TokenIndex& index, const SentenceMappingSpec& spec)
      : index_(index),
        spec_(spec),
        one_in_(spec.short_probability > 0
                    ? static_cast<uint32_t>(
                          std::min(std::round(1.0 / spec.short_probability), kMostOneIn))
                    : 0),
        engine_(spec.seed) {}

  std::vector<SentenceRun> map() {
    for (int64_t epoch = 0; epoch < spec_.epochs && has_room(); ++epoch) {
      const size_t before = runs_.size();
      for (int64_t i = spec_.first_document; i < spec_.end_document; ++i) {
        const DocumentRule rule{.least_sentences = spec_.least_sentences};
        if (document_use(index_, i, rule) != DocumentUse::Usable) continue;
        cut_document(
            index_, i, {.least = spec_.least_sentences}, [this] { return draw_target(); },
            [this](int64_t begin, int64_t end, int64_t target) {
              runs_.push_back({begin, end, target});
            });
      }
      if (runs_.size() == before) break;  // no later epoch would add anything
    }
    shuffle_mapping(runs_, spec_.seed);
    return std::move(runs_);
  }

 private:
  bool has_room() const { return static_cast<int64_t>(runs_.size()) < spec_.most_samples; }

  int64_t draw_target() {
    if (one_in_ == 0) return spec_.longest;
    const auto draw = static_cast<uint32_t>(engine_());
    return draw % one_in_ == 0
               ? 2 + static_cast<int64_t>(draw % static_cast<uint32_t>(spec_.longest - 1))
               : spec_.longest;
  }

  const TokenIndex& index_;
  SentenceMappingSpec spec_;
  uint32_t one_in_;  // 0: none is shorter
  std::mt19937 engine_;
  std::vector<SentenceRun> runs_;
};

}  // namespace

DocumentUse document_use(const TokenIndex& index, int64_t document, const DocumentRule& rule) {
  const int64_t begin = index.document_begin(document), end = index.document_begin(document + 1);
  if (begin == end) return DocumentUse::Empty;
  if (end - begin < rule.least_sentences) return DocumentUse::TooFew;
  if (!rule.overlong_is_left_out || (rule.single_may_be_long && end - begin == 1))
    return DocumentUse::Usable;
  for (int64_t i = begin; i < end; ++i)
    if (index.length(i) > kOverlongSentence) return DocumentUse::Overlong;
  return DocumentUse::Usable;
}

std::vector<SentenceRun> map_sentences(const TokenIndex& index, const SentenceMappingSpec& spec) {
  return Mapper(index, spec).map();
}

}  // namespace bev
