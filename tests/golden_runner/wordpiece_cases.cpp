// BERT's WordPiece against what transformers made of the same texts, and what its normalizer makes
// of every character.
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/text_groups.h"
#include "text/huggingface/bert_vocab.h"
#include "text/utf8.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;

void run_cases(const Json& cases, Tokenizer& tokenizer, const std::string& name, Report& report) {
  TextGroups groups;
  for (const Json& each : cases) {
    const auto text = each.at("text").get<std::string>();
    const Ids ids = encoded(tokenizer, text);
    std::vector<std::string> tokens;
    for (const int32_t id : ids) tokens.push_back(tokenizer.token_name(id));
    const bool right = ids == each.at("ids").get<Ids>() &&
                       (!each.contains("tokens") || each.at("tokens") == Json(tokens));
    groups.add(each.value("group", "all"), right, text);
  }
  groups.tell(name, report);
}

void run_files(const Json& files, const fs::path& data, Tokenizer& tokenizer,
               const std::string& name, Report& report) {
  for (const Json& entry : files) {
    const auto file = entry.at("file").get<std::string>();
    if (!fs::exists(data / file)) {
      report.skip(name + "/" + file, "its text is not here");
      continue;
    }
    const std::string text = read_text(data / file);
    Ids ids;
    for (const std::string_view line : lines_of(text)) tokenizer.encode(line, ids);
    report.check(name + "/" + file + ": lines", kHost,
                 static_cast<double>(wrong_in_summary(ids, entry.at("lines"))), 0.0);
  }
}

// What BERT makes of "aXb", in words.
std::vector<std::string> words_around(char32_t c) {
  static const auto normalizer = bert_normalizer({});
  static const auto splitter = split_for_bert();
  std::string text = "a";
  append_utf8(c, text);
  text += 'b';
  normalizer->apply(text);
  PieceList list{.text = text, .cuts = {{0, text.size(), true}}};
  splitter->apply(list);
  std::vector<std::string> words;
  for (const PieceList::Cut& cut : list.cuts) words.emplace_back(list.piece(cut));
  return words;
}

using Words = std::vector<std::string>;

// Every code point by what is expected of it; those on which programs differ are left out.
class CharacterCheck {
 public:
  CharacterCheck(const std::string& name, Report& report) : name_(name), report_(report) {}

  void add(const std::string& group, char32_t c, const Words& expected) {
    std::string text;
    append_utf8(c, text);
    seen_[c] = true;
    groups_.add(group, words_around(c) == expected, text);
  }

  void leave_out(char32_t c) { seen_[c] = true; }

  // The others stay as they are, Hangul syllables become Jamo.
  void finish() {
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (seen_[c] || (c >= 0xD800 && c < 0xE000)) continue;
      std::string text = "a";
      append_utf8(c, text);
      const bool hangul = c >= 0xAC00 && c <= 0xD7A3;
      const Words words = words_around(c);
      const bool same = words == Words{text + 'b'};
      groups_.add(hangul ? "hangul" : "unchanged", hangul ? words.size() == 1 && !same : same,
                  text);
    }
    groups_.tell(name_, report_);
  }

 private:
  std::string name_;
  Report& report_;
  TextGroups groups_;
  std::vector<bool> seen_ = std::vector<bool>(0x110000, false);
};

template <class Each>
void for_ranges(const Json& ranges, Each&& each) {
  for (const Json& range : ranges)
    for (auto c = range.at(0).get<uint32_t>(); c <= range.at(1).get<uint32_t>(); ++c)
      each(static_cast<char32_t>(c));
}

char32_t code_of(const std::string& hex) {
  return static_cast<char32_t>(std::stoul(hex, nullptr, 16));
}

}  // namespace

void run_wordpiece(const fs::path& path, const fs::path& data, const std::string& name,
                   Report& report) {
  const fs::path vocab = data / "bert" / "vocab.txt";
  if (data.empty() || !fs::exists(vocab))
    return report.skip(name, "the vocabulary data/bert/vocab.txt is not here");
  const Json all = read_json(path);
  PipelineTokenizer tokenizer(
      read_bert_vocab(vocab, {.lower_case = all.at("do_lower_case").get<bool>()}), false);
  run_cases(all.at("cases"), tokenizer, name, report);
  if (all.contains("files")) run_files(all.at("files"), data, tokenizer, name, report);
}

void run_bert_characters(const fs::path& path, const std::string& name, Report& report) {
  const Json all = read_json(path);
  CharacterCheck check(name, report);
  const auto text_of = [](char32_t c) {
    std::string text;
    append_utf8(c, text);
    return text;
  };
  for_ranges(all.at("removed"), [&](char32_t c) { check.add("removed", c, {"ab"}); });
  for_ranges(all.at("space"), [&](char32_t c) { check.add("space", c, {"a", "b"}); });
  for_ranges(all.at("isolated"),
             [&](char32_t c) { check.add("isolated", c, {"a", text_of(c), "b"}); });
  for (const auto& [hex, text] : all.at("mapped").items())
    check.add("mapped", code_of(hex), {"a" + text.get<std::string>() + "b"});
  for (const auto& [hex, words] : all.at("isolated_mapped").items()) {
    Words expected{"a"};
    for (const Json& word : words) expected.push_back(word);
    expected.emplace_back("b");
    check.add("isolated and mapped", code_of(hex), expected);
  }
  for (const char* disputed : {"unassigned_disputed", "assigned_disputed"})
    for_ranges(all.at(disputed), [&](char32_t c) { check.leave_out(c); });
  check.finish();
}

}  // namespace bev::golden
