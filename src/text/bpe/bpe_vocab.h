// The vocabulary of a byte-level byte-pair encoding, read from vocab.json (names to ids) and
// merges.txt (pairs of names, the first to be merged first). Files that contradict themselves or
// each other are Data errors that name the file and the line or token.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/bpe_merge.h"

namespace bev {

// A file's content and what messages call it.
struct NamedText {
  std::string_view name, text;
};

class BpeVocab {
 public:
  // Ids are 0, 1, ... without gaps, every byte is a token, and each merge makes a token of two.
  BpeVocab(NamedText vocab_json, NamedText merges_txt);

  static BpeVocab read(const std::filesystem::path& vocab_json,
                       const std::filesystem::path& merges_txt);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }

  // The bytes of a token. REQUIRES: 0 <= id < size().
  std::string_view bytes(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    return std::string_view(all_bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
  }

  int32_t id_of_byte(unsigned char byte) const { return byte_ids_[byte]; }
  const MergeTable& merges() const { return merges_; }

  // The id of the token <|endoftext|>, when there is one.
  std::optional<int32_t> end_of_text() const { return end_of_text_; }

 private:
  std::string all_bytes_;  // of the tokens one after another
  std::vector<size_t> begins_;
  std::array<int32_t, 256> byte_ids_{};
  std::optional<int32_t> end_of_text_;
  MergeTable merges_{0};
};

constexpr std::string_view kEndOfText = "<|endoftext|>";

// The printable character that stands for each byte in the files of byte-level vocabularies: bytes
// that are printable in Latin-1 stand for themselves, the others are U+0100 and up in their order.

char32_t character_of_byte(unsigned char byte);

// The bytes that a token's name in a vocabulary file stands for; nothing when it has a character
// that stands for no byte or is not valid UTF-8.
std::optional<std::string> bytes_of_name(std::string_view name);

// The opposite: the name in a vocabulary file.
std::string name_of_bytes(std::string_view bytes);

}  // namespace bev
