#include "text/bpe/bpe_vocab.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kBpeVocabLimit = size_t{256} << 20;
constexpr size_t kTokenLimit = size_t{1} << 22;  // also of the merges

using IdOfName = std::unordered_map<std::string_view, int32_t>;

// The names by id. REQUIRES: nothing of the content.
std::vector<std::string_view> names_by_id(const Json& object, std::string_view file) {
  BEV_CHECK(object.is_object(), Data, "{}: not an object of tokens and ids", file);
  const size_t count = object.size();
  BEV_CHECK(count <= kTokenLimit, Data, "{}: {} tokens; at most {} are read", file, count,
            kTokenLimit);
  std::vector<std::string_view> names(count);
  std::vector<char> taken(count, 0);
  for (const auto& [name, id] : object.items()) {
    BEV_CHECK(id.is_number_unsigned() && id.get<uint64_t>() < count, Data,
              "{}: the id of token {} is {}; the ids of {} tokens are 0 to {}", file,
              in_quotes(name), in_quotes(id.dump(-1, ' ', true, Json::error_handler_t::replace)),
              count, count - 1);
    const auto i = id.get<size_t>();
    BEV_CHECK(taken[i] == 0, Data, "{}: tokens {} and {} both have id {}", file,
              in_quotes(names[i]), in_quotes(name), i);
    taken[i] = 1;
    names[i] = name;
  }
  return names;
}

// Cuts the next line off the text; a carriage return before its newline is no part of it.
std::string_view take_line(std::string_view& text) {
  const size_t newline = text.find('\n');
  std::string_view line = text.substr(0, newline);
  text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

MergeTable read_merges(NamedText file, const IdOfName& ids) {
  std::string_view rest = file.text;
  const auto lines = static_cast<size_t>(std::count(rest.begin(), rest.end(), '\n')) + 1;
  BEV_CHECK(lines <= kTokenLimit, Data, "{}: {} lines; at most {} are read", file.name, lines,
            kTokenLimit);
  MergeTable table(lines);
  uint32_t order = 0;
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (number == 1 && line.starts_with("#version")) continue;
    const size_t blank = line.find(' ');
    BEV_CHECK(blank != std::string_view::npos && blank > 0 && blank + 1 < line.size() &&
                  line.find(' ', blank + 1) == std::string_view::npos,
              Data, "{}:{}: {} is not two tokens with a blank between them", file.name, number,
              in_quotes(line));
    const std::string_view left = line.substr(0, blank), right = line.substr(blank + 1);
    const auto id_of = [&](std::string_view name, const char* which) {
      const auto known = ids.find(name);
      BEV_CHECK(known != ids.end(), Data, "{}:{}: the {} token {} is not in the vocabulary",
                file.name, number, which, in_quotes(name));
      return known->second;
    };
    const int32_t left_id = id_of(left, "left"), right_id = id_of(right, "right");
    const int32_t merged = id_of(std::string(left) += right, "merged");
    BEV_CHECK(table.insert(left_id, right_id, make_merge(order, merged)), Data,
              "{}:{}: {} and {} were merged on an earlier line", file.name, number, in_quotes(left),
              in_quotes(right));
    ++order;
  }
  return table;
}

}  // namespace

BpeVocab::BpeVocab(NamedText vocab_json, NamedText merges_txt) {
  const Json object =
      parse_json(vocab_json.text, vocab_json.name, {.bytes = kBpeVocabLimit, .depth = 1});
  const std::vector<std::string_view> names = names_by_id(object, vocab_json.name);
  IdOfName ids;
  ids.reserve(names.size());
  byte_ids_.fill(-1);
  begins_.push_back(0);
  for (const std::string_view name : names) {
    const auto id = static_cast<int32_t>(begins_.size() - 1);
    const std::optional<std::string> bytes = bytes_of_name(name);
    BEV_CHECK(bytes && !bytes->empty(), Data,
              "{}: token {} (id {}) is empty or has characters that stand for no byte",
              vocab_json.name, in_quotes(name), id);
    if (bytes->size() == 1) byte_ids_[static_cast<unsigned char>((*bytes)[0])] = id;
    all_bytes_ += *bytes;
    begins_.push_back(all_bytes_.size());
    ids.emplace(name, id);
  }
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte)
    BEV_CHECK(
        byte_ids_[byte] >= 0, Data,
        "{}: there is no token for byte {}, {}; without all 256 not every text can be encoded",
        vocab_json.name, byte, in_quotes(name_of_bytes(std::string(1, static_cast<char>(byte)))));
  if (const auto known = ids.find(kEndOfText); known != ids.end()) end_of_text_ = known->second;
  merges_ = read_merges(merges_txt, ids);
}

BpeVocab BpeVocab::read(const std::filesystem::path& vocab_json,
                        const std::filesystem::path& merges_txt) {
  const std::string vocab_name = vocab_json.string(), merges_name = merges_txt.string();
  const std::string vocab = read_text(vocab_json, kBpeVocabLimit);
  const std::string merges = read_text(merges_txt, kBpeVocabLimit);
  return {NamedText{vocab_name, vocab}, NamedText{merges_name, merges}};
}

namespace {

constexpr bool stands_for_itself(size_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr std::array<uint16_t, 256> kCharacters = [] {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (size_t byte = 0; byte < 256; ++byte)
    characters[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  return characters;
}();

constexpr size_t kCharacterLimit = 0x100 + 68;  // one behind the last: 188 stand for themselves
constexpr int16_t kNoByte = -1;

constexpr std::array<int16_t, kCharacterLimit> kBytes = [] {
  std::array<int16_t, kCharacterLimit> bytes{};
  for (int16_t& byte : bytes) byte = kNoByte;
  for (size_t byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

char32_t character_of_byte(unsigned char byte) { return kCharacters[byte]; }

std::optional<std::string> bytes_of_name(std::string_view name) {
  if (valid_utf8_prefix(name) != name.size()) return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    const Utf8Character next = utf8_character(name.data() + at);
    if (next.code >= kCharacterLimit || kBytes[next.code] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kBytes[next.code]);
    at += next.length;
  }
  return bytes;
}

std::string name_of_bytes(std::string_view bytes) {
  std::string name;
  for (const char byte : bytes)
    append_utf8(character_of_byte(static_cast<unsigned char>(byte)), name);
  return name;
}

}  // namespace bev
