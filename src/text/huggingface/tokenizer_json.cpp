#include "text/huggingface/tokenizer_json.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "text/huggingface/normalizer.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kLimits{.bytes = size_t{256} << 20, .depth = 64};

// The id that the library gives a token, whatever the file says: that of the vocabulary, or the
// next behind the vocabulary and the added ones.
int64_t given_id(const std::string& content, const TokenNames& names, int64_t largest_added) {
  if (const std::optional<int32_t> id = names.find(content)) return *id;
  return std::max(names.count(), largest_added + 1);
}

std::vector<AddedToken> read_added(const JsonCursor& section, const TokenNames& names) {
  std::vector<AddedToken> tokens;
  if (section.is_null()) return tokens;
  std::set<std::string> contents;
  int64_t largest = -1;
  for (size_t i = 0; i < section.size(); ++i) {
    const JsonCursor cursor = section.at(i);
    AddedToken token{.id = 0,
                     .content = cursor.at("content").string(),
                     .special = cursor.at("special").boolean(),
                     .normalized = cursor.at("normalized").boolean(),
                     .single_word = cursor.at("single_word").boolean(),
                     .strip_left = cursor.at("lstrip").boolean(),
                     .strip_right = cursor.at("rstrip").boolean()};
    if (token.content.empty()) continue;
    BEV_CHECK(contents.insert(token.content).second, Data, "{}: the token {} is added twice",
              cursor.where(), in_quotes(token.content));
    const int64_t stated = cursor.at("id").integer();
    const int64_t given = given_id(token.content, names, largest);
    BEV_CHECK(stated == given, Data,
              "{}: the id of {} is {}; the vocabulary and the added tokens before it make it {}",
              cursor.where(), in_quotes(token.content), stated, given);
    const bool clash = !names.find(token.content) && names.name(static_cast<int32_t>(given));
    BEV_CHECK(!clash && given < TokenNames::kLimit, Data,
              "{}: the id {} of {} is beyond {} or another token's", cursor.where(), given,
              in_quotes(token.content), TokenNames::kLimit - 1);
    token.id = static_cast<int32_t>(given);
    largest = std::max(largest, given);
    tokens.push_back(std::move(token));
  }
  std::stable_partition(tokens.begin(), tokens.end(),
                        [](const AddedToken& token) { return token.special; });
  return tokens;
}

// The special tokens by their usual names, or by what tokenizer_config.json says.
class RoleFinder {
 public:
  RoleFinder(const TokenizerParts& parts, const JsonCursor* config)
      : parts_(parts), config_(config) {}

  std::optional<int32_t> find(const std::string& key,
                              std::initializer_list<std::string_view> usual) const {
    if (config_ != nullptr && config_->has(key)) return named(config_->get(key));
    for (const std::string_view name : usual)
      for (const AddedToken& token : parts_.added)
        if (token.special && token.content == name) return token.id;
    return std::nullopt;
  }

 private:
  // A string, or an object that describes the token.
  std::optional<int32_t> named(const JsonCursor& cursor) const {
    const std::string name =
        cursor.value().is_object() ? cursor.at("content").string() : cursor.string();
    for (const AddedToken& token : parts_.added)
      if (token.content == name) return token.id;
    return parts_.model->names().find(name);
  }

  const TokenizerParts& parts_;
  const JsonCursor* config_;
};

void read_roles(TokenizerParts& parts, const JsonCursor* config) {
  const RoleFinder finder(parts, config);
  const auto role = [&](TokenRole which) -> std::optional<int32_t>& {
    return parts.roles[static_cast<size_t>(which)];
  };
  parts.eod = finder.find("eos_token", {"<|endoftext|>", "<|end_of_text|>", "</s>", "[SEP]"});
  role(TokenRole::End) = parts.eod;
  role(TokenRole::Unknown) = finder.find("unk_token", {"<unk>", "[UNK]"});
  role(TokenRole::Begin) = finder.find("bos_token", {"<|begin_of_text|>", "<s>", "[BOS]", "[CLS]"});
  role(TokenRole::Pad) = finder.find("pad_token", {"<pad>", "[PAD]"});
  role(TokenRole::Classify) = finder.find("cls_token", {"[CLS]"});
  role(TokenRole::Separate) = finder.find("sep_token", {"[SEP]"});
  role(TokenRole::Mask) = finder.find("mask_token", {"<mask>", "[MASK]"});
}

// Whether a piece begins the text is told from the text that the user gave. After a normalizer that
// may remove its beginning that is not known.
void check_prepend_first(const JsonCursor& section, const TokenizerParts& parts) {
  const bool may_drop =
      std::any_of(parts.normalizers.begin(), parts.normalizers.end(),
                  [](const auto& normalizer) { return normalizer->may_drop_the_start(); });
  if (!may_drop || section.is_null()) return;
  for (const JsonCursor& step : flattened(section, "pretokenizers"))
    if (type_of(step) == "Metaspace" && read_prepend(step) == Prepend::First)
      step.get("prepend_scheme").refuse("always or never, with the normalizer of this file");
}

}  // namespace

std::vector<JsonCursor> flattened(const JsonCursor& section, const std::string& list) {
  if (type_of(section) != "Sequence") return {section};
  std::vector<JsonCursor> all;
  const JsonCursor elements = section.at(list);
  for (size_t i = 0; i < elements.size(); ++i)
    for (const JsonCursor& each : flattened(elements.at(i), list)) all.push_back(each);
  return all;
}

