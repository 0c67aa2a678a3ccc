// What turns text into ids and ids into text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// What a token of the vocabulary is for.
enum class TokenRole : uint8_t { Unknown, Begin, End, Pad, Classify, Separate, Mask };
inline constexpr size_t kTokenRoles = 7;

// What becomes of special tokens when ids are made text.
enum class SpecialIds : uint8_t { Keep, LeaveOut };

// Encoding may keep what it learned for the next text: one object for each thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Another one for another thread. What is large and never changes is shared.
  virtual std::unique_ptr<Tokenizer> clone() const = 0;

  // Appends the ids of the text, which may be any bytes. A text that a tokenizer cannot encode (the
  // null tokenizer: what is no number) is a Data error; nothing is appended then.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) = 0;
  // The same for a text that goes on: with the tokens that a vocabulary puts in front of a text,
  // without those that it puts behind one.
  virtual void encode_begun(std::string_view text, std::vector<int32_t>& ids) { encode(text, ids); }

  // The text of the ids; those outside the vocabulary are left out. Of byte-level vocabularies the
  // exact bytes: what may be cut within a character is made text by replace_invalid_utf8 or
  // complete_utf8.
  virtual std::string decode(std::span<const int32_t> ids,
                             SpecialIds special = SpecialIds::Keep) const = 0;

  // How the vocabulary writes a token, for people: "##ing". REQUIRES: 0 <= id < vocab_size().
  virtual std::string token_name(int32_t id) const = 0;

  // Ids are below it.
  virtual int64_t vocab_size() const = 0;

  // The id that ends a document; none when the vocabulary has no such token.
  virtual std::optional<int32_t> eod_id() const = 0;

  // The token for a purpose; none when the vocabulary has no such token.
  virtual std::optional<int32_t> role_id(TokenRole) const { return {}; }
};

// Bytes as tokens: id = byte, and kByteEod ends a document. Any text has exactly one encoding.

constexpr int64_t kByteVocab = 257;  // the bytes and the end of a document
constexpr int32_t kByteEod = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<ByteTokenizer>(); }
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  // The end of a document has no text.
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override;
  int64_t vocab_size() const override { return kByteVocab; }
  std::optional<int32_t> eod_id() const override { return kByteEod; }
};

// Numbers as text: ids separated by blanks.

class NullTokenizer final : public Tokenizer {
 public:
  // REQUIRES: 0 <= eod < vocab.
  NullTokenizer(int64_t vocab, int32_t eod) : vocab_(vocab), eod_(eod) {}

  std::unique_ptr<Tokenizer> clone() const override {
    return std::make_unique<NullTokenizer>(vocab_, eod_);
  }
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override { return std::to_string(id); }
  int64_t vocab_size() const override { return vocab_; }
  std::optional<int32_t> eod_id() const override { return eod_; }

 private:
  int64_t vocab_;
  int32_t eod_;
};

}  // namespace bev
