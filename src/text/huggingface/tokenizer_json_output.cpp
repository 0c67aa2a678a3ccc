// The sections "post_processor" and "decoder".
#include "base/check.h"
#include "text/huggingface/tokenizer_json.h"

namespace bev {

namespace {

using Part = TextTemplate::Part;

class TemplateReader {
 public:
  TemplateReader(const JsonPlace& section, const std::function<bool(int64_t)>& has)
      : section_(section), has_(has) {}

  TextTemplate read() const {
    return {.single = parts(section_.at("single")), .pair = parts(section_.at("pair"))};
  }

  // ["[SEP]", 102]
  int32_t token(const JsonPlace& place) const {
    if (place.size() != 2) place.refuse("a token and its id");
    return id(place.at(size_t{1}));
  }

 private:
  int32_t id(const JsonPlace& place) const {
    const int64_t id = place.integer();
    if (!has_(id)) place.refuse("the id of a token");
    return static_cast<int32_t>(id);
  }

  std::vector<Part> parts(const JsonPlace& list) const {
    std::vector<Part> parts;
    for (size_t i = 0; i < list.size(); ++i) parts.push_back(part(list.at(i)));
    return parts;
  }

  Part part(const JsonPlace& place) const {
    const bool is_text = place.has("Sequence");
    if (!is_text && !place.has("SpecialToken")) place.refuse("Sequence, SpecialToken");
    const JsonPlace content = place.get(is_text ? "Sequence" : "SpecialToken");
    const int64_t type_id = content.at("type_id").integer();
    if (type_id < 0 || type_id > INT32_MAX) content.get("type_id").refuse("a small number");
    Part part{.kind = Part::Kind::Tokens, .type_id = static_cast<int32_t>(type_id), .ids = {}};
    const std::string name = content.at("id").string();
    if (is_text) {
      if (name != "A" && name != "B") content.get("id").refuse("A, B");
      part.kind = name == "A" ? Part::Kind::First : Part::Kind::Second;
    } else {
      const JsonPlace ids = section_.at("special_tokens").at(name).at("ids");
      for (size_t i = 0; i < ids.size(); ++i) part.ids.push_back(id(ids.at(i)));
    }
    return part;
  }

  const JsonPlace& section_;
  const std::function<bool(int64_t)>& has_;
};

void check_places(const JsonPlace& section, const TextTemplate& result) {
  int first = 0, second = 0;
  for (const Part& part : result.pair) {
    first += part.kind == Part::Kind::First ? 1 : 0;
    second += part.kind == Part::Kind::Second ? 1 : 0;
  }
  if (first != 1 || second != 1) section.get("pair").refuse("one A and one B");
  int single = 0;
  for (const Part& part : result.single) {
    if (part.kind == Part::Kind::Second) section.get("single").refuse("A without B");
    single += part.kind == Part::Kind::First ? 1 : 0;
  }
  if (single != 1) section.get("single").refuse("one A");
}

// [CLS] first [SEP] second [SEP], with another [SEP] before the second for RoBERTa, whose texts are
// all of type 0.
TextTemplate classified(const JsonPlace& section, const std::function<bool(int64_t)>& has,
                        bool roberta) {
  const TemplateReader reader(section, has);
  const int32_t cls = reader.token(section.at("cls")), sep = reader.token(section.at("sep"));
  const int32_t second = roberta ? 0 : 1;
  const auto tokens = [](int32_t id, int32_t type_id) {
    return Part{.kind = Part::Kind::Tokens, .type_id = type_id, .ids = {id}};
  };
  const Part first_text{.kind = Part::Kind::First, .type_id = 0, .ids = {}};
  TextTemplate result;
  result.single = {tokens(cls, 0), first_text, tokens(sep, 0)};
  result.pair = result.single;
  if (roberta) result.pair.push_back(tokens(sep, 0));
  result.pair.push_back({.kind = Part::Kind::Second, .type_id = second, .ids = {}});
  result.pair.push_back(tokens(sep, second));
  return result;
}

std::unique_ptr<TokenDecoder> read_decoder(const JsonPlace& place) {
  const std::string type = type_of(place);
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "WordPiece")
    return wordpiece_decoder(place.at("prefix").string(), place.at("cleanup").boolean());
  if (type == "Metaspace")
    return metaspace_decoder(place.at("replacement").character(),
                             read_prepend(place) != Prepend::Never);
  if (type == "Replace") {
    const JsonPattern pattern = pattern_of(place.at("pattern"));
    if (pattern.is_regex || pattern.text.empty())
      place.at("pattern").refuse("a String that is not empty");
    return replace_decoder(pattern.text, place.at("content").string());
  }
  if (type == "Strip") {
    const int64_t left = place.at("start").integer(), right = place.at("stop").integer();
    if (left < 0) place.get("start").refuse("a number of characters");
    if (right < 0) place.get("stop").refuse("a number of characters");
    return strip_decoder(place.at("content").character(), static_cast<size_t>(left),
                         static_cast<size_t>(right));
  }
  place.get("type").refuse(
      "ByteLevel, ByteFallback, Fuse, WordPiece, Metaspace, Replace, Strip, Sequence");
}

}  // namespace

TextTemplate read_template(const JsonPlace& section, const std::function<bool(int64_t)>& has) {
  TextTemplate result;
  if (section.is_null()) return result;
  bool found = false;
  for (const JsonPlace& place : flattened(section, "processors")) {
    const std::string type = type_of(place);
    if (type == "ByteLevel") continue;  // about places in the text, which are not kept here
    if (found) place.get("type").refuse("nothing behind another template");
    found = true;
    if (type == "BertProcessing") {
      result = classified(place, has, false);
    } else if (type == "RobertaProcessing") {
      result = classified(place, has, true);
    } else if (type == "TemplateProcessing") {
      result = TemplateReader(place, has).read();
      check_places(place, result);
    } else {
      place.get("type").refuse(
          "ByteLevel, BertProcessing, RobertaProcessing, TemplateProcessing, Sequence");
    }
  }
  return result;
}

std::vector<std::unique_ptr<const TokenDecoder>> read_decoders(const JsonPlace& section) {
  std::vector<std::unique_ptr<const TokenDecoder>> all;
  if (section.is_null()) {
    all.push_back(blanks_decoder());
    return all;
  }
  for (const JsonPlace& place : flattened(section, "decoders")) all.push_back(read_decoder(place));
  return all;
}

}  // namespace bev
