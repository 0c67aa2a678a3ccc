// libFuzzer: any bytes as vocab.txt are refused with a Data error or make a tokenizer; with any
// words behind BERT's own tokens any text becomes ids of the vocabulary, twice the same (the second
// time from the cache), and what normalizing leaves is valid UTF-8 that stays as it is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/huggingface/bert_vocab.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_encoding(const std::shared_ptr<const bev::TokenizerParts>& parts,
                    std::string_view text) {
  bev::PipelineTokenizer tokenizer(parts, true, 16);
  std::vector<int32_t> first, second;
  tokenizer.encode(text, first);
  tokenizer.encode(text, second);
  require(first == second);
  for (const int32_t id : first) require(id >= 0 && id < tokenizer.vocab_size());
  tokenizer.decode(first);
}

void check_vocab(std::string_view vocab, const bev::BertSettings& settings, std::string_view text) {
  try {
    check_encoding(bev::bert_parts({"vocab.txt", vocab}, settings), text);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Data);
  }
}

void check_normalizing(const bev::BertNormalizing& what, std::string_view bytes) {
  const auto normalizer = bev::bert_normalizer(what);
  std::string text = bev::replace_invalid_utf8(bytes);
  normalizer->apply(text);
  require(bev::valid_utf8_prefix(text) == text.size());
  if (what.space_chinese) return;  // again and again more blanks
  std::string again = text;
  normalizer->apply(again);
  require(again == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bev::BertSettings settings{.lower_case = (data[0] & 1) != 0,
                                   .classic = (data[0] & 2) != 0,
                                   .extra_ids = (data[0] & 4) != 0 ? 3 : 0};
  const size_t part = bytes.size() * data[1] / 256;
  if ((data[0] & 8) != 0) {
    check_vocab(bytes, settings, bytes);
  } else {
    const std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    check_vocab(vocab + std::string(bytes.substr(0, part)), settings, bytes.substr(part));
  }
  check_normalizing({.clean = (data[0] & 16) != 0,
                     .space_chinese = (data[0] & 32) != 0,
                     .strip_accents = (data[0] & 64) != 0,
                     .lower_case = (data[0] & 128) != 0},
                    bytes);
  return 0;
}
