#include "text/huggingface/pipeline_tokenizer.h"

#include <algorithm>

#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {

namespace {

// The whole text as one piece.
class WholePiece {
 public:
  explicit WholePiece(std::string_view text) : text_(text) {}

  bool next(std::string_view& piece) {
    piece = text_;
    text_ = {};
    return !piece.empty();
  }

 private:
  std::string_view text_;
};

std::string normalized_text(const TokenizerParts& parts, std::string_view text) {
  std::string result(text);
  for (const auto& normalizer : parts.normalizers) normalizer->apply(result);
  return result;
}

// Those that are looked for before, or after the text is normalized.
TokenFinder finder_of(const TokenizerParts& parts, bool after) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> patterns;
  for (const AddedToken& token : parts.added) {
    if (token.normalized != after || !token.in_texts) continue;
    tokens.push_back(token);
    patterns.push_back(after ? normalized_text(parts, token.content) : token.content);
  }
  return {tokens, patterns};
}

auto place_of_text(const std::vector<TextTemplate::Part>& parts) {
  return std::find_if(parts.begin(), parts.end(), [](const TextTemplate::Part& part) {
    return part.kind == TextTemplate::Part::Kind::First;
  });
}

}  // namespace

PipelineTokenizer::Shared::Shared(std::shared_ptr<const TokenizerParts> from)
    : parts(std::move(from)),
      raw(finder_of(*parts, false)),
      normalized(finder_of(*parts, true)),
      vocab_size(parts->model->names().size()) {
  for (const AddedToken& token : parts->added)
    vocab_size = std::max(vocab_size, int64_t{token.id} + 1);
  place_of_id.resize(static_cast<size_t>(vocab_size), -1);
  for (const AddedToken& token : parts->added) {
    place_of_id[static_cast<size_t>(token.id)] = static_cast<int32_t>(added.size());
    std::string name = token.normalized ? normalized_text(*parts, token.content) : token.content;
    const bool left_out = token.special && name == token.content;
    added.push_back({std::move(name), left_out});
  }
}

PipelineTokenizer::PipelineTokenizer(std::shared_ptr<const TokenizerParts> parts, bool add_template,
                                     size_t cached_pieces)
    : PipelineTokenizer(std::make_shared<const Shared>(std::move(parts)), add_template,
                        cached_pieces) {}

PipelineTokenizer::PipelineTokenizer(std::shared_ptr<const Shared> shared, bool add_template,
                                     size_t cached_pieces)
    : shared_(std::move(shared)), add_template_(add_template), encoder_(cached_pieces) {}

std::unique_ptr<Tokenizer> PipelineTokenizer::clone() const {
  return std::unique_ptr<Tokenizer>(
      new PipelineTokenizer(shared_, add_template_, encoder_.cached_pieces()));
}

void PipelineTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  encode_begun(text, ids);
  if (!add_template_) return;
  const std::vector<TextTemplate::Part>& parts = shared_->parts->text_template.single;
  for (auto part = place_of_text(parts); part != parts.end(); ++part)
    ids.insert(ids.end(), part->ids.begin(), part->ids.end());
}

void PipelineTokenizer::encode_begun(std::string_view text, std::vector<int32_t>& ids) {
  const size_t before = ids.size();
  const std::vector<TextTemplate::Part>& parts = shared_->parts->text_template.single;
  try {
    if (add_template_)
      for (auto part = parts.begin(); part != place_of_text(parts); ++part)
        ids.insert(ids.end(), part->ids.begin(), part->ids.end());
    encode_plain(text, ids);
  } catch (...) {
    ids.resize(before);
    throw;
  }
}

void PipelineTokenizer::encode_plain(std::string_view text, std::vector<int32_t>& ids) {
  if (valid_utf8_prefix(text) == text.size()) {
    encode_valid(text, ids);
  } else {
    encode_valid(replace_invalid_utf8(text), ids);
  }
}

void PipelineTokenizer::encode_valid(std::string_view text, std::vector<int32_t>& ids) {
  split_at_tokens(
      shared_->raw, text,
      [&](std::string_view part, bool at_start) { encode_part(part, at_start, ids); },
      [&](int32_t id) { ids.push_back(id); });
}

