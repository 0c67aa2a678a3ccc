// libFuzzer: any bytes as vocab.json or as merges.txt are refused with a Data error or make a
// vocabulary; with whatever merges the bytes describe, a text comes back from its ids except for
// what is no UTF-8, the ways of merging agree, and a second encoding (from the cache) gives the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "text/bpe/bpe_merge.h"
#include "text/bpe/bpe_vocab.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

using Vocab = std::shared_ptr<const bev::BpeVocab>;

Vocab load(std::string_view vocab, std::string_view merges) {
  try {
    return std::make_shared<const bev::BpeVocab>(bev::NamedText{"vocab.json", vocab},
                                                 bev::NamedText{"merges.txt", merges});
  } catch (const bev::Error& e) {
    require(e.kind == bev::ErrorKind::Data);
    return nullptr;
  }
}

// Tokens with their ids as vocab.json.
class VocabText {
 public:
  VocabText() {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  }
  void add(const std::string& bytes) {
    if (!tokens_.emplace(bytes, tokens_.size()).second) return;
    const std::string name = bev::name_of_bytes(bytes);
    text_ += text_.empty() ? "{\"" : ",\"";
    for (const char c : name)
      text_ += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    text_ += bev::format("\":{}", tokens_.size() - 1);
    in_order_.push_back(bytes);
  }
  const std::string& token(size_t i) const { return in_order_[i % in_order_.size()]; }
  std::string text() const { return text_ + "}"; }

 private:
  std::map<std::string, size_t> tokens_;
  std::vector<std::string> in_order_;
  std::string text_;
};

// All strings of up to three of a few letters, so that merges of them are found by chance.
const std::string& letters_vocab() {
  static const std::string text = [] {
    VocabText vocab;
    constexpr std::string_view kLetters = "abc ";
    for (const char a : kLetters) {
      for (const char b : kLetters) {
        vocab.add({a, b});
        for (const char c : kLetters) vocab.add({a, b, c});
      }
    }
    return vocab.text();
  }();
  return text;
}

// Each two bytes are a merge of two tokens: of the bytes a to p, or of what was merged before.
Vocab described_vocab(std::string_view bytes) {
  VocabText vocab;
  std::string merges;
  std::map<std::pair<std::string, std::string>, bool> seen;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto token = [&](size_t at) {
      const auto byte = static_cast<unsigned char>(bytes[at]);
      return byte < 128 ? vocab.token('a' + byte % 16u) : vocab.token(byte + 128u);
    };
    const std::string left = token(i), right = token(i + 1);
    if (left.size() + right.size() > 64 || !seen.emplace(std::pair(left, right), true).second)
      continue;
    vocab.add(left + right);
    merges += bev::name_of_bytes(left) + " " + bev::name_of_bytes(right) + "\n";
  }
  Vocab loaded = load(vocab.text(), merges);
  require(loaded != nullptr);
  return loaded;
}

void check_ways_of_merging(const bev::BpeVocab& vocab, std::string_view text) {
  std::vector<int32_t> tokens;
  for (const char c : text.substr(0, bev::kShortPiece))
    tokens.push_back(vocab.id_of_byte(static_cast<unsigned char>(c)));
  std::vector<int32_t> other = tokens;
  tokens.resize(bev::merge_short(vocab.merges(), tokens));
  other.resize(bev::merge_long(vocab.merges(), other));
  require(tokens == other);
}

void check_encoding(const Vocab& vocab, std::string_view text) {
  const std::string expected = bev::replace_invalid_utf8(text);
  for (const auto special : {bev::SpecialText::Plain, bev::SpecialText::Special}) {
    bev::Gpt2Tokenizer tokenizer(vocab, special, 16);
    std::vector<int32_t> first, second;
    tokenizer.encode(text, first);
    tokenizer.encode(text, second);
    require(first == second);
    require(tokenizer.decode(first) == expected);
    for (const int32_t id : first) require(id >= 0 && id < tokenizer.vocab_size());
  }
  check_ways_of_merging(*vocab, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t part = bytes.size() * data[0] / 256;
  switch (data[0] % 3) {
    case 0:
      if (const Vocab vocab = load(bytes, "")) check_encoding(vocab, bytes);
      break;
    case 1:
      if (const Vocab vocab = load(letters_vocab(), bytes)) check_encoding(vocab, bytes);
      break;
    default: check_encoding(described_vocab(bytes.substr(0, part)), bytes.substr(part)); break;
  }
  return 0;
}
