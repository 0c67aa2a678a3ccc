#include "text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/utf8.h"

// The library says nothing below this level. The function is exported, but no header that is
// installed declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace bev {

namespace {

constexpr size_t kModelFileLimit = size_t{256} << 20;
constexpr int kFatalOnly = 3;

absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }

struct SpecialToken {
  std::string name;
  int32_t id;
};

}  // namespace

struct SentencePieceTokenizer::Shared {
  Shared(std::string_view model, const std::string& name) : file(name) {
    const SentencePieceFacts facts = read_sentencepiece_facts(model, name);
    load(model);
    byte_fallback = facts.byte_fallback;
    if (facts.model == SentencePieceModel::Unigram) unigram.emplace(facts);
    // By its type. The library's own answer goes by the name that the model says it has, and is
    // none when a piece of another type has that name.
    while (unknown < pieces() && !library.IsUnknown(unknown)) ++unknown;
    BEV_CHECK(unknown < pieces(), Data, "{}: no piece stands for what is unknown", file);
    add_roles();
  }

  sentencepiece::SentencePieceProcessor library;
  std::string file;
  SentencePieceRules rules = SentencePieceRules::Plain;
  std::vector<SpecialToken> specials;  // whose names in a text are they; in the order of adding
  std::vector<std::string> behind;     // the names of ids behind the pieces
  std::map<TokenRole, int32_t> roles;  // those there are
  std::optional<int32_t> eod;
  std::optional<UnigramPath> unigram;  // of a unigram model
  bool byte_fallback = false;
  int32_t unknown = 0;  // the id of what has no piece

  void load(std::string_view model) {
    sentencepiece::logging::SetMinLogLevel(kFatalOnly);
    std::string refusal;
    try {
      const auto status = library.LoadFromSerializedProto(view(model));
      if (!status.ok()) refusal = status.message();
    } catch (const std::exception& error) {  // of the trie that the library builds
      refusal = error.what();
    }
    BEV_CHECK(refusal.empty(), Data, "{}: not a SentencePiece model: {}", file, refusal);
  }

  int32_t pieces() const { return library.GetPieceSize(); }

  // The token of this name, which is added behind all others unless the model has it.
  int32_t special(const std::string& name) {
    const auto known = std::find_if(specials.begin(), specials.end(),
                                    [&](const SpecialToken& s) { return s.name == name; });
    if (known != specials.end()) return known->id;
    int32_t id = library.PieceToId(view(name));
    if (library.IdToPiece(id) != name) {  // what is unknown has the id of the unknown piece
      id = pieces() + static_cast<int32_t>(behind.size());
      behind.push_back(name);
    }
    specials.push_back({name, id});
    return id;
  }

  // The model's piece, or the named token when the model has none (a negative id).
  int32_t special_piece(int id, const std::string& otherwise) {
    return special(id >= 0 ? library.IdToPiece(id) : otherwise);
  }

  void set_role(TokenRole role, int id) {
    if (id >= 0) roles[role] = id;
  }

  void add_roles() {
    set_role(TokenRole::Unknown, unknown);
    set_role(TokenRole::Begin, library.bos_id());
    set_role(TokenRole::End, library.eos_id());
    set_role(TokenRole::Pad, library.pad_id());
    if (library.eos_id() >= 0) eod = library.eos_id();
  }

  void add_marks() {
    roles[TokenRole::Classify] = special("<CLS>");
    roles[TokenRole::Separate] = special("<SEP>");
    eod = special("<EOD>");
    roles[TokenRole::Mask] = special("<MASK>");
    roles[TokenRole::Pad] = special_piece(library.pad_id(), "<PAD>");
    roles[TokenRole::Begin] = special_piece(library.bos_id(), "<BOS>");
    roles[TokenRole::End] = special_piece(library.eos_id(), "<EOS>");
  }

  // The earliest special token in the text and where it is; of two at one place the one added
  // first.
  const SpecialToken* first_special(std::string_view text, size_t& at) const {
    const SpecialToken* first = nullptr;
    at = text.size();
    for (const SpecialToken& token : specials) {
      const size_t found =
          text.substr(0, std::min(text.size(), at + token.name.size())).find(token.name);
      if (found == std::string_view::npos || found >= at) continue;
      at = found;
      first = &token;
    }
    return first;
  }

  const SpecialToken* special_of(int32_t id) const {
    const auto found = std::find_if(specials.begin(), specials.end(),
                                    [&](const SpecialToken& s) { return s.id == id; });
    return found == specials.end() ? nullptr : &*found;
  }

  void append_ids(std::string_view text, std::vector<int32_t>& ids) const {
    if (unigram) {
      for (const Found& piece : unigram_pieces(text)) ids.push_back(piece.id);
      return;
    }
    std::vector<int> found;
    const auto status = library.Encode(view(text), &found);
    BEV_CHECK(status.ok(), Data, "{}: the text cannot be encoded: {}", file, status.message());
    ids.insert(ids.end(), found.begin(), found.end());
  }

  struct Found {
    int32_t id;
    std::string piece;
  };

