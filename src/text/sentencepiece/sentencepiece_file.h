// What a SentencePiece .model file says, and what it must be before the library may see it: the
// library trusts much of what it reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

enum class PieceType : uint8_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };
enum class SentencePieceModel : uint8_t { Unigram = 1, Bpe, Word, Char };

struct SentencePieceFacts {
  struct Piece {
    std::string_view text;  // into the file
    float score = 0;
    PieceType type = PieceType::Normal;
  };
  SentencePieceModel model = SentencePieceModel::Unigram;
  bool byte_fallback = false;  // what no piece covers is written in byte pieces
  std::vector<Piece> pieces;   // by id: valid UTF-8, not empty, no two alike
};

// Reads and checks a serialized ModelProto. Data error that names the file and what is wrong.
SentencePieceFacts read_sentencepiece_facts(std::string_view bytes, std::string_view name);

// The normalisation rules inside a SentencePiece model: a trie of what is replaced and the texts
// that replace it. The library walks them without looking, so they are checked before it does.

// Why a program that follows these rules could leave the memory they lie in, or meet bytes that are
// no text; empty when it cannot.
std::string charsmap_fault(std::string_view bytes);

}  // namespace bev
