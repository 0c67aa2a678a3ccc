// bevatron-golden DIR: compares this program with numbers made by others (PyTorch, Megatron-LM).
// DIR holds models/, tokenizers/, megatron/, or is one of them. One line per case, then the sum;
// exit code 1 when a case failed, 2 when there is nothing to compare.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "golden_runner/cases.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

std::vector<fs::path> sorted_entries(const fs::path& dir) {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// What says how the numbers were made is no case.
bool is_documentation(const fs::path& path) {
  return path.extension() == ".md" || path.extension() == ".py" || path.filename() == "meta.json";
}

std::string name_below(const std::string& parent, const fs::path& path) {
  return (parent.empty() ? "" : parent + "/") + path.filename().string();
}

void run_models(const fs::path& dir, const std::string& name, Report& report) {
  for (const fs::path& path : sorted_entries(dir)) {
    const std::string case_name = name_below(name, path);
    if (fs::exists(path / "config.json")) {
      run_model(path, case_name, report);
    } else if (path.filename() == "ops.safetensors") {
      report.guarded(case_name, "host", [&] { run_ops(path, case_name, report); });
    } else if (!is_documentation(path)) {
      report.skip(case_name, "unknown file");
    }
  }
}

void run_megatron(const fs::path& dir, const std::string& name, Report& report) {
  for (const fs::path& path : sorted_entries(dir)) {
    const std::string case_name = name_below(name, path);
    const std::string file = path.filename().string();
    if (file == "lr_schedules.json") {
      report.guarded(case_name, "host", [&] { run_schedules(path, case_name, report); });
    } else if (file == "vocab_padding.json") {
      report.guarded(case_name, "host", [&] { run_vocab_padding(path, case_name, report); });
    } else if (file.starts_with("flags") && file.ends_with(".json")) {
      report.guarded(case_name, "host", [&] { run_flags(path, case_name, report); });
    } else if (file == "commands.json" || file == "example_commands.json") {
      report.guarded(case_name, "host", [&] { run_commands(path, case_name, report); });
    } else if (file == "rampup.json") {
      report.guarded(case_name, "host", [&] { run_rampup(path, case_name, report); });
    } else if (file == "loss_scale.json") {
      report.guarded(case_name, "host", [&] { run_loss_scale(path, case_name, report); });
    } else if (fs::exists(path / "manifest.json")) {
      report.guarded(case_name, "host", [&] { run_token_files(path, case_name, report); });
    } else if (fs::exists(path / "splits.json")) {
      report.guarded(case_name, "host", [&] { run_samples(path, case_name, report); });
    } else if (file != "config" && !is_documentation(path)) {
      report.skip(case_name, kNotYet);
    }
  }
}

using Runner = void (*)(const fs::path&, const std::string&, Report&);

// Folders of model families, optimizers and samples besides GPT's.
struct FamilyFolder {
  bool (*is_it)(const fs::path&);
  Runner run;
};
constexpr FamilyFolder kFamilyFolders[] = {
    {is_bert, run_bert}, {is_bert_megatron, run_bert_megatron},   {is_punkt, run_punkt},
    {is_lamb, run_lamb}, {is_masked_samples, run_masked_samples}, {is_ict, run_ict},
    {is_t5, run_t5},     {is_t5_megatron, run_t5_megatron},       {is_biencoder, run_biencoder},
};

// Null for other folders.
Runner family_runner(const fs::path& dir) {
  for (const FamilyFolder& folder : kFamilyFolders)
    if (folder.is_it(dir)) return folder.run;
  return nullptr;
}

bool holds_family(const fs::path& dir) {
  if (!fs::is_directory(dir)) return false;
  const std::vector<fs::path> entries = sorted_entries(dir);
  return std::any_of(entries.begin(), entries.end(),
                     [](const fs::path& path) { return family_runner(path) != nullptr; });
}

void run_families(const fs::path& dir, const std::string& name, Report& report) {
  for (const fs::path& path : sorted_entries(dir)) {
    const std::string case_name = name_below(name, path);
    if (const Runner runner = family_runner(path); runner != nullptr) {
      runner(path, case_name, report);
    } else if (holds_family(path)) {
      run_families(path, case_name, report);
    } else if (!is_documentation(path)) {
      report.skip(case_name, kNotYet);
    }
  }
}

// What kind of folder it is, by what lies in it.
Runner runner_of(const fs::path& dir) {
  for (const char* file :
       {"lr_schedules.json", "vocab_padding.json", "rampup.json", "flags.json"}) {
    if (fs::exists(dir / file)) return run_megatron;
  }
  // Some have files that others know, too.
  if (const Runner runner = family_runner(dir); runner != nullptr) return runner;
  if (fs::exists(dir / "manifest.json")) return run_token_files;
  if (fs::exists(dir / "splits.json")) return run_samples;
  if (fs::exists(dir / "unicode_classes.json")) return run_tokenizers;
  if (fs::exists(dir / "ops.safetensors")) return run_models;
  if (holds_family(dir)) return run_families;
  for (const fs::path& path : sorted_entries(dir)) {
    if (fs::exists(path / "config.json") && fs::exists(path / "tokens.safetensors")) {
      return run_models;
    }
  }
  return nullptr;
}

// Whether there was anything this program knows.
bool run_folder(const fs::path& dir, const std::string& name, Report& report) {
  if (fs::exists(dir / "config.json") && fs::exists(dir / "tokens.safetensors")) {
    run_model(dir, name, report);
    return true;
  }
  if (const Runner runner = runner_of(dir); runner != nullptr) {
    runner(dir, name, report);
    return true;
  }
  bool found = false;
  for (const fs::path& path : sorted_entries(dir)) {
    // Texts that other folders refer to lie in data/.
    if (is_documentation(path) || path.filename() == "data") continue;
    const std::string case_name = name_below(name, path);
    const bool known = fs::is_directory(path) && runner_of(path) != nullptr;
    if (known) {
      run_folder(path, case_name, report);
    } else {
      report.skip(case_name, "unknown file");
    }
    found = found || known;
  }
  return found;
}

int run(int count, char** arguments) {
  if (count != 2 || !fs::is_directory(arguments[1])) {
    std::fprintf(stderr, "usage: bevatron-golden DIR\n");
    return 2;
  }
  Report report;
  const fs::path dir = fs::weakly_canonical(arguments[1]);
  if (!run_folder(dir, dir.filename().string(), report)) {
    std::fprintf(stderr, "%s holds no golden numbers this program knows\n", arguments[1]);
    return 2;
  }
  return report.finish();
}

}  // namespace

}  // namespace bev::golden

int main(int count, char** arguments) {
  try {
    return bev::golden::run(count, arguments);
  } catch (const bev::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return bev::exit_code(e.kind);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 70;
  }
}
