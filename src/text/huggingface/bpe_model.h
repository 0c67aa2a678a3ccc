// Byte-pair encoding as tokenizer.json describes it: a piece is taken apart into characters, or
// into bytes that the files write as characters (byte_alphabet.h), and these are merged
// (bpe_merge.h).
#pragma once

#include <array>
#include <optional>

#include "text/bpe/merge_table.h"
#include "text/huggingface/token_model.h"

namespace bev {

class BpeModel final : public TokenModel {
 public:
  enum class Unit : uint8_t { Character, Byte };

  struct Options {
    Unit unit = Unit::Character;
    std::optional<int32_t> unknown = std::nullopt;  // for what the vocabulary does not have; none:
                                                    // left out
    bool fuse_unknown = false;                      // several of them in a row are one
    bool byte_fallback = false;                     // first <0x00> to <0xFF> are tried
    bool ignore_merges = false;                     // a piece that is a token is not taken apart
  };

  // words_are_apart: U+2581 is a token, and no merge makes one with it behind another character.
  BpeModel(TokenNames names, MergeTable merges, Options options, bool words_are_apart = false);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;
  bool words_are_apart() const override { return words_are_apart_; }

 private:
  // What one character or byte is before merging.
  enum class StartKind : uint8_t { Nothing, Token, Bytes, Unknown };
  struct Start {
    StartKind kind = StartKind::Nothing;
    std::vector<int32_t> ids;
  };

  Start start_of(std::string_view name) const;
  void append(const Start& start, bool& unknown_due, std::vector<int32_t>& ids) const;
  void append_character(std::string_view character, bool& unknown_due,
                        std::vector<int32_t>& ids) const;
  std::optional<int32_t> whole(std::string_view piece) const;

  MergeTable merges_;
  Options options_;
  bool words_are_apart_;
  std::vector<Start> bytes_;          // Unit::Byte: of each byte
  std::array<int32_t, 128> ascii_{};  // Unit::Character: the ids of these; -1: none
};

}  // namespace bev
