// libFuzzer: any bytes as the four files of a punkt_tab folder are refused with a Data error, or
// are parameters that written and read again stay the same; with these any text is split into
// sentences, which are views into it in order. Valid UTF-8 trains parameters that can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/punkt/punkt_splitter.h"
#include "text/punkt/punkt_trainer.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_splitting(const std::shared_ptr<const bev::PunktParameters>& parameters,
                     std::string_view text) {
  bev::PunktSplitter splitter(parameters);
  for (const auto blanks : {bev::SentenceBlanks::Trim, bev::SentenceBlanks::Keep}) {
    std::vector<std::string_view> sentences;
    splitter.split(text, blanks, sentences);
    const char* at = text.data();
    for (const std::string_view sentence : sentences) {
      require(!sentence.empty() && sentence.data() >= at);
      at = sentence.data() + sentence.size();
    }
    require(at <= text.data() + text.size());
  }
}

void check_files(const bev::PunktTexts& texts, std::string_view text) {
  try {
    const auto parameters =
        std::make_shared<const bev::PunktParameters>(bev::parse_punkt(texts, "folder"));
    const bev::PunktTexts written = bev::punkt_texts(*parameters);
    require(bev::punkt_texts(bev::parse_punkt(written, "folder")) == written);
    check_splitting(parameters, text);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Data);
  }
}

void check_training(std::string_view text) {
  bev::PunktTrainer trainer;
  trainer.add(text.substr(0, bev::valid_utf8_prefix(text)));
  check_splitting(std::make_shared<const bev::PunktParameters>(trainer.finish()), text);
}

}  // namespace

// The four files and the text, with a zero byte between each two.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  bev::PunktTexts texts;
  for (std::string& text : texts) {
    const size_t end = rest.find('\0');
    text = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  check_files(texts, rest);
  check_training(rest);
  return 0;
}
