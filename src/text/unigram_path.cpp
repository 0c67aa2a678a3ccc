#include "text/unigram_path.h"

#include <algorithm>

#include "text/utf8.h"

namespace bev {

namespace {

constexpr float kUnknownPenalty = 10.0f;

bool takes_part(PieceType type) {
  return type == PieceType::Normal || type == PieceType::UserDefined;
}

size_t total_bytes(const SentencePieceFacts& facts) {
  size_t bytes = 0;
  for (const SentencePieceFacts::Piece& piece : facts.pieces) bytes += piece.text.size();
  return bytes;
}

}  // namespace

UnigramPath::UnigramPath(const SentencePieceFacts& facts)
    : children_(total_bytes(facts)), ends_(1) {
  float least = 0, most = 0;
  bool any = false;
  for (const SentencePieceFacts::Piece& piece : facts.pieces) {
    if (piece.type != PieceType::Normal) continue;
    least = any ? std::min(least, piece.score) : piece.score;
    most = any ? std::max(most, piece.score) : piece.score;
    any = true;
  }
  unknown_score_ = least - kUnknownPenalty;
  for (size_t i = 0; i < facts.pieces.size(); ++i) {
    const SentencePieceFacts::Piece& piece = facts.pieces[i];
    if (!takes_part(piece.type)) continue;
    int32_t node = 0;
    for (const char c : piece.text) {
      const auto byte = static_cast<int32_t>(static_cast<unsigned char>(c));
      const auto next = static_cast<int32_t>(ends_.size());
      if (children_.insert(node, byte, make_merge(0, next))) {
        ends_.emplace_back();
        node = next;
      } else {
        node = token_of(children_.find(node, byte));
      }
    }
    // A piece that the user asked for wins over all divisions of the same text.
    const double given = static_cast<double>(static_cast<float>(piece.text.size()) * most) - 0.1;
    ends_[static_cast<size_t>(node)] = {
        static_cast<int32_t>(i),
        piece.type == PieceType::UserDefined ? static_cast<float>(given) : piece.score};
  }
}

std::vector<UnigramPath::Part> UnigramPath::best(std::string_view text) const {
  struct Way {
    size_t begin = SIZE_MAX;  // of the last part; SIZE_MAX: no way ends here
    int32_t id = kNoPiece;
    float score = 0;
  };
  std::vector<Way> ways(text.size() + 1);
  const auto offer = [&](size_t begin, size_t end, int32_t id, float score) {
    const float sum = score + ways[begin].score;
    if (ways[end].begin == SIZE_MAX || sum > ways[end].score) ways[end] = {begin, id, sum};
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t character = utf8_character(text.data() + begin).length;
    bool covered = false;
    int32_t node = 0;
    for (size_t at = begin; at < text.size();) {
      const auto byte = static_cast<int32_t>(static_cast<unsigned char>(text[at]));
      const Merge child = children_.find(node, byte);
      if (child == kNoMerge) break;
      node = token_of(child);
      ++at;
      const Piece& piece = ends_[static_cast<size_t>(node)];
      if (piece.id == kNoPiece) continue;
      offer(begin, at, piece.id, piece.score);
      covered = covered || at - begin == character;
    }
    if (!covered) offer(begin, begin + character, kNoPiece, unknown_score_);
    begin += character;
  }
  std::vector<Part> parts;
  for (size_t end = text.size(); end > 0; end = ways[end].begin)
    parts.push_back({ways[end].id, text.substr(ways[end].begin, end - ways[end].begin)});
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace bev