std::string type_of(const JsonCursor& section) { return section.at("type").string(); }

JsonPattern pattern_of(const JsonCursor& cursor) {
  if (cursor.has("String")) return {false, cursor.get("String").string()};
  if (cursor.has("Regex")) return {true, cursor.get("Regex").string()};
  cursor.refuse("an object with String or Regex");
}

Prepend read_prepend(const JsonCursor& section) {
  if (!section.has("prepend_scheme"))
    return section.boolean_or("add_prefix_space", true) ? Prepend::Always : Prepend::Never;
  const std::string scheme = section.get("prepend_scheme").string();
  if (scheme == "always") return Prepend::Always;
  if (scheme == "first") return Prepend::First;
  if (scheme == "never") return Prepend::Never;
  section.get("prepend_scheme").refuse("always, first, never");
}

std::shared_ptr<const TokenizerParts> parse_tokenizer_json(const JsonCursor& file,
                                                           const JsonCursor* config) {
  file.expect_object();
  if (file.has("version") && file.get("version").string() != "1.0")
    file.get("version").refuse("1.0");
  auto parts = std::make_shared<TokenizerParts>();
  parts->normalizers = read_normalizers(file.get("normalizer"));
  const JsonCursor pre_tokenizer = file.get("pre_tokenizer");
  const bool bytes = read_piece_steps(pre_tokenizer, *parts);
  check_prepend_first(pre_tokenizer, *parts);
  parts->model = read_model(file.at("model"), bytes);
  if (parts->model->words_are_apart()) {
    // The same ids, of pieces that are short and come again.
    parts->steps.push_back(split_before_words());
    parts->pattern.reset();
  }
  parts->added = read_added(file.get("added_tokens"), parts->model->names());
  const auto has = [&](int64_t id) {
    if (id < 0 || id >= TokenNames::kLimit) return false;
    const auto is_it = [&](const AddedToken& token) { return token.id == id; };
    return parts->model->names().name(static_cast<int32_t>(id)) != nullptr ||
           std::any_of(parts->added.begin(), parts->added.end(), is_it);
  };
  parts->text_template = read_template(file.get("post_processor"), has);
  parts->decoders = read_decoders(file.get("decoder"));
  read_roles(*parts, config);
  return parts;
}

std::shared_ptr<const TokenizerParts> read_tokenizer_json(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? path / "tokenizer.json" : path;
  const fs::path config_file = file.parent_path() / "tokenizer_config.json";
  const Json content = read_json(file, kLimits);
  if (!fs::exists(config_file)) return parse_tokenizer_json({content, file.string()});
  const Json config_content = read_json(config_file, kLimits);
  const JsonCursor config(config_content, config_file.string());
  config.expect_object();
  return parse_tokenizer_json({content, file.string()}, &config);
}

// The section "normalizer".

namespace {

std::unique_ptr<Normalizer> read_bert(const JsonCursor& cursor) {
  const bool lower = cursor.boolean_or("lowercase", true);
  return bert_normalizer({.clean = cursor.boolean_or("clean_text", true),
                          .space_chinese = cursor.boolean_or("handle_chinese_chars", true),
                          .strip_accents = cursor.boolean_or("strip_accents", lower),
                          .lower_case = lower});
}

std::unique_ptr<Normalizer> read_replace(const JsonCursor& cursor) {
  const JsonCursor at = cursor.at("pattern");
  const JsonPattern pattern = pattern_of(at);
  std::string to = cursor.at("content").string();
  if (pattern.is_regex) {
    if (pattern.text != " {2,}") at.refuse("a String, or the Regex \" {2,}\"");
    return replace_blanks_normalizer(std::move(to));
  }
  if (pattern.text.empty()) at.refuse("a String that is not empty");
  return replace_normalizer(pattern.text, std::move(to));
}

std::unique_ptr<Normalizer> read_one(const JsonCursor& cursor) {
  const std::string type = type_of(cursor);
  if (type == "BertNormalizer") return read_bert(cursor);
  if (type == "NFC") return form_normalizer(UnicodeForm::Composed);
  if (type == "NFD") return form_normalizer(UnicodeForm::Decomposed);
  if (type == "Lowercase") return form_normalizer(UnicodeForm::LowerCase);
  if (type == "StripAccents") return form_normalizer(UnicodeForm::WithoutMarks);
  if (type == "Strip")
    return strip_normalizer(cursor.boolean_or("strip_left", true),
                            cursor.boolean_or("strip_right", true));
  if (type == "Prepend") return prepend_normalizer(cursor.at("prepend").string());
  if (type == "Replace") return read_replace(cursor);
  if (type == "Precompiled") {
    const JsonCursor map = cursor.at("precompiled_charsmap");
    return charsmap_normalizer(bytes_of_base64(map.string(), map.where()), map.where());
  }
  cursor.get("type").refuse(
      "BertNormalizer, NFC, NFD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, "
      "Sequence");
}

}  // namespace

std::vector<std::unique_ptr<const Normalizer>> read_normalizers(const JsonCursor& section) {
  std::vector<std::unique_ptr<const Normalizer>> all;
  if (section.is_null()) return all;
  for (const JsonCursor& cursor : flattened(section, "normalizers"))
    all.push_back(read_one(cursor));
  return all;
}

}  // namespace bev
