#include "text/sentencepiece/unigram_path.h"

#include <algorithm>
#include <string>
#include <utility>

#include "text/utf8.h"

namespace bev {

namespace {

constexpr float kUnknownScoreGap = 10.0f;

bool takes_part(PieceType type) {
  return type == PieceType::Normal || type == PieceType::UserDefined;
}

}  // namespace

UnigramPath::UnigramPath(const SentencePieceFacts& facts) {
  float least = 0, most = 0;
  bool any = false;
  for (const SentencePieceFacts::Piece& piece : facts.pieces) {
    if (piece.type != PieceType::Normal) continue;
    least = any ? std::min(least, piece.score) : piece.score;
    most = any ? std::max(most, piece.score) : piece.score;
    any = true;
  }
  unknown_score_ = least - kUnknownScoreGap;
  std::vector<std::pair<std::string, int32_t>> strings;
  for (const SentencePieceFacts::Piece& piece : facts.pieces) {
    const auto id = static_cast<int32_t>(scores_.size());
    // A piece that the user asked for wins over all divisions of the same text.
    const double given = static_cast<double>(static_cast<float>(piece.text.size()) * most) - 0.1;
    scores_.push_back(piece.type == PieceType::UserDefined ? static_cast<float>(given)
                                                           : piece.score);
    if (takes_part(piece.type)) strings.emplace_back(piece.text, id);
  }
  pieces_ = ByteTrie(std::move(strings));
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
    pieces_.beginnings(text.substr(begin), [&](size_t length, int32_t id) {
      offer(begin, begin + length, id, scores_[static_cast<size_t>(id)]);
      covered = covered || length == character;
    });
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
