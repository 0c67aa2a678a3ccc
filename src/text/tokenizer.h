// What turns text into ids and ids into text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// Encoding may keep what it learned for the next text: one object for each thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of the text, which may be any bytes.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) = 0;

  // The exact bytes of the ids; ids outside the vocabulary are left out. What may be cut within a
  // character is made text by replace_invalid_utf8 or complete_utf8.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  // Ids are below it.
  virtual int64_t vocab_size() const = 0;

  // The id that ends a document; none when the vocabulary has no such token.
  virtual std::optional<int32_t> eod_id() const = 0;
};

}  // namespace bev
