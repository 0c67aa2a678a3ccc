// GPT-2's tokenizer against what tiktoken, tokenizers and transformers made of the same texts.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/text_groups.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/unicode/unicode.h"
#include "text/utf8.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

template <class T>
std::string digest(const std::vector<T>& values) {
  return sha256(std::as_bytes(std::span(values)));
}

void run_texts(const Json& cases, Tokenizer& tokenizer, const std::string& name, Report& report) {
  TextGroups groups;
  for (const Json& each : cases) {
    const auto text = each.at("text").get<std::string>();
    const Ids ids = encoded(tokenizer, text);
    const bool right = ids == each.at("ids").get<Ids>() && tokenizer.decode(ids) == text;
    groups.add(each.value("group", "all"), right, text);
  }
  groups.tell(name, report);
}

void run_decode(const Json& cases, const Tokenizer& tokenizer, const std::string& name,
                Report& report) {
  TextGroups groups;
  for (const Json& each : cases) {
    const std::string bytes = tokenizer.decode(each.at("ids").get<Ids>());
    groups.add("bytes", bytes == bytes_of_hex(each.at("hex")), bytes);
    const std::string text = replace_invalid_utf8(bytes);
    groups.add("text", text == each.at("text").get<std::string>(), text);
  }
  groups.tell(name + ": decode", report);
}

void check_token_bytes(const BpeVocab& vocab, const Json& expected, const std::string& name,
                       Report& report) {
  std::string all;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view bytes = vocab.bytes(id);
    for (int shift = 0; shift < 32; shift += 8)
      all += static_cast<char>(bytes.size() >> shift & 0xFF);
    all += bytes;
  }
  const bool same = expected == sha256(std::as_bytes(std::span(all)));
  report.check_same(name + ": bytes of all tokens", same ? 0 : 1);
}

void run_invalid(const Json& cases, Tokenizer& tokenizer, const std::string& name, Report& report) {
  TextGroups groups;
  for (const Json& each : cases) {
    const std::string bytes = bytes_of_hex(each.at("hex"));
    const std::string text = replace_invalid_utf8(bytes);
    groups.add("replaced", text == each.at("text").get<std::string>(), bytes);
    groups.add("ids", encoded(tokenizer, bytes) == each.at("ids").get<Ids>(), bytes);
  }
  groups.tell(name, report);
}

void run_documents(const Json& expected, const std::vector<std::string>& documents,
                   Tokenizer& tokenizer, const std::string& name, Report& report) {
  Ids joined, with_end;
  std::vector<uint32_t> counts;
  for (const std::string& document : documents) {
    const Ids ids = encoded(tokenizer, document);
    counts.push_back(static_cast<uint32_t>(ids.size()));
    joined.insert(joined.end(), ids.begin(), ids.end());
    with_end.insert(with_end.end(), ids.begin(), ids.end());
    if (!ids.empty()) with_end.push_back(tokenizer.eod_id().value());
  }
  report.check_same(name + ": joined", wrong_in_summary(joined, expected.at("joined")));
  report.check_same(name + ": with ends",
                    wrong_in_summary(with_end, expected.at("joined_with_end")));
  const bool same = expected.at("documents") == documents.size() &&
                    expected.at("counts_sha256_u32le") == digest(counts);
  report.check_same(name + ": counts", same ? 0 : 1);
}

void check_line_counts(const Json& expected, const std::vector<std::string_view>& lines,
                       Tokenizer& tokenizer, const std::string& name, Report& report) {
  size_t wrong = expected.size() == lines.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
    if (expected.at(i) == encoded(tokenizer, lines[i]).size()) continue;
    if (++wrong == 1) report.fail(format("{} line {}", name, i + 1), kHost, in_quotes(lines[i]));
  }
  report.check_same(name, wrong);
}

void run_text_file(const Json& entry, const fs::path& data, Tokenizer& tokenizer,
                   const std::string& name, Report& report) {
  if (!entry.contains("file") || !fs::exists(data / entry.at("file").get<std::string>())) {
    report.skip(name, "its text is not here");
    return;
  }
  const std::string text = read_text(data / entry.at("file").get<std::string>());
  report.check_same(name + ": whole",
                    wrong_in_summary(encoded(tokenizer, text), entry.at("whole")));
  const std::vector<std::string_view> lines = lines_of(text);
  // Of a trained vocabulary, which has no end of a document, only the joined ids are given.
  if (const Json& joined = entry.at("lines"); joined.contains("count")) {
    Ids ids;
    for (const std::string_view line : lines) tokenizer.encode(line, ids);
    report.check_same(name + ": lines", wrong_in_summary(ids, joined));
    return;
  }
  std::vector<std::string> bare, ended;
  for (const std::string_view line : lines) {
    bare.emplace_back(line);
    ended.push_back(std::string(line) + '\n');
  }
  run_documents(entry.at("lines"), bare, tokenizer, name + ": lines", report);
  run_documents(entry.at("lines_with_newline"), ended, tokenizer, name + ": ended lines", report);
  check_line_counts(entry.at("line_counts"), lines, tokenizer, name + ": ids of each line", report);
}

