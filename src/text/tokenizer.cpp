#include "text/tokenizer.h"

#include <charconv>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"

namespace bev {

void ByteTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  ids.reserve(ids.size() + text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids, SpecialIds) const {
  std::string text;
  for (const int32_t id : ids)
    if (id >= 0 && id < kByteEod) text += static_cast<char>(id);
  return text;
}

std::string ByteTokenizer::token_name(int32_t id) const {
  if (id == kByteEod) return "<end of document>";
  return id >= 0x20 && id < 0x7F ? std::string(1, static_cast<char>(id)) : format("<0x{:02X}>", id);
}

void NullTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const size_t before = ids.size();
  for (size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanks)) {
    text.remove_prefix(at);
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    const bool good =
        error == std::errc() && end == word.data() + word.size() && id >= 0 && id < vocab_;
    if (!good) ids.resize(before);
    BEV_CHECK(good, Data, "the null tokenizer reads numbers from 0 to {}, and {} is none",
              vocab_ - 1, in_quotes(word.substr(0, 40)));
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

std::string NullTokenizer::decode(std::span<const int32_t> ids, SpecialIds special) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_ || (id == eod_ && special == SpecialIds::LeaveOut)) continue;
    if (!text.empty()) text += ' ';
    text += std::to_string(id);
  }
  return text;
}

}  // namespace bev
