// Tiny BERTs: with the weights of a run that begins, and in a folder with a vocabulary of words.
#pragma once

#include <fstream>

#include "unit/infer/stored_model.h"

namespace bev::test {

inline ModelFolder fresh_bert(NormPlacement placement = NormPlacement::Pre,
                              int64_t vocab_multiple = 1) {
  ModelFolder folder;
  folder.config = tiny_bert();
  folder.config.model.norm_placement = placement;
  folder.config.model.vocab_multiple = vocab_multiple;
  folder.is_fresh = true;
  return folder;
}

inline constexpr const char* kBertWords =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nparis\nis\nthe\ncapital\nof\nfrance\n.\n##s\na\n";

// One that transformers can read.
class StoredBert {
 public:
  StoredBert() {
    std::ofstream(dir_ / "vocab.txt") << kBertWords;
    Config config = tiny_bert();
    config.model.norm_placement = NormPlacement::Post;
    config.model.activation = Activation::GeluErf;
    config.data.tokenizer = TokenizerKind::BertLower;
    config.data.vocab_file = (dir_ / "vocab.txt").string();
    model_.emplace(config);
  }

  ModelFolder folder() const { return model_->folder(); }
  std::filesystem::path path() const { return model_->path(); }
  LoadedModel load(int64_t sequences, int64_t length) const {
    return model_->load(sequences, length);
  }

 private:
  TemporaryDirectory dir_;
  std::optional<StoredModel> model_;
};

}  // namespace bev::test
