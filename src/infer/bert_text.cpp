#include "infer/bert_text.h"

#include "base/check.h"
#include "config/tokenizer_config.h"

namespace bev {

namespace {

// The template is added here, and [MASK] in a text is a token whatever the training took it for.
std::unique_ptr<Tokenizer> plain_tokenizer(const ModelFolder& folder) {
  Config config = folder.config;
  config.train.compat = Compat::Main;
  config.data.tokenizer_template = false;
  std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config);
  BEV_CHECK(tokenizer != nullptr, Usage, "{}; a BERT needs the vocabulary of its training",
            why_no_tokenizer(folder));
  return tokenizer;
}

int32_t required_role(const Tokenizer& tokenizer, TokenRole role, std::string_view name,
                      const ModelFolder& folder) {
  const std::optional<int32_t> id = tokenizer.role_id(role);
  BEV_CHECK(id, Usage,
            "{}: the vocabulary of the model folder has no {}; a BERT needs its own vocab.txt or "
            "tokenizer.json",
            folder.weights.string(), name);
  return *id;
}

}  // namespace

BertText::BertText(const ModelFolder& folder)
    : tokenizer_(plain_tokenizer(folder)),
      cls_(required_role(*tokenizer_, TokenRole::Classify, "[CLS]", folder)),
      sep_(required_role(*tokenizer_, TokenRole::Separate, "[SEP]", folder)),
      mask_(required_role(*tokenizer_, TokenRole::Mask, "[MASK]", folder)),
      pad_(tokenizer_->role_id(TokenRole::Pad).value_or(-1)) {
  BEV_CHECK(tokenizer_->vocab_size() <= folder.config.model.vocab, Usage,
            "{}: the vocabulary of the model folder has {} tokens, but the model has {}; its own "
            "vocabulary is needed",
            folder.weights.string(), tokenizer_->vocab_size(), folder.config.model.vocab);
}

std::vector<int32_t> BertText::tokens(std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer_->encode(text, ids);
  return ids;
}

std::vector<int32_t> BertText::wrapped(std::span<const int32_t> tokens) const {
  std::vector<int32_t> ids;
  ids.reserve(tokens.size() + kAdded);
  ids.push_back(cls_);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  ids.push_back(sep_);
  return ids;
}

}  // namespace bev
