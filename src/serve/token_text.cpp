#include "serve/token_text.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "text/utf8.h"

namespace bev {

namespace {

std::string exact_text(const Tokenizer& tokenizer, int32_t before, int32_t id) {
  const std::array both{before, id};
  if (before >= 0) {
    const std::string first = tokenizer.decode({both.data(), 1});
    std::string text = tokenizer.decode(both);
    // A first word may be written unlike others: then only together do they tell.
    if (text.starts_with(first)) return text.substr(first.size());
  }
  return tokenizer.decode({&id, 1});
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, int32_t before, int32_t id) {
  std::string text = exact_text(tokenizer, before, id);
  if (valid_utf8_prefix(text) == text.size()) return text;
  std::string bytes = "bytes:";
  for (const char c : text) bytes += format("\\x{:02x}", static_cast<unsigned char>(c));
  return bytes;
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < ids.size(); ++i)
    texts.push_back(token_text(tokenizer, i == 0 ? -1 : ids[i - 1], ids[i]));
  return texts;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace bev
