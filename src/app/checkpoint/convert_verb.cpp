// bevatron convert: models between Hugging Face's format, checkpoints of Megatron-LM and our own.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>

#include "app/cli/build_info.h"
#include "app/cli/cli_flags.h"
#include "app/cli/console.h"
#include "app/cli/dispatch.h"
#include "app/cli/progress_line.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "convert/convert.h"

namespace bev::app {

namespace {

// One line that is there from the moment the work is known.
class Progress {
 public:
  ConversionOptions options() {
    ConversionOptions options;
    options.program = format("bevatron {}", program_version());
    options.on_start = [this](int64_t bytes) { line_.emplace("converting", bytes, "bytes"); };
    options.on_progress = [this](size_t bytes) {
      done_ += static_cast<int64_t>(bytes);
      if (line_) line_->update(done_);
    };
    return options;
  }

 private:
  std::optional<ProgressLine> line_;
  int64_t done_ = 0;
};

void print_result(const Conversion& result) {
  for (const std::string& note : result.notes) print_stderr("note: {}\n", note);
  fmt::print("{}: {} parameters, {}\n", result.output.string(), with_commas(result.parameters),
             as_bytes(static_cast<double>(result.bytes)));
}

int from_huggingface(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "convert hf-to-bev",
       .summary =
           "Makes a checkpoint OUT/release of a model in Hugging Face's format (config.json "
           "and safetensors): gpt2, llama, mistral, qwen2, qwen3, bert, t5. Values are copied bit "
           "for bit, the tokenizer's files too.",
       .flags = {},
       .positional = "HF_DIR OUT",
       .min_positional = 2,
       .max_positional = 2},
      args);
  if (!flags) return 0;
  Progress progress;
  print_result(huggingface_to_checkpoint(flags->positional()[0], flags->positional()[1],
                                         progress.options()));
  return 0;
}

constexpr std::array<VerbFlag, 2> kToHuggingFace{{
    {"--max-shard-size", "BYTES", "a larger model is divided into several files [default: 5GB]"},
    {"--dtype", "NAME",
     "bf16, f16 or f32 [default: as stored]; f32 takes the optimizer's more exact copy where the "
     "checkpoint has one"},
}};

int to_huggingface(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "convert bev-to-hf",
       .summary =
           "Makes a folder OUT in Hugging Face's format of a checkpoint, which may be of any "
           "layout: CKPT is one, a folder of checkpoints or the folder of a run; of several "
           "the newest good one is taken.",
       .flags = kToHuggingFace,
       .positional = "CKPT OUT",
       .min_positional = 2,
       .max_positional = 2},
      args);
  if (!flags) return 0;
  constexpr std::array<std::string_view, 3> kNames{"bf16", "f16", "f32"};
  constexpr std::array<DType, 3> kTypes{DType::bf16, DType::f16, DType::f32};
  HuggingFaceExport how;
  how.most_shard_bytes = static_cast<size_t>(flags->size("--max-shard-size",
                                                         static_cast<int64_t>(how.most_shard_bytes),
                                                         1, std::numeric_limits<int64_t>::max()));
  if (flags->has("--dtype")) how.dtype = kTypes[flags->choice("--dtype", 0, kNames)];
  Progress progress;
  print_result(checkpoint_to_huggingface(flags->positional()[0], flags->positional()[1], how,
                                         progress.options()));
  return 0;
}

constexpr std::array<VerbFlag, 1> kFromMegatron{{
    {"--vocab-size", "N",
     "tokens in the vocabulary without padding [default: as megatron.json says, else all rows]"},
}};

int from_megatron(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "convert megatron-to-bev",
       .summary =
           "Makes a checkpoint OUT/release of a GPT, BERT or T5 that Megatron-LM trained, on any "
           "number of tensor and pipeline ranks. DIR is the output of tools/megatron_export.py: "
           "megatron.json and a safetensors file per rank.",
       .flags = kFromMegatron,
       .positional = "DIR OUT",
       .min_positional = 2,
       .max_positional = 2},
      args);
  if (!flags) return 0;
  std::optional<int64_t> vocab;
  if (flags->has("--vocab-size")) vocab = flags->integer("--vocab-size", 0, 1, 1 << 28);
  Progress progress;
  print_result(megatron_to_checkpoint(flags->positional()[0], flags->positional()[1], vocab,
                                      progress.options()));
  return 0;
}

constexpr std::array kConvertParts{
    Verb{"hf-to-bev", "a model in Hugging Face's format to a checkpoint", from_huggingface},
    Verb{"bev-to-hf", "a checkpoint to Hugging Face's format", to_huggingface},
    Verb{"megatron-to-bev", "a model that Megatron-LM trained to a checkpoint", from_megatron},
};

}  // namespace

int convert(std::span<const std::string> args) {
  return run_part({.name = "convert",
                   .parts = kConvertParts,
                   .arguments = "FROM OUT",
                   .footer = "`bevatron convert bev-to-hf --help` explains its flags\n"},
                  args);
}

}  // namespace bev::app
