// The text that the encoder of an encoder-decoder (T5) reads, as the prompt of a generation. The
// decoder's text begins with a start token.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "infer/generation_request.h"
#include "infer/model_folder.h"
#include "text/tokenizer.h"

namespace bev {

// Appends the ids of a text as in training. Hugging Face's T5, whose decoder begins with the
// padding, ends each source; Megatron-LM's sources have no special tokens.
void encode_source(std::string_view text, const DecoderIds& special, Tokenizer& tokenizer,
                   std::vector<int32_t>& ids);

struct SourceFormat {
  DecoderIds special{};
  int64_t longest = 0;        // tokens of a source
  bool sees_padding = false;  // cross attention does: all sources are padded to the longest

  // REQUIRES: the folder holds a T5.
  SourceFormat(const ModelFolder& folder, int64_t longest_source);

  // Turns request.prompt, the ids of a source, into the source.
  void apply(GenerationRequest& request) const;
};

}  // namespace bev
