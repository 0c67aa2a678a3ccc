#include "data/megatron/sentence_mapping.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

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
      for (int64_t i = spec_.first_document; i < spec_.end_document; ++i)
        if (is_usable(i))
          cut_document(index_, i, spec_.least_sentences, [this] { return draw_target(); }, runs_);
      if (runs_.size() == before) break;  // no later epoch would add anything
    }
    shuffle();
    return std::move(runs_);
  }

 private:
  bool has_room() const { return static_cast<int64_t>(runs_.size()) < spec_.most_samples; }

  bool is_usable(int64_t document) const {
    const int64_t begin = index_.document_begin(document),
                  end = index_.document_begin(document + 1);
    if (end - begin < spec_.least_sentences || end == begin) return false;
    for (int64_t i = begin; i < end && end - begin > 1; ++i)
      if (index_.length(i) > kOverlongSentence) return false;
    return true;
  }

  int64_t draw_target() {
    if (one_in_ == 0) return spec_.longest;
    const auto draw = static_cast<uint32_t>(engine_());
    return draw % one_in_ == 0
               ? 2 + static_cast<int64_t>(draw % static_cast<uint32_t>(spec_.longest - 1))
               : spec_.longest;
  }

  void shuffle() {
    std::mt19937_64 engine(uint64_t{spec_.seed} + 1);
    for (size_t i = runs_.size(); i-- > 1;) std::swap(runs_[i], runs_[engine() % (i + 1)]);
  }

  const TokenIndex& index_;
  SentenceMappingSpec spec_;
  uint32_t one_in_;  // 0: none is shorter
  std::mt19937 engine_;
  std::vector<SentenceRun> runs_;
};

}  // namespace

std::vector<SentenceRun> map_sentences(const TokenIndex& index, const SentenceMappingSpec& spec) {
  return Mapper(index, spec).map();
}

}  // namespace bev
