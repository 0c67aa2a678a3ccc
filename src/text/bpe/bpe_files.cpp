#include "text/bpe/bpe_files.h"

#include "base/format.h"
#include "base/json.h"
#include "text/bpe/byte_alphabet.h"

namespace bev {

namespace {

using OrderedJson = nlohmann::ordered_json;

// Of the special tokens too, whose bytes stand for themselves.
std::vector<std::string> names_of(const TrainedBpe& trained) {
  std::vector<std::string> names;
  names.reserve(trained.tokens.size() + trained.specials.size());
  for (const std::string& token : trained.tokens) names.push_back(name_of_bytes(token));
  names.insert(names.end(), trained.specials.begin(), trained.specials.end());
  return names;
}

// Objects with thousands of names are written by hand: the library's ordered object takes time
// quadratic in their number.
std::string object_of(const std::vector<std::string>& names) {
  std::string text = "{";
  for (size_t id = 0; id < names.size(); ++id)
    text += format("{}{}:{}", id == 0 ? "" : ",", Json(names[id]).dump(), id);
  return text + "}";
}

OrderedJson byte_level(bool add_prefix_space) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", true}};
}

}  // namespace

std::string vocab_json(const TrainedBpe& trained) { return object_of(names_of(trained)) + "\n"; }

std::string merges_txt(const TrainedBpe& trained) {
  const std::vector<std::string> names = names_of(trained);
  std::string text = "#version: 0.2\n";
  for (const SymbolPair& pair : trained.merges)
    text += format("{} {}\n", names[static_cast<size_t>(pair.left)],
                   names[static_cast<size_t>(pair.right)]);
  return text;
}

std::string tokenizer_json(const TrainedBpe& trained) {
  const std::vector<std::string> names = names_of(trained);
  OrderedJson added = OrderedJson::array();
  for (size_t i = 0; i < trained.specials.size(); ++i)
    added.push_back({{"id", trained.tokens.size() + i},
                     {"content", trained.specials[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  OrderedJson merges = OrderedJson::array();
  for (const SymbolPair& pair : trained.merges)
    merges.push_back(
        {names[static_cast<size_t>(pair.left)], names[static_cast<size_t>(pair.right)]});
  // Byte-level pieces need no space in front; a decoder does not care.
  return format(
      "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":{},"
      "\"normalizer\":null,\"pre_tokenizer\":{},\"post_processor\":null,\"decoder\":{},"
      "\"model\":{{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
      "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
      "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{},\"merges\":{}}}}}\n",
      added.dump(), byte_level(false).dump(), byte_level(true).dump(), object_of(names),
      merges.dump());
}

}  // namespace bev
