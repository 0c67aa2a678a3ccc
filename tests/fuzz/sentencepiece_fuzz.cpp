// libFuzzer: any bytes as a SentencePiece model are refused with a Data error, or make a tokenizer
// that encodes any text into ids of its vocabulary and decodes any ids. The library behind it is
// not instrumented, but it runs under the same allocator. What follows the model is the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/sentencepiece/sentencepiece_tokenizer.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(bev::SentencePieceTokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids, again;
  tokenizer.encode(text, ids);
  tokenizer.clone()->encode(text, again);
  require(ids == again);
  for (const int32_t id : ids) {
    require(id >= 0 && id < tokenizer.vocab_size());
    require(!tokenizer.token_name(id).empty());
  }
  tokenizer.decode(ids);
  std::vector<int32_t> all;
  for (const char c : text) all.push_back(static_cast<int32_t>(c));
  tokenizer.decode(all);
  tokenizer.decode(all, bev::SpecialIds::LeaveOut);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t part = bytes.size() * data[0] / 255;
  const auto rules = static_cast<bev::SentencePieceRules>(data[1] % 3);
  // A whole model with fixed texts, or a model and a text.
  const std::string_view model = bytes.substr(0, part);
  try {
    bev::SentencePieceTokenizer tokenizer(model, "fuzz.model", rules, data[1] / 3 % 3);
    use(tokenizer, bytes.substr(part));
    use(tokenizer, "a b\xEF\xBC\xA1 \xE2\x96\x81<unk>\n\0 </s>");
    use(tokenizer, model.substr(0, 200));
  } catch (const bev::Error& e) {
    require(e.kind == bev::ErrorKind::Data);
  }
  return 0;
}
