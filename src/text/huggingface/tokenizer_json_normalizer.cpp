// The section "normalizer".
#include "text/huggingface/charsmap_normalizer.h"
#include "text/huggingface/tokenizer_json_parts.h"

namespace bev {

namespace {

std::unique_ptr<Normalizer> read_bert(const JsonPlace& place) {
  const bool lower = place.boolean_or("lowercase", true);
  return bert_normalizer({.clean = place.boolean_or("clean_text", true),
                          .space_chinese = place.boolean_or("handle_chinese_chars", true),
                          .strip_accents = place.boolean_or("strip_accents", lower),
                          .lower_case = lower});
}

std::unique_ptr<Normalizer> read_replace(const JsonPlace& place) {
  const JsonPlace at = place.at("pattern");
  const JsonPattern pattern = pattern_of(at);
  std::string to = place.at("content").string();
  if (pattern.is_regex) {
    if (pattern.text != " {2,}") at.refuse("a String, or the Regex \" {2,}\"");
    return replace_blanks_normalizer(std::move(to));
  }
  if (pattern.text.empty()) at.refuse("a String that is not empty");
  return replace_normalizer(pattern.text, std::move(to));
}

std::unique_ptr<Normalizer> read_one(const JsonPlace& place) {
  const std::string type = type_of(place);
  if (type == "BertNormalizer") return read_bert(place);
  if (type == "NFC") return form_normalizer(UnicodeForm::Composed);
  if (type == "NFD") return form_normalizer(UnicodeForm::Decomposed);
  if (type == "Lowercase") return form_normalizer(UnicodeForm::LowerCase);
  if (type == "StripAccents") return form_normalizer(UnicodeForm::WithoutMarks);
  if (type == "Strip")
    return strip_normalizer(place.boolean_or("strip_left", true),
                            place.boolean_or("strip_right", true));
  if (type == "Prepend") return prepend_normalizer(place.at("prepend").string());
  if (type == "Replace") return read_replace(place);
  if (type == "Precompiled") {
    const JsonPlace map = place.at("precompiled_charsmap");
    return charsmap_normalizer(bytes_of_base64(map.string(), map.where()), map.where());
  }
  place.get("type").refuse(
      "BertNormalizer, NFC, NFD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, "
      "Sequence");
}

}  // namespace

std::vector<std::unique_ptr<const Normalizer>> read_normalizers(const JsonPlace& section) {
  std::vector<std::unique_ptr<const Normalizer>> all;
  if (section.is_null()) return all;
  for (const JsonPlace& place : flattened(section, "normalizers")) all.push_back(read_one(place));
  return all;
}

}  // namespace bev
