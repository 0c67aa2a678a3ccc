#include "eval/wikitext.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr double kLargestExponent = 20;

double bounded_exp(double x) { return std::exp(std::min(kLargestExponent, x)); }

}  // namespace

WikitextCorpus wikitext_corpus(std::string name, std::string_view text, Detokenizer rules,
                               Tokenizer& tokenizer) {
  const size_t valid = valid_utf8_prefix(text);
  BEV_CHECK(valid == text.size(), Data, "{}: byte {} is not UTF-8", name, valid);
  const std::string_view stripped = strip(text);
  const auto words = 1 + std::count(stripped.begin(), stripped.end(), ' ');
  BEV_CHECK(words >= 2, Data, "{}: there are no two words in the file", name);
  const std::string plain = detokenize(text, rules);
  const auto ids = std::make_shared<std::vector<int32_t>>();
  tokenizer.encode_begun(plain, *ids);
  const auto tokens = static_cast<int64_t>(ids->size());
  return {.text = {.name = std::move(name),
                   .stream = stream_of(*ids),
                   .documents = {{.begin = 0,
                                  .tokens = tokens,
                                  .bytes = static_cast<int64_t>(plain.size()),
                                  .words = count_words(plain)}},
                   .has_text = true,
                   .ids = ids},
          .rules = rules,
          .original_words = words};
}

double WikitextScore::perplexity() const { return bounded_exp(loss); }

double WikitextScore::word_perplexity() const { return bounded_exp(loss * token_ratio); }

WikitextScore wikitext_score(const WikitextCorpus& corpus, double nats) {
  const auto scored = static_cast<double>(corpus.text.stream.size - 1);
  return {.loss = nats / scored,
          .token_ratio = scored / static_cast<double>(corpus.original_words - 1)};
}

std::string megatron_line(const WikitextScore& score) {
  return format(
      " validation results on WIKITEXT103 | avg loss: {:.4E} | ppl: {:.4E} | adjusted ppl: {:.4E} "
      "| token ratio: {} |",
      score.loss, score.perplexity(), score.word_perplexity(), Json(score.token_ratio).dump());
}

}  // namespace bev