// Text without tokens that are looked for before it is normalized.
void PipelineTokenizer::encode_part(std::string_view text, bool at_start,
                                    std::vector<int32_t>& ids) {
  std::string changed;
  if (!shared_->parts->normalizers.empty()) {
    changed = normalized_text(*shared_->parts, text);
    text = changed;
  }
  split_at_tokens(
      shared_->normalized, text,
      [&](std::string_view part, bool first) { encode_normalized(part, at_start && first, ids); },
      [&](int32_t id) { ids.push_back(id); });
}

void PipelineTokenizer::encode_normalized(std::string_view text, bool at_start,
                                          std::vector<int32_t>& ids) {
  const auto encode_all = [&](auto pieces, const char* end) {
    encoder_.encode(pieces, end, [&](std::string_view piece) { return encode_piece(piece); }, ids);
  };
  const TokenizerParts& parts = *shared_->parts;
  if (!parts.pattern) {
    PieceList list{.text = std::string(text), .cuts = {{0, text.size(), at_start}}};
    for (const auto& step : parts.steps) step->apply(list);
    return encode_all(ListedPieces(list), list.text.data() + list.text.size());
  }
  std::string changed;
  if (parts.prefix_blank && !text.starts_with(' ')) {
    changed = " " + std::string(text);
    text = changed;
  }
  const char* end = text.data() + text.size();
  switch (parts.pattern->kind) {
    case PiecePattern::Kind::Whole: return encode_all(WholePiece(text), end);
    case PiecePattern::Kind::Gpt2: return encode_all(Gpt2PreTokenizer(text), end);
    case PiecePattern::Kind::Llama3:
      return encode_all(Llama3PreTokenizer(text, parts.pattern->numbers), end);
  }
}

std::span<const int32_t> PipelineTokenizer::encode_piece(std::string_view piece) {
  shared_->parts->model->encode(piece, scratch_);
  return scratch_;
}

EncodedPair PipelineTokenizer::encode_typed(std::string_view text, bool add_template) {
  return fill(shared_->parts->text_template.single, text, {}, add_template);
}

EncodedPair PipelineTokenizer::encode_pair(std::string_view first, std::string_view second,
                                           bool add_template) {
  return fill(shared_->parts->text_template.pair, first, second, add_template);
}

EncodedPair PipelineTokenizer::fill(const std::vector<TextTemplate::Part>& parts,
                                    std::string_view first, std::string_view second,
                                    bool add_template) {
  EncodedPair result;
  for (const TextTemplate::Part& part : parts) {
    switch (part.kind) {
      case TextTemplate::Part::Kind::First: encode_plain(first, result.ids); break;
      case TextTemplate::Part::Kind::Second: encode_plain(second, result.ids); break;
      case TextTemplate::Part::Kind::Tokens:
        if (add_template) result.ids.insert(result.ids.end(), part.ids.begin(), part.ids.end());
        break;
    }
    result.type_ids.resize(result.ids.size(), part.type_id);
  }
  return result;
}

const PipelineTokenizer::NamedToken* PipelineTokenizer::added(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return nullptr;
  const int32_t place = shared_->place_of_id[static_cast<size_t>(id)];
  return place < 0 ? nullptr : &shared_->added[static_cast<size_t>(place)];
}

std::string PipelineTokenizer::decode(std::span<const int32_t> ids, SpecialIds special) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    if (const NamedToken* token = added(id)) {
      if (!token->left_out || special == SpecialIds::Keep) tokens.push_back(token->name);
    } else if (const std::string* name = shared_->parts->model->names().name(id)) {
      tokens.push_back(*name);
    }
  }
  for (const auto& decoder : shared_->parts->decoders) decoder->apply(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string PipelineTokenizer::token_name(int32_t id) const {
  if (const NamedToken* token = added(id)) return token->name;
  const std::string* name = shared_->parts->model->names().name(id);
  return name == nullptr ? std::string() : *name;
}

}  // namespace bev
