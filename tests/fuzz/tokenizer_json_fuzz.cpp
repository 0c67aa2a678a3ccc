// libFuzzer: any bytes as tokenizer.json are refused with a Data error or make a tokenizer; a
// tokenizer put together from sections that the bytes choose encodes any text to ids of the
// vocabulary, twice the same (the second time from the cache), and decodes them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/bpe/bpe_vocab.h"
#include "text/huggingface/tokenizer_json.h"
#include "text/utf8.h"

namespace {

using bev::Json;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_encoding(bev::PipelineTokenizer& tokenizer, std::string_view text, bool exact) {
  std::vector<int32_t> first, second;
  try {
    tokenizer.encode(text, first);
    tokenizer.encode(text, second);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Data && first.empty());
    return;
  }
  require(first == second);
  for (const int32_t id : first) require(id >= 0 && id < tokenizer.vocab_size());
  const std::string decoded = tokenizer.decode(first);
  if (exact) require(decoded == bev::replace_invalid_utf8(text));
  tokenizer.decode(first, bev::SpecialIds::LeaveOut);
  for (int32_t id = -1; id < std::min<int64_t>(tokenizer.vocab_size() + 1, 300); ++id)
    tokenizer.decode(std::array{id});
  const bev::EncodedPair pair = tokenizer.encode_pair(text, text, true);
  require(pair.ids.size() == pair.type_ids.size());
}

void check_file(const Json& file, std::string_view text, bool exact) {
  try {
    bev::PipelineTokenizer tokenizer(bev::parse_tokenizer_json({file, "tokenizer.json"}), true, 16);
    check_encoding(tokenizer, text, exact);
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Data);
  }
}

// Takes a byte at a time; zeros behind the end.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  size_t next(size_t count) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % count;
  }
  bool flag() { return next(2) == 1; }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

const char* const kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_vocab() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[bev::name_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  return vocab;
}

Json normalizer(Choices& choices) {
  switch (choices.next(10)) {
    case 0: return {{"type", "BertNormalizer"}, {"lowercase", choices.flag()}};
    case 1: return {{"type", "NFC"}};
    case 2: return {{"type", "NFD"}};
    case 3: return {{"type", "Lowercase"}};
    case 4: return {{"type", "StripAccents"}};
    case 5:
      return {{"type", "Strip"}, {"strip_left", choices.flag()}, {"strip_right", choices.flag()}};
    case 6: return {{"type", "Prepend"}, {"prepend", "\u2581"}};
    case 7: return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
    case 8: return {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "_"}};
    default: return nullptr;
  }
}

Json pre_tokenizer(Choices& choices) {
  static constexpr std::array<const char*, 5> kBehaviors = {
      "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  static constexpr std::array<const char*, 3> kSchemes = {"always", "never", "first"};
  const char* behavior = kBehaviors[choices.next(kBehaviors.size())];
  switch (choices.next(7)) {
    case 0: return {{"type", "WhitespaceSplit"}};
    case 1: return {{"type", "BertPreTokenizer"}};
    case 2: return {{"type", "Digits"}, {"individual_digits", choices.flag()}};
    case 3: return {{"type", "Punctuation"}, {"behavior", behavior}};
    case 4: return {{"type", "Split"}, {"pattern", {{"String", "e"}}}, {"behavior", behavior}};
    case 5: return {{"type", "Split"}, {"pattern", {{"Regex", kLlama3}}}, {"behavior", "Isolated"}};
    default:
      return {{"type", "Metaspace"},
              {"replacement", "\u2581"},
              {"prepend_scheme", kSchemes[choices.next(kSchemes.size())]},
              {"split", choices.flag()}};
  }
}

Json added(int64_t id, const std::string& content, Choices& choices) {
  return {{"id", id},
          {"content", content},
          {"single_word", choices.flag()},
          {"lstrip", choices.flag()},
          {"rstrip", choices.flag()},
          {"normalized", choices.flag()},
          {"special", choices.flag()}};
}

Json model(Choices& choices, bool bytes) {
  Json vocab = bytes ? byte_vocab() : Json{{"<unk>", 0}, {"\u2581", 1}, {"a", 2}, {"e", 3}};
  const auto token = [&](size_t i) { return std::next(vocab.begin(), static_cast<long>(i)).key(); };
  Json merges = Json::array();
  const size_t count = choices.next(24);
  for (size_t i = 0; i < count; ++i) {
    const std::string left = token(choices.next(vocab.size()));
    const std::string right = token(choices.next(vocab.size()));
    if (left.size() + right.size() > 64) continue;
    vocab.emplace(left + right, vocab.size());
    const Json merge = Json::array({left, right});
    if (std::find(merges.begin(), merges.end(), merge) == merges.end()) merges.push_back(merge);
  }
  if (choices.flag() && !bytes) {
    Json scored = Json::array();
    for (const auto& [name, id] : vocab.items())
      scored.push_back(Json::array({name, -static_cast<double>(choices.next(64)) / 4}));
    return {{"type", "Unigram"}, {"vocab", scored}, {"unk_id", 0}};
  }
  Json result = {{"type", "BPE"},
                 {"vocab", vocab},
                 {"merges", merges},
                 {"fuse_unk", choices.flag()},
                 {"byte_fallback", choices.flag()},
                 {"ignore_merges", choices.flag()}};
  if (!bytes && choices.flag()) result["unk_token"] = "<unk>";
  return result;
}

Json described(Choices& choices, bool& exact) {
  const bool bytes = choices.flag();
  Json steps = Json::array(), normalizers = Json::array();
  const size_t step_count = choices.next(3), normalizer_count = choices.next(3);
  for (size_t i = 0; i < step_count; ++i) steps.push_back(pre_tokenizer(choices));
  for (size_t i = 0; i < normalizer_count; ++i)
    if (Json one = normalizer(choices); !one.is_null()) normalizers.push_back(one);
  const bool prefix = choices.flag();
  if (bytes)
    steps.push_back(
        {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"use_regex", choices.flag()}});
  Json file = {{"model", model(choices, bytes)}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  const auto size = static_cast<int64_t>(file["model"]["vocab"].size());
  file["added_tokens"] = {added(size, "<x>", choices), added(size + 1, "<xE", choices)};
  const bool stripped = file["added_tokens"].dump().find("strip\":true") != std::string::npos;
  const bool normal = file["added_tokens"].dump().find("normalized\":true") != std::string::npos;
  exact = bytes && !prefix && step_count == 0 && normalizers.empty() && !stripped && !normal;
  file["decoder"] =
      bytes ? Json{{"type", "ByteLevel"}} : Json{{"type", "Metaspace"}, {"replacement", "\u2581"}};
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    Json file;
    try {
      file = bev::parse_json(bytes, "tokenizer.json");
    } catch (const bev::Error& error) {
      require(error.kind == bev::ErrorKind::Data);
      return 0;
    }
    check_file(file, "a he\u00E9 <x> \u2581 12'LL\xFF", false);
  } else {
    Choices choices(bytes);
    bool exact = false;
    const Json file = described(choices, exact);
    check_file(file, choices.rest(), exact);
  }
  return 0;
}
