#include "data/span_masking.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/check.h"

namespace bev {

namespace {

constexpr std::string_view kSentinelBegin = "<extra_id_", kSentinelEnd = ">";

// The ids of <extra_id_0>, <extra_id_1>, ... up to the first that is missing.
std::vector<int32_t> find_sentinels(const Tokenizer& tokenizer) {
  std::map<int64_t, int32_t> by_number;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string name = tokenizer.token_name(static_cast<int32_t>(id));
    std::string_view number = name;
    if (!number.starts_with(kSentinelBegin) || !number.ends_with(kSentinelEnd)) continue;
    number.remove_prefix(kSentinelBegin.size());
    number.remove_suffix(kSentinelEnd.size());
    int64_t value = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number = error == std::errc{} && end == number.data() + number.size();
    if (is_number) by_number.emplace(value, static_cast<int32_t>(id));
  }
  std::vector<int32_t> sentinels;
  for (const auto& [number, id] : by_number)
    if (number == std::ssize(sentinels)) sentinels.push_back(id);
  return sentinels;
}

}  // namespace

SpanVocabulary span_vocabulary(const Tokenizer& tokenizer, std::string_view source) {
  const auto id_of = [&](TokenRole role, std::string_view name) {
    const std::optional<int32_t> id = tokenizer.role_id(role);
    BEV_CHECK(id, Data,
              "{}: the vocabulary has no token for {}, which samples of T5 need; expected a "
              "vocabulary of a T5, or a vocab.txt of BERT with --vocab-extra-ids 100",
              source, name);
    return *id;
  };
  const int32_t pad = id_of(TokenRole::Pad, "padding");
  SpanVocabulary vocabulary{.words = word_pieces(tokenizer),
                            .begin = tokenizer.role_id(TokenRole::Begin).value_or(pad),
                            .end = id_of(TokenRole::End, "the end of a text"),
                            .pad = pad,
                            .sentinels = find_sentinels(tokenizer),
                            .ids = tokenizer.vocab_size()};
  BEV_CHECK(!vocabulary.sentinels.empty(), Data,
            "{}: the vocabulary has no sentinels (<extra_id_0>, <extra_id_1>, ...), which mark the "
            "masked spans of T5\n  add them with --vocab-extra-ids 100, or use a tokenizer of T5",
            source);
  return vocabulary;
}

void SpanMasker::reserve(size_t tokens) {
  ngrams_.reserve(tokens);
  spans_.reserve(tokens);
}

}  // namespace bev