  // The library normalises, which it does not do alone: its pieces one after another are the text.
  std::string normalized(std::string_view text) const {
    std::string joined;
    std::vector<std::string> pieces;
    const auto status = library.Encode(view(text), &pieces);
    BEV_CHECK(status.ok(), Data, "{}: the text cannot be encoded: {}", file, status.message());
    for (const std::string& piece : pieces) {
      if (byte_fallback && library.IsByte(library.PieceToId(view(piece)))) {
        joined += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      } else {
        joined += piece;
      }
    }
    BEV_CHECK(valid_utf8_prefix(joined) == joined.size(), Data,
              "{}: its rules make text that is no UTF-8", file);
    return joined;
  }

  std::vector<Found> unigram_pieces(std::string_view text) const {
    const std::string whole = normalized(text);
    std::vector<Found> found;
    bool joins = false;  // neighbouring characters without a piece are one unknown piece
    for (const UnigramPath::Part& part : unigram->best(whole)) {
      const bool known = part.id != UnigramPath::kNoPiece;
      if (known) {
        found.push_back({part.id, std::string(part.text)});
      } else if (byte_fallback) {
        for (const char c : part.text) {
          const std::string piece = format("<0x{:02X}>", static_cast<unsigned char>(c));
          found.push_back({library.PieceToId(view(piece)), piece});
        }
      } else if (joins) {
        found.back().piece += part.text;
      } else {
        found.push_back({unknown, std::string(part.text)});
      }
      joins = !known && !byte_fallback;
    }
    return found;
  }

  void append_text(std::vector<int>& ids, std::string& text) const {
    if (ids.empty()) return;
    std::string decoded;
    const auto status = library.Decode(ids, &decoded);
    BEV_CHECK(status.ok(), Data, "{}: ids cannot be decoded: {}", file, status.message());
    text += decoded;
    ids.clear();
  }
};

SentencePieceTokenizer::SentencePieceTokenizer(std::string_view model, const std::string& name,
                                               SentencePieceRules rules, int64_t extra_ids) {
  auto shared = std::make_shared<Shared>(model, name);
  shared->rules = rules;
  if (rules == SentencePieceRules::Marked) shared->add_marks();
  BEV_CHECK(rules != SentencePieceRules::BeginFirst || shared->library.bos_id() >= 0, Data,
            "{}: each text is to begin with a token for that, but the model has none", name);
  for (int64_t i = 0; i < extra_ids; ++i) shared->special(format("<extra_id_{}>", i));
  shared_ = std::move(shared);
}

SentencePieceTokenizer::SentencePieceTokenizer(std::shared_ptr<const Shared> shared)
    : shared_(std::move(shared)) {}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::unique_ptr<Tokenizer> SentencePieceTokenizer::read(const std::string& path,
                                                        SentencePieceRules rules,
                                                        int64_t extra_ids) {
  return std::make_unique<SentencePieceTokenizer>(read_text(path, kModelFileLimit), path, rules,
                                                  extra_ids);
}

std::unique_ptr<Tokenizer> SentencePieceTokenizer::clone() const {
  return std::unique_ptr<Tokenizer>(new SentencePieceTokenizer(shared_));
}

void SentencePieceTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  std::vector<int32_t> found;
  if (shared_->rules == SentencePieceRules::BeginFirst)
    found.push_back(shared_->roles.at(TokenRole::Begin));
  encode_plain(text, found);
  ids.insert(ids.end(), found.begin(), found.end());
}

void SentencePieceTokenizer::encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
  std::string replaced;
  if (valid_utf8_prefix(text) != text.size()) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  std::vector<int32_t> found;
  size_t at = 0;
  while (const SpecialToken* token = shared_->first_special(text, at)) {
    shared_->append_ids(text.substr(0, at), found);
    found.push_back(token->id);
    text.remove_prefix(at + token->name.size());
  }
  shared_->append_ids(text, found);
  ids.insert(ids.end(), found.begin(), found.end());
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids, SpecialIds special) const {
  std::string text;
  std::vector<int> run;  // of pieces
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) continue;
    if (const SpecialToken* token = shared_->special_of(id)) {
      if (special == SpecialIds::LeaveOut) continue;
      shared_->append_text(run, text);
      text += format(" {} ", token->name);
    } else {
      run.push_back(id);
    }
  }
  shared_->append_text(run, text);
  return text;
}

std::string SentencePieceTokenizer::token_name(int32_t id) const {
  const int32_t pieces = shared_->pieces();
  return id < pieces ? shared_->library.IdToPiece(id)
                     : shared_->behind[static_cast<size_t>(id - pieces)];
}

int64_t SentencePieceTokenizer::vocab_size() const {
  return shared_->pieces() + static_cast<int64_t>(shared_->behind.size());
}

std::optional<int32_t> SentencePieceTokenizer::eod_id() const { return shared_->eod; }

std::optional<int32_t> SentencePieceTokenizer::role_id(TokenRole role) const {
  const auto found = shared_->roles.find(role);
  return found == shared_->roles.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> SentencePieceTokenizer::pieces(std::string_view text) const {
  if (!shared_->unigram) return shared_->library.EncodeAsPieces(view(text));
  std::vector<std::string> pieces;
  for (Shared::Found& found : shared_->unigram_pieces(text))
    pieces.push_back(std::move(found.piece));
  return pieces;
}

}  // namespace bev

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
