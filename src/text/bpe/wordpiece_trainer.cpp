#include "text/bpe/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/check.h"
#include "base/json.h"
#include "text/huggingface/normalizer.h"
#include "text/huggingface/pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kMostCharacters = 1000;
constexpr std::string_view kContinuation = "##";

std::vector<std::string> special_tokens(const WordPieceTraining& how) {
  std::vector<std::string> all{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  all.insert(all.end(), how.specials.begin(), how.specials.end());
  std::unordered_set<std::string_view> seen;
  for (const std::string& special : all) {
    BEV_CHECK(!special.empty() && valid_utf8_prefix(special) == special.size() &&
                  special.find('\n') == std::string::npos,
              Usage, "the special token {} cannot stand in a vocabulary; legal: a line of text",
              in_quotes(special));
    BEV_CHECK(seen.insert(special).second, Usage, "the special token {} is given twice",
              in_quotes(special));
  }
  return all;
}

// Counts BERT's words; the normalizer and the cut never change and are shared by threads.
class BertWords {
 public:
  explicit BertWords(bool lower_case)
      : normalizer_(bert_normalizer({.strip_accents = lower_case, .lower_case = lower_case})),
        cut_(split_for_bert()) {}

  void count(std::string_view line, PieceCounts& counts) const {
    PieceList list;
    list.text = line;
    normalizer_->apply(list.text);
    if (list.text.empty()) return;
    list.cuts.push_back({0, list.text.size(), true});
    cut_->apply(list);
    ListedPieces pieces(list);
    for (std::string_view piece; pieces.next(piece);) counts.add(piece, piece.size());
  }

 private:
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PieceStep> cut_;
};

template <class Body>
void for_each_character(std::string_view word, Body&& body) {
  for (size_t at = 0; at < word.size();) {
    const Utf8Character next = utf8_character(word.data() + at);
    body(next.code, at == 0);
    at += next.length;
  }
}

std::string text_of(char32_t code) {
  std::string text;
  append_utf8(code, text);
  return text;
}

// The most frequent characters, by code point; of equally frequent ones the smaller stay.
std::vector<char32_t> alphabet_of(const PieceCounts& counts, int64_t& left_out) {
  std::map<char32_t, int64_t> frequency;
  counts.for_each([&](std::string_view word, int64_t count) {
    for_each_character(word, [&](char32_t code, bool) { frequency[code] += count; });
  });
  std::vector<std::pair<char32_t, int64_t>> all(frequency.begin(), frequency.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  left_out = static_cast<int64_t>(all.size() - std::min(all.size(), kMostCharacters));
  all.resize(std::min(all.size(), kMostCharacters));
  std::vector<char32_t> alphabet;
  for (const auto& [code, count] : all) alphabet.push_back(code);
  std::sort(alphabet.begin(), alphabet.end());
  return alphabet;
}

}  // namespace

TrainedWordPiece train_wordpiece(std::span<const std::string_view> texts,
                                 const WordPieceTraining& how, TrainingProgress progress) {
  TrainedWordPiece trained;
  trained.tokens = special_tokens(how);
  const std::unordered_set<std::string> specials(trained.tokens.begin(), trained.tokens.end());
  const BertWords words(how.lower_case);
  const auto count = [&](std::string_view line, PieceCounts& counts) { words.count(line, counts); };
  const PieceCounts counts =
      count_pieces(texts, TextUnit::Line, how.threads, count, progress.counted);

  const std::vector<char32_t> alphabet = alphabet_of(counts, trained.characters_left_out);
  std::map<char32_t, int32_t> first, behind;  // ids of characters
  std::unordered_set<char32_t> behind_used;
  counts.for_each([&](std::string_view word, int64_t) {
    for_each_character(word, [&](char32_t code, bool is_first) {
      if (!is_first) behind_used.insert(code);
    });
  });
  const auto next_id = [&] { return static_cast<int32_t>(trained.tokens.size()); };
  for (const char32_t code : alphabet) {
    first.emplace(code, next_id());
    trained.tokens.push_back(text_of(code));
  }
  for (const char32_t code : alphabet) {
    if (!behind_used.contains(code)) continue;
    behind.emplace(code, next_id());
    trained.tokens.push_back(std::string(kContinuation) + text_of(code));
  }
  BEV_CHECK(next_id() <= how.vocab, Usage,
            "a vocabulary of {} tokens has no room for the special tokens and the characters of "
            "the text; legal: at least {}",
            how.vocab, next_id());

  PairMerger merger(next_id());
  std::vector<int32_t> symbols;
  counts.for_each([&](std::string_view word, int64_t times) {
    symbols.clear();
    for_each_character(word, [&](char32_t code, bool is_first) {
      const std::map<char32_t, int32_t>& ids = is_first ? first : behind;
      if (const auto known = ids.find(code); known != ids.end()) symbols.push_back(known->second);
    });
    if (!symbols.empty()) merger.add_word(symbols, times);
  });
  std::vector<std::string>& tokens = trained.tokens;
  const auto refuse = [&](SymbolPair pair) {
    std::string_view right = tokens[static_cast<size_t>(pair.right)];
    if (right.starts_with(kContinuation) && right.size() > kContinuation.size())
      right.remove_prefix(kContinuation.size());
    std::string text = tokens[static_cast<size_t>(pair.left)];
    text += right;
    if (specials.contains(text)) return true;
    tokens.push_back(std::move(text));
    return false;
  };
  merger.merge(static_cast<size_t>(how.vocab) - tokens.size(), how.min_count, refuse,
               progress.merged);
  trained.text_tokens = merger.tokens();
  return trained;
}

std::string vocab_txt(const TrainedWordPiece& trained) {
  std::string text;
  for (const std::string& token : trained.tokens) text += token + "\n";
  return text;
}

}  // namespace bev
