#include "infer/source_text.h"

#include <algorithm>
#include <array>

namespace bev {

void encode_source(std::string_view text, const DecoderIds& special, Tokenizer& tokenizer,
                   std::vector<int32_t>& ids) {
  std::vector<int32_t> encoded;
  tokenizer.encode(text, encoded);
  const auto end = static_cast<int32_t>(special.end);
  if (special.begin == special.pad) {
    if (encoded.empty() || encoded.back() != end) encoded.push_back(end);
  } else {
    constexpr std::array kAround{TokenRole::Begin, TokenRole::End, TokenRole::Classify,
                                 TokenRole::Separate};
    std::erase_if(encoded, [&](int32_t id) {
      return std::any_of(kAround.begin(), kAround.end(),
                         [&](TokenRole role) { return tokenizer.role_id(role) == id; });
    });
  }
  ids.insert(ids.end(), encoded.begin(), encoded.end());
}

SourceFormat::SourceFormat(const ModelFolder& folder, int64_t longest_source)
    : special(folder.decoder_ids),
      longest(longest_source),
      sees_padding(!folder.config.model.mask_cross_padding) {}

void SourceFormat::apply(GenerationRequest& request) const {
  request.source.ids = std::move(request.prompt);
  request.source.length = std::ssize(request.source.ids);
  if (sees_padding)
    request.source.ids.resize(static_cast<size_t>(longest), static_cast<int32_t>(special.pad));
  request.prompt = {static_cast<int32_t>(special.begin)};
  // An encoder gives the tokens of a prompt no probabilities.
  request.score_prompt = false;
}

}  // namespace bev
