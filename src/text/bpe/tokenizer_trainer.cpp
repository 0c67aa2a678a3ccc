#include "text/bpe/tokenizer_trainer.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_set>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "text/bpe/bpe_vocab.h"
#include "text/huggingface/normalizer.h"
#include "text/huggingface/pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kByteValues = 256;

// The bytes by the code point that stands for each.
std::array<unsigned char, kByteValues> bytes_in_order() {
  std::array<unsigned char, kByteValues> bytes{};
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  std::sort(bytes.begin(), bytes.end(), [](unsigned char a, unsigned char b) {
    return character_of_byte(a) < character_of_byte(b);
  });
  return bytes;
}

void check_specials(const BpeTraining& how) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& special : how.specials) {
    BEV_CHECK(bytes_of_name(special) && special.size() > 1, Usage,
              "the special token {} cannot stand in a vocabulary; legal: two or more printable "
              "characters without blanks, such as <|endoftext|>",
              in_quotes(special));
    BEV_CHECK(seen.insert(special).second, Usage, "the special token {} is given twice",
              in_quotes(special));
  }
  const auto least = static_cast<int64_t>(kByteValues + how.specials.size());
  BEV_CHECK(how.vocab >= least, Usage,
            "a vocabulary of {} tokens has no room for 256 bytes and {} special tokens; legal: at "
            "least {}",
            how.vocab, how.specials.size(), least);
}

PairMerger split_into_bytes(const PieceCounts& counts,
                            const std::array<unsigned char, kByteValues>& order) {
  std::array<int32_t, kByteValues> id_of{};
  for (size_t id = 0; id < kByteValues; ++id) id_of[order[id]] = static_cast<int32_t>(id);
  PairMerger merger(kByteValues);
  std::vector<int32_t> symbols;
  counts.for_each([&](std::string_view piece, int64_t count) {
    symbols.clear();
    for (const char c : piece) symbols.push_back(id_of[static_cast<unsigned char>(c)]);
    merger.add_word(symbols, count);
  });
  return merger;
}

}  // namespace

TrainedBpe train_bpe(std::span<const std::string_view> texts, const BpeTraining& how,
                     TrainingProgress progress) {
  check_specials(how);
  const std::array<unsigned char, kByteValues> order = bytes_in_order();
  TrainedBpe trained;
  trained.specials = how.specials;
  for (const unsigned char byte : order) trained.tokens.emplace_back(1, static_cast<char>(byte));
  const auto count = [](std::string_view unit, PieceCounts& counts) {
    count_gpt2_pieces(unit, counts);
  };
  PairMerger merger =
      split_into_bytes(count_pieces(texts, how.unit, how.threads, count, progress.counted), order);
  // A special token in a text is no word to be learned.
  const std::unordered_set<std::string_view> specials(how.specials.begin(), how.specials.end());
  const auto& tokens = trained.tokens;
  std::vector<std::string> made;
  const auto refuse = [&](SymbolPair pair) {
    const auto text_of = [&](int32_t id) {
      const auto i = static_cast<size_t>(id);
      return i < kByteValues ? tokens[i] : made[i - kByteValues];
    };
    std::string text = text_of(pair.left) + text_of(pair.right);
    if (specials.contains(text)) return true;
    made.push_back(std::move(text));
    return false;
  };
  const size_t limit = static_cast<size_t>(how.vocab) - kByteValues - how.specials.size();
  trained.merges = merger.merge(limit, how.min_count, refuse, progress.merged);
  trained.tokens.insert(trained.tokens.end(), made.begin(), made.end());
  trained.text_tokens = merger.tokens();
  return trained;
}

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

namespace {

using OrderedJson = nlohmann::ordered_json;

// Of the special tokens too, whose bytes stand for themselves.
std::vector<std::string> names_of(const TrainedBpe& trained) {
  std::vector<std::string> names;
  names.reserve(trained.tokens.size() + trained.specials.size());
  for (const std::string& token : trained.tokens) names.push_back(name_of_bytes(token));
  names.insert(names.end(), trained.specials.begin(), trained.specials.end());
  return names;
}

// Objects with thousands of names are written by hand: the library's ordered object takes time
// quadratic in their number.
std::string object_of(const std::vector<std::string>& names) {
  std::string text = "{";
  for (size_t id = 0; id < names.size(); ++id)
    text += format("{}{}:{}", id == 0 ? "" : ",", Json(names[id]).dump(), id);
  return text + "}";
}

OrderedJson byte_level(bool add_prefix_space) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", true}};
}

}  // namespace

std::string vocab_json(const TrainedBpe& trained) { return object_of(names_of(trained)) + "\n"; }

std::string merges_txt(const TrainedBpe& trained) {
  const std::vector<std::string> names = names_of(trained);
  std::string text = "#version: 0.2\n";
  for (const SymbolPair& pair : trained.merges)
    text += format("{} {}\n", names[static_cast<size_t>(pair.left)],
                   names[static_cast<size_t>(pair.right)]);
  return text;
}

std::string tokenizer_json(const TrainedBpe& trained) {
  const std::vector<std::string> names = names_of(trained);
  OrderedJson added = OrderedJson::array();
  for (size_t i = 0; i < trained.specials.size(); ++i)
    added.push_back({{"id", trained.tokens.size() + i},
                     {"content", trained.specials[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  OrderedJson merges = OrderedJson::array();
  for (const SymbolPair& pair : trained.merges)
    merges.push_back(
        {names[static_cast<size_t>(pair.left)], names[static_cast<size_t>(pair.right)]});
  // Byte-level pieces need no space in front; a decoder does not care.
  return format(
      "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":{},"
      "\"normalizer\":null,\"pre_tokenizer\":{},\"post_processor\":null,\"decoder\":{},"
      "\"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
      "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
      "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{},\"merges\":{}}}}}\n",
      added.dump(), byte_level(false).dump(), byte_level(true).dump(), object_of(names),
      merges.dump());
}

}  // namespace bev
