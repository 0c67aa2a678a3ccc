#include "infer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "infer/continuous_batcher.h"

namespace bev {

namespace {

// Pages of a cache, each of which several texts may have in common.
class SharedPages {
 public:
  explicit SharedPages(int64_t pages) : holders_(static_cast<size_t>(pages)) {
    free_.resize(holders_.size());
    std::iota(free_.rbegin(), free_.rend(), 0);
  }

  int32_t take() {
    BEV_CHECK(!free_.empty(), Internal, "the cache has no page left for a beam");
    const int32_t page = free_.back();
    free_.pop_back();
    holders_[static_cast<size_t>(page)] = 1;
    return page;
  }
  void share(int32_t page) { ++holders_[static_cast<size_t>(page)]; }
  void give(int32_t page) {
    if (--holders_[static_cast<size_t>(page)] == 0) free_.push_back(page);
  }
  bool is_shared(int32_t page) const { return holders_[static_cast<size_t>(page)] > 1; }

 private:
  std::vector<int> holders_;
  std::vector<int32_t> free_;
};

struct Followed {
  std::vector<int32_t> tokens{}, pages{}, source_pages{};
  double logprob = 0;

  template <class F>
  void each_page(F f) const {
    std::for_each(pages.begin(), pages.end(), f);
    std::for_each(source_pages.begin(), source_pages.end(), f);
  }
};

// A beam and one more token.
struct Candidate {
  size_t beam;
  int32_t id;
  double logprob;
};

class Search {
 public:
  Search(InferenceEngine& decoder, std::span<const int32_t> prompt, const SourceText& source,
         const BeamOptions& options)
      : decoder_(decoder),
        source_(source),
        options_(options),
        prompt_(prompt.size()),
        pages_(decoder.limits().pages) {
    BEV_CHECK(options.beams >= 1 && options.beams <= decoder.limits().rows && !prompt.empty() &&
                  options.tokens >= 1 &&
                  std::ssize(prompt) + options.tokens <= decoder.limits().length,
              Internal, "a search with {} beams of {} tokens behind {}", options.beams,
              options.tokens, prompt.size());
    Followed first{.tokens = {prompt.begin(), prompt.end()}};
    const auto page = static_cast<size_t>(decoder.limits().page);
    const auto take = [&](std::vector<int32_t>& pages, size_t tokens) {
      while (pages.size() * page < tokens) pages.push_back(pages_.take());
    };
    take(first.pages, first.tokens.size());
    take(first.source_pages, source.ids.size());
    beams_.push_back(std::move(first));
  }

  std::vector<Beam> run(FunctionRef<bool()> goes_on) {
    const EngineRow row = row_of(beams_.front());
    decoder_.prefill({&row, 1});
    for (int64_t made = 1;; ++made) {
      follow(candidates(), made);
      if (made == options_.tokens || beams_.empty() || is_done(made) || !goes_on()) break;
      std::vector<EngineRow> rows;
      rows.reserve(beams_.size());
      for (const Followed& beam : beams_) rows.push_back(row_of(beam));
      decoder_.decode(rows);
    }
    // Those that are cut off compete with those that ended.
    for (const Followed& beam : beams_) add(new_ids(beam), beam.logprob, beam_tokens(beam), false);
    return std::move(found_);
  }

 private:
  EngineRow row_of(const Followed& beam) const {
    return {.tokens = beam.tokens,
            .pages = beam.pages,
            .choice = {.temperature = 0},
            .source = source_.ids,
            .source_length = source_.length,
            .source_pages = beam.source_pages};
  }

  std::vector<int32_t> new_ids(const Followed& beam) const {
    return {beam.tokens.begin() + static_cast<ptrdiff_t>(prompt_), beam.tokens.end()};
  }

  int64_t beam_tokens(const Followed& beam) const {
    return std::ssize(beam.tokens) - static_cast<int64_t>(prompt_);
  }

  double score(double logprob, int64_t tokens) const {
    return logprob / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }

  void add(std::vector<int32_t> ids, double logprob, int64_t tokens, bool has_ended) {
    found_.push_back({std::move(ids), logprob, score(logprob, tokens), has_ended});
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Beam& a, const Beam& b) { return a.score > b.score; });
    if (std::ssize(found_) > options_.beams) found_.pop_back();
  }

  // Likeliest first.
  std::vector<Candidate> candidates() {
    decoder_.collect();
    const std::vector<float> logits = decoder_.logits();
    const auto vocab = static_cast<size_t>(decoder_.vocab());
    std::vector<Candidate> all;
    for (size_t beam = 0; beam < beams_.size(); ++beam)
      for (const ScoredToken& token :
           likeliest(std::span(logits).subspan(beam * vocab, vocab), 2 * options_.beams))
        if (std::isfinite(token.logprob))
          all.push_back({beam, token.id, beams_[beam].logprob + token.logprob});
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; });
    all.resize(std::min(all.size(), 2 * static_cast<size_t>(options_.beams)));
    return all;
  }

  // `made`: tokens, the candidates' included.
  void follow(const std::vector<Candidate>& all, int64_t made) {
    std::vector<Followed> next;
    for (size_t place = 0; place < all.size(); ++place) {
      const Candidate& c = all[place];
      if (c.id == options_.end) {
        if (std::cmp_less(place, options_.beams))
          add(new_ids(beams_[c.beam]), c.logprob, made, true);
        continue;
      }
      Followed beam = beams_[c.beam];
      beam.each_page([&](int32_t page) { pages_.share(page); });
      beam.tokens.push_back(c.id);
      beam.logprob = c.logprob;
      next.push_back(std::move(beam));
      if (std::ssize(next) == options_.beams) break;
    }
    for (const Followed& beam : beams_) beam.each_page([&](int32_t page) { pages_.give(page); });
    beams_ = std::move(next);
    for (Followed& beam : beams_) make_room(beam);
  }

  // The pages that the next step writes are this beam's own: that of the newest token, and the last
  // one of the source.
  void make_room(Followed& beam) {
    const size_t index = (beam.tokens.size() - 1) / static_cast<size_t>(decoder_.limits().page);
    if (index == beam.pages.size()) {
      beam.pages.push_back(pages_.take());
    } else {
      make_own(beam.pages[index]);
    }
    if (!beam.source_pages.empty()) make_own(beam.source_pages.back());
  }

  void make_own(int32_t& page) {
    if (!pages_.is_shared(page)) return;
    const int32_t own = pages_.take();
    decoder_.copy_page(page, own);
    pages_.give(page);
    page = own;
  }

  bool is_done(int64_t made) const {
    return std::ssize(found_) == options_.beams &&
           found_.back().score >= score(beams_.front().logprob, made);
  }

  InferenceEngine& decoder_;
  const SourceText& source_;
  BeamOptions options_;
  size_t prompt_;  // tokens
  SharedPages pages_;
  std::vector<Followed> beams_;  // likeliest first
  std::vector<Beam> found_;      // best first
};

}  // namespace

std::vector<Beam> beam_search(InferenceEngine& decoder, std::span<const int32_t> prompt,
                              const SourceText& source, const BeamOptions& options,
                              FunctionRef<bool()> goes_on) {
  Search search(decoder, prompt, source, options);
  return search.run(goes_on);
}

std::vector<Beam> beam_search(InferenceEngine& decoder, std::span<const int32_t> prompt,
                              const BeamOptions& options, FunctionRef<bool()> goes_on) {
  return beam_search(decoder, prompt, {}, options, goes_on);
}

}  // namespace bev
