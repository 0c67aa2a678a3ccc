// Preprocessing and merging as Megatron-LM's tools did it: the program itself is run with their
// arguments, and its files must have the digests that the manifest states.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/own_program.h"
#include "golden_runner/scratch_folder.h"
#include "golden_runner/text_groups.h"
#include "text/punkt/punkt_splitter.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

std::string digest_of(const fs::path& file) { return sha256(MappedFile(file).bytes()); }

// A workplace like the one the tool was run in.
void furnish(const fs::path& scratch, const fs::path& dir) {
  for (const fs::directory_entry& entry : fs::directory_iterator(dir))
    if (entry.path().extension() == ".jsonl")
      fs::create_symlink(entry.path(), scratch / entry.path().filename());
  if (const fs::path data = vocabulary_folder(dir); !data.empty())
    for (const fs::directory_entry& entry : fs::directory_iterator(data))
      if (entry.is_directory())
        fs::create_directory_symlink(entry.path(), scratch / entry.path().filename());
}

void check_run(const fs::path& scratch, const std::vector<std::string>& args,
               const std::vector<std::pair<std::string, std::string>>& digests,
               const std::string& name, Report& report) {
  const int code = run_program(args, scratch);
  if (code != 0) {
    report.fail(name, kHost, format("exit code {}: {}", code, read_text(scratch / "log")));
    return;
  }
  for (const auto& [file, digest] : digests) {
    const bool same = fs::exists(scratch / file) && digest_of(scratch / file) == digest;
    report.check(name + "/" + file, kHost, same ? 0.0 : 1.0, 0.0);
  }
}

std::vector<std::pair<std::string, std::string>> digests_of(const Json& files) {
  std::vector<std::pair<std::string, std::string>> digests;
  for (const auto& [file, facts] : files.items())
    digests.emplace_back(file, facts.at("sha256").get<std::string>());
  return digests;
}

void run_merge(const fs::path& dir, const Json& run, const std::string& name, Report& report) {
  const ScratchFolder scratch;
  const auto argv = run.at("argv").get<std::vector<std::string>>();
  const fs::path parts = scratch.path() / argv.at(1);
  fs::create_directories(parts);
  for (const Json& part : run.at("parts"))
    for (const char* ending : {".bin", ".idx"}) {
      const std::string file = part.get<std::string>() + ending;
      if (!fs::exists(dir / file)) return report.skip(name, "its parts are not here");
      fs::create_symlink(dir / file, parts / file);
    }
  std::vector<std::string> args{"merge"};
  args.insert(args.end(), argv.begin(), argv.end());
  check_run(scratch.path(), args, digests_of(run.at("files")), name, report);
}

// NLTK's Punkt parameters for English, in the golden families of one of the folders above;
// empty: none.
fs::path punkt_folder(const fs::path& dir) {
  for (fs::path parent = dir; parent != parent.parent_path(); parent = parent.parent_path()) {
    const fs::path folder = parent / "families" / "punkt" / "punkt_tab";
    if (fs::exists(folder / "english")) return folder;
  }
  return {};
}

bool needs_gpt2(const std::vector<std::string>& argv) {
  for (const std::string& arg : argv)
    if (arg.starts_with("gpt2/")) return true;
  return false;
}

void run_preprocess(const fs::path& dir, const Json& run, const std::string& name, Report& report) {
  auto argv = run.at("argv").get<std::vector<std::string>>();
  if (needs_gpt2(argv) && vocabulary_folder(dir).empty())
    return report.skip(name, "the vocabulary gpt2/vocab.json is not here");
  // Sentences were found by another program; its own file of sentences is what we are given.
  if (run.contains("sentence_file")) {
    const Json& sentences = run.at("sentence_file");
    const fs::path file = dir / sentences.at("name").get<std::string>();
    if (!fs::exists(file) || digest_of(file) != sentences.at("sha256").get<std::string>())
      return report.skip(name, "its sentences, found by NLTK's punkt, are not here");
    argv.at(1) = file.filename().string();
  }
  const ScratchFolder scratch;
  furnish(scratch.path(), dir);
  std::vector<std::string> args{"preprocess"};
  args.insert(args.end(), argv.begin(), argv.end());
  check_run(scratch.path(), args, digests_of(run.at("files")), name, report);
}

