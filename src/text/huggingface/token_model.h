// What turns a piece of text into ids: the model of a tokenizer. It never changes and may be
// shared.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe/bpe_merge.h"
#include "text/huggingface/byte_trie.h"

namespace bev {

// The names of a vocabulary's tokens and their ids, in both directions. Ids may have gaps.

class TokenNames {
 public:
  static constexpr int64_t kLimit = int64_t{1} << 22;  // ids are below it

  TokenNames() = default;
  TokenNames(TokenNames&&) = default;
  TokenNames& operator=(TokenNames&&) = default;

  // `source` and `path` name the place in messages. Data error when the id is beyond the limit, or
  // the name or the id is there already.
  void add(std::string_view name, int64_t id, std::string_view source, std::string_view path);

  std::optional<int32_t> find(std::string_view name) const;

  // Nothing when no token has the id.
  const std::string* name(int32_t id) const;

  // The largest id + 1, and how many tokens there are.
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  int64_t count() const { return static_cast<int64_t>(ids_.size()); }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library asks for it
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> names_;  // the keys of ids_, which do not move
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // The ids of the piece instead of what `ids` held. REQUIRES: valid UTF-8, not empty.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  // Whether encoding a piece in parts, cut before each first U+2581 of several, gives the same.
  virtual bool words_are_apart() const { return false; }

  const TokenNames& names() const { return names_; }

 protected:
  explicit TokenModel(TokenNames names) : names_(std::move(names)) {}

  TokenNames names_;
};

// Byte-pair encoding as tokenizer.json describes it: a piece is taken apart into characters, or
// into bytes that the files write as characters (bpe_vocab.h), and these are merged
// (bpe_merge.h).

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

// A unigram model: of all ways to write a piece as tokens the one with the largest sum of scores.

class UnigramModel final : public TokenModel {
 public:
  struct Options {
    std::optional<int32_t> unknown = std::nullopt;  // for what the vocabulary does not have
    bool byte_fallback = false;                     // first <0x00> to <0xFF> are tried
  };

  // Scores by id, finite. A text with an unknown character is a Data error where there is no
  // unknown token. REQUIRES: as many scores as names, which have no gaps.
  UnigramModel(TokenNames names, std::vector<double> scores, Options options, std::string source);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  void append_unknown(std::string_view part, std::vector<int32_t>& ids) const;

  ByteTrie tokens_;
  std::vector<double> scores_;
  double unknown_score_ = 0.0;
  Options options_;
  std::string source_;
};

// BERT's WordPiece: a word is the longest token it begins with, then the longest one marked as a
// continuation, and so on. A word that cannot be written so, or has too many characters, is
// unknown.

class WordPieceModel final : public TokenModel {
 public:
  struct Options {
    int32_t unknown = 0;
    std::string continuation = "##";  // begins the names of continuing tokens
    size_t longest_word = 100;        // characters
  };

  WordPieceModel(TokenNames names, Options options);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  ByteTrie begins_, continues_;
  Options options_;
};

}  // namespace bev
