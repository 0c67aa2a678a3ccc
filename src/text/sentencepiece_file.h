// What a SentencePiece .model file must be before the library may see it: the library trusts much
// of what it reads.
#pragma once

#include <string_view>

namespace bev {

// Data error that names the file and what is wrong. The content is a serialized ModelProto.
void check_sentencepiece_model(std::string_view bytes, std::string_view name);

}  // namespace bev
