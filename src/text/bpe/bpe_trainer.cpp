#include "text/bpe/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

#include "base/check.h"
#include "base/json.h"
#include "text/bpe/byte_alphabet.h"

namespace bev {

namespace {

constexpr size_t kBytes = 256;

// The bytes by the code point that stands for each.
std::array<unsigned char, kBytes> bytes_in_order() {
  std::array<unsigned char, kBytes> bytes{};
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
  const auto least = static_cast<int64_t>(kBytes + how.specials.size());
  BEV_CHECK(how.vocab >= least, Usage,
            "a vocabulary of {} tokens has no room for 256 bytes and {} special tokens; legal: at "
            "least {}",
            how.vocab, how.specials.size(), least);
}

PairMerger split_into_bytes(const PieceCounts& counts,
                            const std::array<unsigned char, kBytes>& order) {
  std::array<int32_t, kBytes> id_of{};
  for (size_t id = 0; id < kBytes; ++id) id_of[order[id]] = static_cast<int32_t>(id);
  PairMerger merger(kBytes);
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
  const std::array<unsigned char, kBytes> order = bytes_in_order();
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
      return i < kBytes ? tokens[i] : made[i - kBytes];
    };
    std::string text = text_of(pair.left) + text_of(pair.right);
    if (specials.contains(text)) return true;
    made.push_back(std::move(text));
    return false;
  };
  const size_t limit = static_cast<size_t>(how.vocab) - kBytes - how.specials.size();
  trained.merges = merger.merge(limit, how.min_count, refuse, progress.merged);
  trained.tokens.insert(trained.tokens.end(), made.begin(), made.end());
  trained.text_tokens = merger.tokens();
  return trained;
}

}  // namespace bev
