// Makes plain text of corpora whose words and marks stand apart ("it 's 3 @,@ 000 ( or so ) ."), by
// the rules that published perplexities of them were measured with, those of Megatron-LM's
// zero-shot tasks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bev {

// Lambada is plain text already.
enum class Detokenizer : uint8_t { None, Ptb, Wikitext, Lambada };
inline constexpr std::string_view kDetokenizerNames[] = {"none", "ptb", "wikitext", "lambada"};

// By what stands in the path: "ptb", "wiki" or "lambada", looked for in this order.
Detokenizer detokenizer_for(std::string_view path);

std::string detokenize(std::string_view text, Detokenizer rules);

}  // namespace bev
