// The normalisation rules inside a SentencePiece model: a trie of what is replaced and the texts
// that replace it. The library walks them without looking, so they are checked before it does.
#pragma once

#include <string>
#include <string_view>

namespace bev {

// Why a program that follows these rules could leave the memory they lie in, or meet bytes that are
// no text; empty when it cannot.
std::string charsmap_fault(std::string_view bytes);

}  // namespace bev
