// Flags that several verbs share: the tokenizer, under the names of Megatron-LM, and the device.
#pragma once

#include <algorithm>
#include <array>

#include "app/cli/cli_flags.h"
#include "config/config.h"
#include "ops/make_device.h"
#include "text/open_tokenizer.h"

namespace bev::app {

inline constexpr std::array<VerbFlag, 10> kTokenizerFlags{{
    {"--tokenizer", "PATH",
     "a tokenizer.json, .model or vocab.txt, or a folder with one: what it is, is seen"},
    {"--tokenizer-type", "NAME",
     "byte, null, gpt2, huggingface, bert-lower, bert-cased, sentencepiece, gpt-sentencepiece, "
     "llama2, or what Megatron-LM calls them (GPT2BPETokenizer ...)"},
    {"--vocab-file", "FILE", "gpt2: vocab.json; bert: vocab.txt"},
    {"--merge-file", "FILE", "gpt2: merges.txt"},
    {"--tokenizer-model", "FILE",
     "huggingface: tokenizer.json or its folder; sentencepiece, llama2: the .model file"},
    {"--vocab-size", "N", "null: how many ids there are"},
    {"--vocab-extra-ids", "N", "bert, sentencepiece: tokens <extra_id_0> ... behind the others"},
    {"--null-tokenizer-eod-id", "ID", "null: the id that ends a document [default: the last]"},
    {"--tokenizer-hf-no-include-special-tokens", "",
     "leave out the tokens of the template ([CLS] ... [SEP])"},
    {"--compat", "NAME", "main or classic: whose rules count [default: main]"},
}};

// The flags of a verb with these behind them.
template <size_t N>
constexpr std::array<VerbFlag, N + kTokenizerFlags.size()> with_tokenizer_flags(
    const std::array<VerbFlag, N>& own) {
  std::array<VerbFlag, N + kTokenizerFlags.size()> all{};
  std::copy(own.begin(), own.end(), all.begin());
  std::copy(kTokenizerFlags.begin(), kTokenizerFlags.end(), all.begin() + N);
  return all;
}

bool names_tokenizer(const FlagValues& flags);

// Usage error when no tokenizer is named.
TokenizerSpec tokenizer_from_flags(const FlagValues& flags);

// The flags of verbs that use a trained model: where it runs.

inline constexpr VerbFlag kThreadsFlag{"--threads", "N", "cpu threads [default: all]"};
inline constexpr VerbFlag kDeviceFlag{"--device", "NAME",
                                      "auto, cuda, cpu or reference [default: auto]"};

inline constexpr VerbFlag kPrecisionFlag{
    "--precision", "NAME",
    "f32, bf16, fp16 or f64 [default: bf16 on cuda, f32 on cpu, f64 on reference]"};

// REQUIRES: the verb has all three flags.
inline DeviceConfig device_from_flags(const FlagValues& flags) {
  constexpr std::array kKinds{DeviceKind::Auto, DeviceKind::Cuda, DeviceKind::Cpu,
                              DeviceKind::Reference};
  std::array<std::string_view, kKinds.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = name_of_choice(kKinds[i]);
  DeviceConfig device;
  device.kind = kKinds[flags.choice("--device", 0, names)];
  if (device.kind == DeviceKind::Auto) device.kind = automatic_device();
  const auto precision = flags.choice("--precision", 0, EnumNames<Precision>::names);
  device.precision = static_cast<Precision>(precision);
  device.threads = flags.integer("--threads", 0, 0, 4096);
  return device;
}

}  // namespace bev::app
