// Text as a BERT reads it: [CLS] tokens [SEP].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/model_folder.h"
#include "text/tokenizer.h"

namespace bev {

class BertText {
 public:
  // Usage error: the folder has no tokenizer, or its vocabulary lacks [CLS], [SEP] or [MASK] or is
  // larger than that of the model.
  explicit BertText(const ModelFolder& folder);

  // Without [CLS] and [SEP]; [MASK] in the text is the mask.
  std::vector<int32_t> tokens(std::string_view text);

  // `tokens` between [CLS] and [SEP].
  std::vector<int32_t> wrapped(std::span<const int32_t> tokens) const;
  // Tokens that wrapped() adds.
  static constexpr int64_t kAdded = 2;

  int32_t mask() const { return mask_; }
  bool is_special(int32_t id) const { return id == cls_ || id == sep_ || id == pad_; }
  // As the vocabulary writes it: "##ing".
  std::string token_name(int32_t id) const { return tokenizer_->token_name(id); }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  int32_t cls_, sep_, mask_, pad_;
};

}  // namespace bev
