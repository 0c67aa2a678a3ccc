// Sentences, and parameters learned from text, against those of NLTK's Punkt.
#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/text_groups.h"
#include "text/punkt/punkt_splitter.h"
#include "text/punkt/punkt_trainer.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Spans = std::vector<std::pair<size_t, size_t>>;

PunktSplitter splitter_from(const fs::path& folder) {
  return PunktSplitter(std::make_shared<const PunktParameters>(read_punkt_folder(folder)));
}

std::vector<std::string_view> sentences_of(PunktSplitter& splitter, std::string_view text,
                                           SentenceBlanks blanks) {
  std::vector<std::string_view> sentences;
  splitter.split(text, blanks, sentences);
  return sentences;
}

// Begin and end of each sentence in code points.
Spans spans_of(std::string_view text, const std::vector<std::string_view>& sentences) {
  const auto characters = [&](const char* begin, const char* end) {
    return static_cast<size_t>(std::count_if(
        begin, end, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  };
  Spans spans;
  const char* at = text.data();
  size_t count = 0;
  for (const std::string_view sentence : sentences) {
    const size_t begin = count + characters(at, sentence.data());
    at = sentence.data() + sentence.size();
    count = begin + characters(sentence.data(), at);
    spans.emplace_back(begin, count);
  }
  return spans;
}

void check_spans(PunktSplitter& splitter, const Json& documents, const Json& expected,
                 const std::string& name, Report& report) {
  TextGroups groups;
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto& text = documents[i].get_ref<const std::string&>();
    const Spans spans = spans_of(text, sentences_of(splitter, text, SentenceBlanks::Trim));
    groups.add("spans", i < expected.size() && spans == expected[i].get<Spans>(), text);
  }
  groups.tell(name, report);
}

void check_kept(PunktSplitter& splitter, const Json& documents, const Json& expected,
                const std::string& name, Report& report) {
  TextGroups groups;
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto& text = documents[i].get_ref<const std::string&>();
    const Json found(sentences_of(splitter, text, SentenceBlanks::Keep));
    groups.add("keep_newlines", i < expected.size() && found == expected[i], text);
  }
  groups.tell(name, report);
}

// Every language in sentences.json.
void run_languages(const fs::path& dir, const std::string& name, Report& report) {
  const Json all = read_json(dir / "sentences.json");
  const Json& documents = all.at("documents");
  for (const auto& [language, expected] : all.items()) {
    if (!expected.is_object() || !expected.contains("spans")) continue;
    const std::string case_name = name + "/" + language;
    const fs::path folder = dir / "punkt_tab" / language;
    if (!fs::exists(folder)) {
      report.skip(case_name, "punkt_tab has no folder for the language");
      continue;
    }
    report.guarded(case_name, kHost, [&] {
      PunktSplitter splitter = splitter_from(folder);
      check_spans(splitter, documents, expected.at("spans"), case_name, report);
      check_kept(splitter, documents, expected.at("keep_newlines"), case_name, report);
    });
  }
}

// The text after --train in the command that README.md quotes, in data/ above the folder; empty:
// there is none.
fs::path training_text(const fs::path& dir) {
  std::istringstream words(fs::exists(dir / "README.md") ? read_text(dir / "README.md") : "");
  std::string name = "tinyshakespeare.txt";
  for (std::string word; words >> word;)
    if (word == "--train" && words >> word) name = fs::path(word).filename().string();
  for (fs::path parent = dir; parent != parent.parent_path(); parent = parent.parent_path())
    if (fs::exists(parent / "data" / name)) return parent / "data" / name;
  return {};
}

// make.py writes one empty line for an empty list.
std::string without_empty_lines(std::string_view text) {
  std::string kept;
  for (const std::string_view line : lines_of(text))
    if (!line.empty()) (kept += line) += '\n';
  return kept;
}

void run_training(const fs::path& dir, const std::string& name, Report& report) {
  const fs::path text = training_text(dir);
  if (text.empty()) return report.skip(name, "the training text is not here");
  PunktTrainer trainer;
  trainer.add(read_text(text));
  const PunktTexts texts = punkt_texts(trainer.finish());
  for (size_t i = 0; i < texts.size(); ++i) {
    const fs::path file = dir / "trained" / kPunktFiles[i];
    const std::string case_name = name + "/" + std::string(kPunktFiles[i]);
    if (fs::exists(file))
      report.check_same(case_name, texts[i] == without_empty_lines(read_text(file)) ? 0 : 1);
    else
      report.skip(case_name, "the file is not here");
  }
}

}  // namespace

bool is_punkt(const fs::path& dir) {
  return fs::exists(dir / "sentences.json") &&
         (fs::exists(dir / "punkt_tab") || fs::exists(dir / "trained"));
}

void run_punkt(const fs::path& dir, const std::string& name, Report& report) {
  report.guarded(name, kHost, [&] { run_languages(dir, name, report); });
  if (!fs::exists(dir / "trained")) return report.skip(name + "/trained", "the folder is not here");
  report.guarded(name + "/trained", kHost, [&] { run_training(dir, name + "/trained", report); });
  if (!fs::exists(dir / "trained.json")) return;
  const std::string case_name = name + "/trained.json";
  report.guarded(case_name, kHost, [&] {
    const Json all = read_json(dir / "trained.json");
    PunktSplitter splitter = splitter_from(dir / "trained");
    check_spans(splitter, all.at("documents"), all.at("spans"), case_name, report);
  });
}

}  // namespace bev::golden
