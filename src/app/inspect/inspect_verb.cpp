// bevatron inspect: says what a file or folder is and what is in it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <vector>

#include "app/cli/verbs.h"
#include "app/inspect/inspect_verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text_table.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/safetensors.h"
#include "config/parse/load.h"
#include "config/parse/toml.h"
#include "config/resolve.h"
#include "convert/huggingface/huggingface_config.h"
#include "data/token_file.h"
#include "infer/loaded_model.h"
#include "train/run_directory.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

void inspect_safetensors(const fs::path& path) {
  const SafetensorsReader reader(path);
  size_t bytes = 0;
  int64_t elements = 0;
  std::map<std::string, int64_t> types;
  for (const StoredTensor& tensor : reader.tensors()) {
    bytes += tensor.bytes;
    elements += tensor.shape.elements();
    ++types[tensor.dtype_name];
  }
  std::string by_type;
  for (const auto& [type, count] : types)
    by_type += format("{}{} {}", by_type.empty() ? "" : ", ", count, type);
  print_row("safetensors", path.string());
  print_row("tensors", by_type);
  print_row("elements",
            format("{} in {}", with_commas(elements), as_bytes(static_cast<double>(bytes))));
  TextTable row("  {:<56} {:<5} {}");
  for (const StoredTensor& tensor : reader.tensors())
    row(tensor.name, tensor.dtype_name, to_string(tensor.shape));
  fmt::print("{}", row.text);
}

void inspect_model(const fs::path& path) {
  const ModelFolder folder = open_model_folder(path);
  const ModelConfig& m = folder.config.model;
  if (folder.is_checkpoint) {
    print_row("checkpoint", folder.weights.string());
  } else {
    print_row(folder.is_run ? "run" : "model", path.string());
    print_row("family", std::string(name_of(read_huggingface_config(folder.weights).family)));
  }
  const ModelShape shape = resolve_model(folder.config);
  const std::string layers = shape.decoder_layers > 0
                                 ? format("{} + {} layers", shape.layers, shape.decoder_layers)
                                 : format("{} layers", shape.layers);
  print_row("shape", format("{}, width {}, {} heads, {} key/value heads", layers, shape.width,
                            shape.heads, shape.kv_heads));
  print_row("vocabulary", format("{} ids, {}", with_commas(m.vocab),
                                 m.tied ? "output layer tied" : "output layer of its own"));
  print_row("positions",
            m.position == PositionKind::Relative
                ? format("relative, {} values for each head, up to a distance of {}",
                         m.relative_buckets, m.relative_distance)
                : format("{}, {}", with_commas(m.positions), name_of_choice(m.position)));
  if (folder.is_run) {
    const TrainConfig& t = folder.config.train;
    print_row("trained", format("{} iterations of {} x {} tokens, tokenizer {}", t.iterations,
                                t.global_batch > 0 ? t.global_batch : t.micro_batch, t.sequence,
                                name_of_choice(folder.config.data.tokenizer)));
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder.weights))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) inspect_safetensors(file);
}

// Of a run both its model, once it has one, and its checkpoints.
void inspect_folder(const fs::path& path, const FlagValues& flags) {
  const bool has_checkpoints = !find_checkpoints(path).empty();
  if (!has_checkpoints || RunDirectory::is_run(path)) inspect_model(path);
  if (has_checkpoints) inspect_checkpoint(path, !flags.has("--no-norms"));
}

void inspect_config(const fs::path& path) {
  Findings findings;
  const std::vector<std::string> args{path.string()};
  const LoadedConfig loaded = load_unchecked(args, {}, Purpose::Plan, findings);
  throw_if_any(findings.problems);
  fmt::print("{}", print_config(loaded.config, loaded.origins));
}

}  // namespace

void print_row(std::string_view name, const std::string& value) {
  fmt::print("{:<13} {}\n", name, value);
}

int inspect(std::span<const std::string> args) {
  if (!args.empty() && args.front() == "samples") return inspect_samples(args.subspan(1));
  const auto flags =
      flags_for({.name = "inspect",
                 .summary = "Says what PATH is and what is in it: a token file (with or without "
                            ".bin or .idx), a configuration (.toml), a checkpoint or a folder of "
                            "checkpoints, a folder with a model, a safetensors file. `bevatron "
                            "inspect samples` shows what a training will see.",
                 .flags = kInspectFlags,
                 .positional = "PATH",
                 .min_positional = 1,
                 .max_positional = 1},
                args);
  if (!flags) return 0;
  const fs::path path = flags->positional().front();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    inspect_folder(path, *flags);
  } else if (path.extension() == ".toml") {
    inspect_config(path);
  } else if (path.extension() == ".safetensors") {
    inspect_safetensors(path);
  } else if (path.extension() == ".bin" || path.extension() == ".idx" ||
             fs::exists(idx_path(path), ignored)) {
    inspect_tokens(path.string(), *flags);
  } else {
    BEV_CHECK(fs::exists(path, ignored), Data, "there is neither {} nor {}", path.string(),
              idx_path(path).string());
    throw Error(ErrorKind::Data,
                format("{} is nothing this program knows: a token file (PREFIX.bin and "
                       "PREFIX.idx), a configuration (.toml), a folder with a model or "
                       "checkpoints or a .safetensors file",
                       path.string()));
  }
  return 0;
}

}  // namespace bev::app