void run_text_files(const Json& files, const fs::path& data, Tokenizer& tokenizer,
                    const std::string& name, Report& report) {
  for (const Json& entry : files)
    run_text_file(entry, data, tokenizer, name + "/" + entry.value("file", "documents"), report);
}

void run_unicode_classes(const Json& all, const std::string& name, Report& report) {
  const std::array<std::pair<const char*, CharClass>, 3> classes = {
      {{"letter", CharClass::Letter},
       {"number", CharClass::Number},
       {"white_space", CharClass::Space}}};
  for (const auto& [key, char_class] : classes) {
    std::vector<char> expected(0x110000, 0);
    for (const Json& range : all.at(key))
      for (auto c = range.at(0).get<size_t>(); c <= range.at(1).get<size_t>(); ++c)
        expected.at(c) = 1;
    size_t wrong = 0;
    for (size_t c = 0; c < expected.size(); ++c) {
      const bool is = UnicodeClasses::table().of(static_cast<char32_t>(c)) == char_class;
      wrong += is == (expected[c] == 1) ? 0 : 1;
    }
    report.check_same(name + ": " + key, wrong);
  }
}

std::shared_ptr<const BpeVocab> read_vocab(const fs::path& dir) {
  return std::make_shared<const BpeVocab>(BpeVocab::read(dir / "vocab.json", dir / "merges.txt"));
}

bool is_gpt2_file(const std::string& file) {
  return file == "gpt2.json" || file == "gpt2_files.json" || file == "gpt2_invalid_utf8.json";
}

void run_gpt2_file(const fs::path& path, const fs::path& data, const std::string& name,
                   Report& report) {
  const std::shared_ptr<const BpeVocab> vocab = read_vocab(data / "gpt2");
  Gpt2Tokenizer plain(vocab), special(vocab, SpecialText::Special);
  const Json all = read_json(path);
  if (path.filename() == "gpt2_invalid_utf8.json") {
    run_invalid(all.at("cases"), plain, name, report);
  } else if (path.filename() == "gpt2_files.json") {
    run_text_files(all.at("files"), data, plain, name, report);
  } else {
    check_token_bytes(*vocab, all.at("token_bytes_sha256"), name, report);
    run_texts(all.at("cases"), plain, name, report);
    run_texts(all.at("cases_with_special_token"), special, name + ": as special", report);
    run_decode(all.at("decode"), plain, name, report);
  }
}

// A vocabulary that another program trained: this one must read it and encode with it.
void run_trained(const fs::path& dir, const fs::path& data, const std::string& name,
                 Report& report) {
  Gpt2Tokenizer tokenizer(read_vocab(dir));
  const Json all = read_json(dir / "cases.json");
  run_texts(all.at("cases"), tokenizer, name + "/cases.json", report);
  run_text_files(all.at("files"), data, tokenizer, name + "/cases.json", report);
  run_bpe_training(dir, data, name, report);
}

// The folder with the vocabularies and texts, beside the folder of golden files.
fs::path data_folder(const fs::path& dir) {
  for (const fs::path& parent : {dir.parent_path(), dir.parent_path().parent_path()})
    if (fs::exists(parent / "data" / "gpt2")) return parent / "data";
  return {};
}

}  // namespace

void run_tokenizers(const fs::path& dir, const std::string& name, Report& report) {
  const fs::path data = data_folder(dir);
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const std::string file = path.filename().string(), case_name = name + "/" + file;
    if (path.extension() == ".md" || path.extension() == ".py") continue;
    if (file == "unicode_classes.json") {
      report.guarded(case_name, kHost,
                     [&] { run_unicode_classes(read_json(path), case_name, report); });
    } else if (file == "bert_characters.json") {
      report.guarded(case_name, kHost, [&] { run_bert_characters(path, case_name, report); });
    } else if (file.starts_with("wordpiece_")) {
      report.guarded(case_name, kHost, [&] { run_wordpiece(path, data, case_name, report); });
    } else if (file == "tokenizer_json") {
      run_tokenizer_json(path, case_name, report);
    } else if (is_gpt2_file(file)) {
      if (data.empty()) {
        report.skip(case_name, "the vocabulary in data/gpt2 is not here");
      } else {
        report.guarded(case_name, kHost, [&] { run_gpt2_file(path, data, case_name, report); });
      }
    } else if (file == "sentencepiece.json") {
      report.guarded(case_name, kHost, [&] { run_sentencepiece(path, data, case_name, report); });
    } else if (file == "sentencepiece") {
      continue;  // the models of sentencepiece.json
    } else if (fs::exists(path / "merges.txt") && fs::exists(path / "cases.json")) {
      report.guarded(case_name, kHost, [&] { run_trained(path, data, case_name, report); });
    } else if (fs::is_directory(path)) {
      std::vector<std::string> below;
      for (const fs::directory_entry& entry : fs::directory_iterator(path))
        below.push_back(entry.path().filename().string());
      std::sort(below.begin(), below.end());
      for (const std::string& each : below) report.skip(case_name + "/" + each, kNotYet);
    } else {
      report.skip(case_name, kNotYet);
    }
  }
}

}  // namespace bev::golden
