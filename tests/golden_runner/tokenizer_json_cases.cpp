// tokenizer.json against what the library tokenizers made of the same file and texts.
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/text_groups.h"
#include "text/huggingface/tokenizer_json.h"
#include "text/utf8.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;

class Case {
 public:
  Case(const Json& expected, PipelineTokenizer& tokenizer)
      : expected_(expected), tokenizer_(tokenizer), text_(expected.at("text").get<std::string>()) {}

  const std::string& text() const { return text_; }

  void run(TextGroups& groups) {
    const EncodedPair with = encoded_with(true);
    check("ids", encoded_with(false).ids, groups);
    check("ids_with_template", with.ids, groups);
    check("type_ids", with.type_ids, groups);
    std::vector<std::string> tokens;
    for (const int32_t id : with.ids) tokens.push_back(tokenizer_.token_name(id));
    check("tokens", tokens, groups);
    check("decoded", decoded(with.ids, SpecialIds::LeaveOut), groups);
    check("decoded_with_special", decoded(with.ids, SpecialIds::Keep), groups);
    if (expected_.contains("pair")) return;
    // What every tokenizer can.
    Ids ids;
    tokenizer_.encode(text_, ids);
    groups.add("encode", ids == with.ids, text_);
  }

 private:
  EncodedPair encoded_with(bool add_template) {
    if (!expected_.contains("pair")) return tokenizer_.encode_typed(text_, add_template);
    return tokenizer_.encode_pair(text_, expected_.at("pair").get<std::string>(), add_template);
  }

  std::string decoded(const Ids& ids, SpecialIds special) const {
    return replace_invalid_utf8(tokenizer_.decode(ids, special));
  }

  template <class T>
  void check(const std::string& key, const T& ours, TextGroups& groups) const {
    if (expected_.contains(key)) groups.add(key, expected_.at(key) == Json(ours), text_);
  }

  const Json& expected_;
  PipelineTokenizer& tokenizer_;
  std::string text_;
};

}  // namespace

void run_tokenizer_json(const fs::path& dir, const std::string& name, Report& report) {
  for (const fs::path& path : sorted_files(dir)) {
    const std::string file = path.filename().string(), case_name = name + "/" + file;
    if (!file.ends_with("_cases.json")) continue;
    report.guarded(case_name, kHost, [&] {
      const Json all = read_json(path);
      PipelineTokenizer tokenizer(
          read_tokenizer_json(dir / all.at("tokenizer").get<std::string>()));
      TextGroups groups;
      for (const Json& each : all.at("cases")) Case(each, tokenizer).run(groups);
      groups.tell(case_name, report);
    });
  }
}

}  // namespace bev::golden