// The sentences of each document against those in the file of the other tool.
void check_sentences(const fs::path& dir, const Json& run, const fs::path& punkt,
                     const std::string& name, Report& report) {
  const auto argv = run.at("argv").get<std::vector<std::string>>();
  const Json& sentences = run.at("sentence_file");
  const fs::path file = dir / sentences.at("name").get<std::string>();
  if (!fs::exists(file) || digest_of(file) != sentences.at("sha256").get<std::string>())
    return report.skip(name, "its sentences are not here");
  const bool keeps = std::find(argv.begin(), argv.end(), "--keep-newlines") != argv.end();
  PunktSplitter splitter(
      std::make_shared<const PunktParameters>(read_punkt_folder(punkt / "english")));
  const std::string texts = read_text(dir / argv.at(1)), expected = read_text(file);
  const std::vector<std::string_view> lines = lines_of(texts), expected_lines = lines_of(expected);
  size_t wrong = lines.size() == expected_lines.size() ? 0 : 1, count = 0;
  for (size_t i = 0; i < std::min(lines.size(), expected_lines.size()); ++i) {
    const auto text = Json::parse(lines[i]).at("text").get<std::string>();
    std::vector<std::string_view> found;
    splitter.split(text, keeps ? SentenceBlanks::Keep : SentenceBlanks::Trim, found);
    const Json others = Json::parse(expected_lines[i]).at("text");
    wrong += Json(found) == others ? 0 : 1;
    count += others.size();
  }
  report.check_same(format("{} ({} documents, {} sentences)", name, lines.size(), count), wrong);
}

// Splits the sentences with NLTK's parameters instead of reading those of the other tool.
void run_sentence_splitting(const fs::path& dir, const Json& run, const std::string& name,
                            Report& report) {
  auto argv = run.at("argv").get<std::vector<std::string>>();
  const fs::path punkt = punkt_folder(dir);
  if (punkt.empty()) return report.skip(name, "NLTK's Punkt parameters for English are not here");
  if (needs_gpt2(argv) && vocabulary_folder(dir).empty())
    return report.skip(name, "the vocabulary gpt2/vocab.json is not here");
  check_sentences(dir, run, punkt, name, report);
  const ScratchFolder scratch;
  furnish(scratch.path(), dir);
  argv.insert(argv.begin(), "preprocess");
  argv.insert(argv.end(), {"--punkt", punkt.string()});
  check_run(scratch.path(), argv, digests_of(run.at("files")), name, report);
}

void run_classic(const fs::path& dir, const Json& run, const std::string& name, Report& report) {
  const auto argv = run.at("argv").get<std::vector<std::string>>();
  if (needs_gpt2(argv) && vocabulary_folder(dir).empty())
    return report.skip(name, "the vocabulary gpt2/vocab.json is not here");
  const ScratchFolder scratch;
  furnish(scratch.path(), dir);
  std::vector<std::string> args{"preprocess"};
  args.insert(args.end(), argv.begin(), argv.end());
  args.insert(args.end(), {"--compat", "classic"});
  std::vector<std::pair<std::string, std::string>> digests;
  for (const auto& [ending, digest] : run.at("sha256").items())
    digests.emplace_back("classic_text_document." + ending, digest.get<std::string>());
  check_run(scratch.path(), args, digests, name, report);
}

}  // namespace

void run_tools(const fs::path& dir, const std::string& name, Report& report) {
  const Json manifest = read_json(dir / "manifest.json");
  for (const Json& run : manifest.at("runs")) {
    const std::string case_name = name + "/" + run.at("name").get<std::string>() + ": our files";
    report.guarded(case_name, kHost, [&] {
      if (run.value("tool", "preprocess_data.py") == "merge_datasets.py")
        run_merge(dir, run, case_name, report);
      else
        run_preprocess(dir, run, case_name, report);
    });
    if (!run.contains("sentence_file")) continue;
    const std::string split_name = name + "/" + run.at("name").get<std::string>() + ": sentences";
    report.guarded(split_name, kHost,
                   [&] { run_sentence_splitting(dir, run, split_name, report); });
  }
  if (!manifest.contains("classic")) return;
  const std::string case_name = name + "/classic: our files";
  report.guarded(case_name, kHost,
                 [&] { run_classic(dir, manifest.at("classic"), case_name, report); });
}

}  // namespace bev::golden
