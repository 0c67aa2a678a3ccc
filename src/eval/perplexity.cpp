#include "eval/perplexity.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

std::string rule_in_words(const PerplexityRule& rule) {
  const std::string first =
      rule.before < 0
          ? "the first one is not scored"
          : format("the first one is scored from id {}, the end of a document", rule.before);
  const std::string seen =
      rule.overlap == 0
          ? "that share none"
          : format("that share {} with the window before, where they are scored already",
                   rule.overlap);
  return format("each token is scored once, from those before it in a window of {} tokens {}; {}{}",
                rule.length, seen, first,
                rule.separate ? ", and so in every document, which stands alone" : "");
}

PerplexityWindows::PerplexityWindows(const EvalText& text, const PerplexityRule& rule) {
  const auto add = [&](int64_t begin, int64_t size) {
    begins_.push_back(begin);
    parts_.emplace_back(part_of(text.stream, begin, size), rule.length, rule.overlap, rule.before);
  };
  if (rule.separate) {
    const int64_t least = rule.before < 0 ? 2 : 1;
    for (const EvalDocument& document : text.documents)
      if (document.tokens >= least) add(document.begin, document.tokens);
    BEV_CHECK(!parts_.empty(), Data, "{}: no document has enough tokens to score", text.name);
  } else {
    add(0, text.stream.size);
  }
  first_.push_back(0);
  for (const ScoringWindows& part : parts_) first_.push_back(first_.back() + part.windows());
}

PerplexityWindows::Place PerplexityWindows::place(int64_t index) const {
  const auto behind = std::upper_bound(first_.begin(), first_.end(), index);
  const auto part = static_cast<size_t>(behind - first_.begin()) - 1;
  return {part, index - first_[part]};
}

ScoringItems PerplexityWindows::items() const {
  return {.count = count(), .read = [this](int64_t index) {
            const Place at = place(index);
            return parts_[at.part].item(at.window);
          }};
}

int64_t PerplexityWindows::first_place(int64_t index) const {
  const Place at = place(index);
  return begins_[at.part] + parts_[at.part].first_place(at.window);
}

TextScore score_text(Scorer& scorer, const EvalText& text, const PerplexityWindows& windows,
                     FunctionRef<void(int64_t done)> on_done) {
  TextScore result{.documents = std::vector<DocumentScore>(text.documents.size())};
  size_t document = 0;
  scorer.score(
      windows.items(),
      [&](int64_t index, std::span<const TokenScore> scores) {
        int64_t place = windows.first_place(index);
        for (const TokenScore& score : scores) {
          while (place >= text.documents[document].begin + text.documents[document].tokens)
            ++document;
          result.documents[document].nats += score.loss;
          ++result.documents[document].tokens;
          ++place;
        }
      },
      on_done);
  // By documents, so that the whole is the sum of what is told of them.
  for (const DocumentScore& each : result.documents) {
    result.tokens += each.tokens;
    result.nats += each.nats;
  }
  return result;
}

}  // namespace bev
