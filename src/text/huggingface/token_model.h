// What turns a piece of text into ids: the model of a tokenizer. It never changes and may be
// shared.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/huggingface/token_names.h"

namespace bev {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // The ids of the piece instead of what `ids` held. REQUIRES: valid UTF-8, not empty.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  // Whether encoding a piece in parts, cut before each first U+2581 of several, gives the same.
  virtual bool words_are_apart() const { return false; }

  const TokenNames& names() const { return names_; }

 protected:
  explicit TokenModel(TokenNames names) : names_(std::move(names)) {}

  TokenNames names_;
};

}  // namespace bev
