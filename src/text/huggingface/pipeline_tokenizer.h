// A tokenizer put together from parts, as tokenizer.json describes them: tokens that are found
// first, normalizers, a division into pieces, a model, a template, decoders. BERT's vocab.txt is
// one of these with fixed parts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/bpe/piece_encoder.h"
#include "text/huggingface/added_tokens.h"
#include "text/huggingface/normalizer.h"
#include "text/huggingface/pre_tokenizer.h"
#include "text/huggingface/token_decoder.h"
#include "text/huggingface/token_model.h"
#include "text/tokenizer.h"

namespace bev {

// The tokens that are put around one text, or around a pair of texts.

struct TextTemplate {
  struct Part {
    enum class Kind : uint8_t { First, Second, Tokens } kind = Kind::First;
    int32_t type_id = 0;
    std::vector<int32_t> ids;  // Tokens
  };

  std::vector<Part> single{{.kind = Part::Kind::First, .type_id = 0, .ids = {}}};
  std::vector<Part> pair{{.kind = Part::Kind::First, .type_id = 0, .ids = {}},
                         {.kind = Part::Kind::Second, .type_id = 1, .ids = {}}};
};

// What a tokenizer is made of; shared between clones.
struct TokenizerParts {
  std::vector<AddedToken> added;  // in the order of their importance; ids and contents are unique
  std::vector<std::unique_ptr<const Normalizer>> normalizers;
  std::vector<std::unique_ptr<const PieceStep>> steps;
  std::shared_ptr<const TokenModel> model;
  TextTemplate text_template;
  std::vector<std::unique_ptr<const TokenDecoder>> decoders;
  std::optional<int32_t> eod;
  std::array<std::optional<int32_t>, kTokenRoles> roles;

  // Set where the steps are this pattern alone, with or without a blank before each part: the
  // pieces are then never listed.
  std::optional<PiecePattern> pattern;
  bool prefix_blank = false;
};

// The ids of a pair of texts, and to which of the two each belongs.
struct EncodedPair {
  std::vector<int32_t> ids, type_ids;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  // REQUIRES: cached_pieces is a power of two and at least 2.
  explicit PipelineTokenizer(std::shared_ptr<const TokenizerParts> parts, bool add_template = true,
                             size_t cached_pieces = PieceEncoder::kCachedPieces);

  std::unique_ptr<Tokenizer> clone() const override;
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  void encode_begun(std::string_view text, std::vector<int32_t>& ids) override;
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override;
  int64_t vocab_size() const override { return shared_->vocab_size; }
  std::optional<int32_t> eod_id() const override { return shared_->parts->eod; }
  std::optional<int32_t> role_id(TokenRole role) const override {
    return shared_->parts->roles[static_cast<size_t>(role)];
  }

  // One text or two, with the tokens of the template or without.
  EncodedPair encode_typed(std::string_view text, bool add_template);
  EncodedPair encode_pair(std::string_view first, std::string_view second, bool add_template);

 private:
  // How an added token is written: normalized, where it is looked for in normalized text. One whose
  // name is changed by that is not left out even if it is special, as in the library.
  struct NamedToken {
    std::string name;
    bool left_out;
  };

  // What follows from the parts.
  struct Shared {
    explicit Shared(std::shared_ptr<const TokenizerParts> from);

    std::shared_ptr<const TokenizerParts> parts;
    TokenFinder raw, normalized;
    std::vector<NamedToken> added;
    std::vector<int32_t> place_of_id;  // in `added`; -1: not an added one
    int64_t vocab_size;
  };

  PipelineTokenizer(std::shared_ptr<const Shared> shared, bool add_template, size_t cached_pieces);

  void encode_plain(std::string_view text, std::vector<int32_t>& ids);
  void encode_valid(std::string_view text, std::vector<int32_t>& ids);
  void encode_part(std::string_view text, bool at_start, std::vector<int32_t>& ids);
  void encode_normalized(std::string_view text, bool at_start, std::vector<int32_t>& ids);
  EncodedPair fill(const std::vector<TextTemplate::Part>& parts, std::string_view first,
                   std::string_view second, bool add_template);
  std::span<const int32_t> encode_piece(std::string_view piece);
  const NamedToken* added(int32_t id) const;

  std::shared_ptr<const Shared> shared_;
  bool add_template_;
  PieceEncoder encoder_;
  std::vector<int32_t> scratch_;  // the ids of one piece
};

}  // namespace bev
