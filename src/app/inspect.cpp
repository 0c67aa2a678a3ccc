// bevatron inspect: says what a file or folder is and what is in it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <vector>

#include "app/inspect_samples.h"
#include "app/own_flags.h"
#include "app/verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "checkpoint/huggingface_config.h"
#include "checkpoint/safetensors.h"
#include "config/load.h"
#include "config/print.h"
#include "data/token_file.h"
#include "infer/loaded_model.h"
#include "text/byte_tokenizer.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

constexpr std::array<OwnFlag, 3> kFlags{{
    {"--document", "N", "show this document of a token file [default: the first]"},
    {"--tokens", "N", "how many of its tokens are shown [default: 16]"},
    {"--bytes", "", "show the tokens of a token file as text too: the ids are bytes"},
}};

void print_row(std::string_view name, const std::string& value) {
  fmt::print("{:<14}{}\n", name, value);
}

void inspect_tokens(const fs::path& path, const FlagValues& flags) {
  const TokenFile file(path);
  const TokenIndex& index = file.index();
  int64_t shortest = index.sequences() > 0 ? INT64_MAX : 0, longest = 0, empty = 0;
  for (int64_t i = 0; i < index.sequences(); ++i) {
    shortest = std::min(shortest, index.length(i));
    longest = std::max(longest, index.length(i));
  }
  for (int64_t i = 0; i < index.documents(); ++i)
    empty += index.document_begin(i) == index.document_begin(i + 1) ? 1 : 0;
  print_row("token file", file.prefix().string());
  print_row("type", std::string(name_of(index.type())));
  print_row("documents",
            format("{} ({} without a sequence)", with_commas(index.documents()), empty));
  print_row("sequences",
            format("{} of {} to {} tokens", with_commas(index.sequences()), shortest, longest));
  print_row("tokens", with_commas(index.tokens()));
  if (index.tokens() > 0) print_row("largest id", with_commas(file.largest_id()));
  if (index.documents() == 0 || index.tokens() == 0) return;

  const int64_t document = flags.integer("--document", 0, 0, index.documents() - 1);
  const int64_t begin = file.stream_begin(index.document_begin(document));
  const int64_t end = file.stream_begin(index.document_begin(document + 1));
  const int64_t count = std::min(end - begin, flags.integer("--tokens", 16, 0, 1 << 24));
  std::vector<int32_t> ids(static_cast<size_t>(count));
  file.read(begin, ids, INT32_MAX);
  std::string text;
  for (const int32_t id : ids) text += format("{}{}", text.empty() ? "" : " ", id);
  if (count < end - begin) text += " ...";
  print_row(format("document {}", document), text);
  if (flags.has("--bytes")) print_row("text", in_quotes(ByteTokenizer().decode(ids)));
}

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
  for (const StoredTensor& tensor : reader.tensors())
    fmt::print("  {:<56} {:<5} {}\n", tensor.name, tensor.dtype_name, to_string(tensor.shape));
}

void inspect_model(const fs::path& path) {
  const ModelFolder folder = open_model_folder(path);
  const HuggingFaceModel model = read_huggingface_config(folder.weights);
  const ModelConfig& m = model.model;
  print_row(folder.is_run ? "run" : "model", path.string());
  print_row("family", std::string(name_of(model.family)));
  print_row("shape", format("{} layers, width {}, {} heads, {} key/value heads", m.layers, m.width,
                            m.heads, m.kv_heads > 0 ? m.kv_heads : m.heads));
  print_row("vocabulary", format("{} ids, {}", with_commas(m.vocab),
                                 m.tied ? "output layer tied" : "output layer of its own"));
  print_row("positions", format("{}, {}", with_commas(m.positions), name_of_choice(m.position)));
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

void inspect_config(const fs::path& path) {
  Findings findings;
  const std::vector<std::string> args{path.string()};
  const LoadedConfig loaded = load_unchecked(args, {}, Purpose::Plan, findings);
  throw_if_any(findings.problems);
  fmt::print("{}", print_config(loaded.config, loaded.origins));
}

}  // namespace

int inspect(std::span<const std::string> args) {
  if (!args.empty() && args.front() == "samples") return inspect_samples(args.subspan(1));
  const auto flags = flags_for(
      {.name = "inspect",
       .summary = "Says what PATH is and what is in it: a token file (with or without "
                  ".bin or .idx), a configuration (.toml), a folder with a model, a "
                  "safetensors file. `bevatron inspect samples` shows what a training will see.",
       .flags = kFlags,
       .positional = "PATH",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  const fs::path path = flags->positional().front();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    inspect_model(path);
  } else if (path.extension() == ".toml") {
    inspect_config(path);
  } else if (path.extension() == ".safetensors") {
    inspect_safetensors(path);
  } else if (path.extension() == ".bin" || path.extension() == ".idx" ||
             fs::exists(idx_path(path), ignored)) {
    inspect_tokens(path, *flags);
  } else {
    BEV_CHECK(fs::exists(path, ignored), Data, "there is neither {} nor {}", path.string(),
              idx_path(path).string());
    throw Error(ErrorKind::Data,
                format("{} is nothing this program knows: a token file (PREFIX.bin and "
                       "PREFIX.idx), a configuration (.toml), a folder with a model or a "
                       ".safetensors file",
                       path.string()));
  }
  return 0;
}

}  // namespace bev::app
