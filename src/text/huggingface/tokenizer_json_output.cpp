// The sections "post_processor" and "decoder".
#include "base/check.h"
#include "text/huggingface/tokenizer_json.h"

namespace bev {

namespace {

using Part = TextTemplate::Part;

class TemplateReader {
 public:
  TemplateReader(const JsonCursor& section, const std::function<bool(int64_t)>& has)
      : section_(section), has_(has) {}

  TextTemplate read() const {
    return {.single = parts(section_.at("single")), .pair = parts(section_.at("pair"))};
  }

  // ["[SEP]", 102]
  int32_t token(const JsonCursor& cursor) const {
    if (cursor.size() != 2) cursor.refuse("a token and its id");
    return id(cursor.at(size_t{1}));
  }

 private:
  int32_t id(const JsonCursor& cursor) const {
    const int64_t id = cursor.integer();
    if (!has_(id)) cursor.refuse("the id of a token");
    return static_cast<int32_t>(id);
  }

  std::vector<Part> parts(const JsonCursor& list) const {
    std::vector<Part> parts;
    for (size_t i = 0; i < list.size(); ++i) parts.push_back(part(list.at(i)));
    return parts;
  }

  Part part(const JsonCursor& cursor) const {
    const bool is_text = cursor.has("Sequence");
    if (!is_text && !cursor.has("SpecialToken")) cursor.refuse("Sequence, SpecialToken");
    const JsonCursor content = cursor.get(is_text ? "Sequence" : "SpecialToken");
    const int64_t type_id = content.at("type_id").integer();
    if (type_id < 0 || type_id > INT32_MAX) content.get("type_id").refuse("a small number");
    Part part{.kind = Part::Kind::Tokens, .type_id = static_cast<int32_t>(type_id), .ids = {}};
    const std::string name = content.at("id").string();
    if (is_text) {
      if (name != "A" && name != "B") content.get("id").refuse("A, B");
      part.kind = name == "A" ? Part::Kind::First : Part::Kind::Second;
    } else {
      const JsonCursor ids = section_.at("special_tokens").at(name).at("ids");
      for (size_t i = 0; i < ids.size(); ++i) part.ids.push_back(id(ids.at(i)));
    }
    return part;
  }

  const JsonCursor& section_;
  const std::function<bool(int64_t)>& has_;
};

void check_places(const JsonCursor& section, const TextTemplate& result) {
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
TextTemplate classified(const JsonCursor& section, const std::function<bool(int64_t)>& has,
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

std::unique_ptr<TokenDecoder> read_decoder(const JsonCursor& cursor) {
  const std::string type = type_of(cursor);
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "WordPiece")
    return wordpiece_decoder(cursor.at("prefix").string(), cursor.at("cleanup").boolean());
  if (type == "Metaspace")
    return metaspace_decoder(cursor.at("replacement").character(),
                             read_prepend(cursor) != Prepend::Never);
  if (type == "Replace") {
    const JsonPattern pattern = pattern_of(cursor.at("pattern"));
    if (pattern.is_regex || pattern.text.empty())
      cursor.at("pattern").refuse("a String that is not empty");
    return replace_decoder(pattern.text, cursor.at("content").string());
  }
  if (type == "Strip") {
    const int64_t left = cursor.at("start").integer(), right = cursor.at("stop").integer();
    if (left < 0) cursor.get("start").refuse("a number of characters");
    if (right < 0) cursor.get("stop").refuse("a number of characters");
    return strip_decoder(cursor.at("content").character(), static_cast<size_t>(left),
                         static_cast<size_t>(right));
  }
  cursor.get("type").refuse(
      "ByteLevel, ByteFallback, Fuse, WordPiece, Metaspace, Replace, Strip, Sequence");
}

}  // namespace

TextTemplate read_template(const JsonCursor& section, const std::function<bool(int64_t)>& has) {
  TextTemplate result;
  if (section.is_null()) return result;
  bool found = false;
  for (const JsonCursor& cursor : flattened(section, "processors")) {
    const std::string type = type_of(cursor);
    if (type == "ByteLevel") continue;  // about places in the text, which are not kept here
    if (found) cursor.get("type").refuse("nothing after another template");
    found = true;
    if (type == "BertProcessing") {
      result = classified(cursor, has, false);
    } else if (type == "RobertaProcessing") {
      result = classified(cursor, has, true);
    } else if (type == "TemplateProcessing") {
      result = TemplateReader(cursor, has).read();
      check_places(cursor, result);
    } else {
      cursor.get("type").refuse(
          "ByteLevel, BertProcessing, RobertaProcessing, TemplateProcessing, Sequence");
    }
  }
  return result;
}

std::vector<std::unique_ptr<const TokenDecoder>> read_decoders(const JsonCursor& section) {
  std::vector<std::unique_ptr<const TokenDecoder>> all;
  if (section.is_null()) {
    all.push_back(blanks_decoder());
    return all;
  }
  for (const JsonCursor& cursor : flattened(section, "decoders"))
    all.push_back(read_decoder(cursor));
  return all;
}

}  // namespace bev
