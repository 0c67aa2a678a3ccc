#include "unit/text/tiny_bpe.h"

#include "base/json.h"
#include "text/bpe/bpe_vocab.h"

namespace bev::test {

TinyFiles tiny_files(const TinyMerges& merges) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[name_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  std::string lines = "#version: 0.2\n";
  for (const auto& [left, right] : merges) {
    lines += name_of_bytes(left) + " " + name_of_bytes(right) + "\n";
    const std::string merged = name_of_bytes(left + right);
    if (!vocab.contains(merged)) vocab[merged] = vocab.size();
  }
  vocab[std::string(kEndOfText)] = vocab.size();
  return {vocab.dump(), lines};
}

std::shared_ptr<const BpeVocab> tiny_vocab(const TinyMerges& merges) {
  const TinyFiles files = tiny_files(merges);
  return std::make_shared<const BpeVocab>(NamedText{"vocab.json", files.vocab},
                                          NamedText{"merges.txt", files.merges});
}

}  // namespace bev::test
