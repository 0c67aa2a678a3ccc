// libFuzzer: the files of eval's tasks. Any bytes are refused with a Data error or become items
// that a model can be given.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "eval/lambada.h"
#include "eval/multiple_choice.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

constexpr int64_t kLength = 24;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const bev::ScoringItem& item) {
  require(item.first >= 1 && item.scored() >= 1);
  require(static_cast<int64_t>(item.ids.size()) <= kLength + 1);
}

template <class Read>
void read(Read&& items) {
  try {
    for (const bev::ScoringItem& item : items()) check(item);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  bev::ByteTokenizer tokenizer;
  for (const auto rule : {bev::LambadaRule::LastToken, bev::LambadaRule::LastWord})
    read([&] { return bev::read_lambada("fuzz", file, rule, kLength, tokenizer); });
  read([&] {
    const auto questions = bev::read_questions("fuzz", file);
    return bev::choice_items("fuzz", questions, 256, kLength, tokenizer);
  });
  for (const auto rules : {bev::Detokenizer::Ptb, bev::Detokenizer::Wikitext})
    require(bev::detokenize(file, rules).size() <= 4 * size);
  require((bev::count_words(file) == 0) == bev::strip(file).empty());
  require(bev::last_word(file).empty() == bev::strip(file).empty());
  return 0;
}
