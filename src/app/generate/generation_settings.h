// How `bevatron generate` makes texts, whatever the prompts are.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/cli_flags.h"
#include "infer/generation_request.h"
#include "infer/model_folder.h"
#include "infer/source_text.h"

namespace bev::app {

struct GenerationSettings {
  SamplingOptions choice{};
  std::optional<int64_t> tokens{};  // --tokens
  int64_t context = 0;              // tokens of a prompt and its continuation; with a T5 the start
                                    // token and the continuation
  int64_t most_context = 0;         // upper bound of --context
  std::optional<SourceFormat> source{};  // only with a T5
  uint64_t seed = 1234;
  int32_t end = -1;  // the id that ends a text; -1: none
  std::vector<std::string> stops{};
  bool logprobs = false;

  // Tokens of a continuation at most: --tokens, or as many as fit, up to 256.
  int64_t tokens_after(int64_t prompt_tokens) const {
    constexpr int64_t kDefault = 256;
    return tokens.value_or(std::min(kDefault, context - prompt_tokens));
  }
};

inline constexpr VerbFlag kTokensFlag{
    "--tokens", "N", "length of a continuation at most [default: what fits, up to 256]"};
inline constexpr VerbFlag kMegatronTokensFlag{"--out-seq-length", "N",
                                              "Megatron's name of --tokens"};
inline constexpr VerbFlag kGreedyFlag{"--greedy", "", "always the likeliest: --temperature 0"};
inline constexpr VerbFlag kTemperatureFlag{
    "--temperature", "X", "above 1 bolder, below 1 safer, 0 always the likeliest [default: 1]"};
inline constexpr VerbFlag kTopKFlag{"--top-k", "N",
                                    "choose among the N likeliest; 0: among all [default: 0]"};
inline constexpr VerbFlag kTopPFlag{
    "--top-p", "X",
    "choose among the likeliest that together have this probability; 0 or 1: among all "
    "[default: 1]"};
inline constexpr VerbFlag kMegatronTopKFlag{"--top_k", "N", "Megatron's name of --top-k"};
inline constexpr VerbFlag kMegatronTopPFlag{"--top_p", "X", "Megatron's name of --top-p"};
inline constexpr VerbFlag kMinPFlag{
    "--min-p", "X",
    "choose among those with at least this part of the likeliest's probability [default: 0]"};
inline constexpr VerbFlag kRepetitionFlag{
    "--repetition-penalty", "X",
    "above 1: what the text has already becomes less likely [default: 1]"};
inline constexpr VerbFlag kSeedFlag{"--seed", "N", "of the choice [default: 1234]"};
inline constexpr VerbFlag kStopFlag{"--stop", "TEXT ...", "a text ends before the first of these"};
inline constexpr VerbFlag kIgnoreEodFlag{"--ignore-eod", "", "go on after the end of a document"};
inline constexpr VerbFlag kContextFlag{
    "--context", "N",
    "tokens of a prompt and its continuation at most; T5: of the prompt [default: as trained]"};
inline constexpr VerbFlag kLogprobsFlag{"--logprobs", "",
                                        "the log-probability of each token, of the prompt too"};

// REQUIRES: the verb has all flags above.
GenerationSettings generation_settings(const FlagValues& flags, const ModelFolder& folder);

// The flag that was given of two with the same meaning, else the first. Usage error when both were.
std::string_view given_name(const FlagValues& flags, std::string_view own,
                            std::string_view megatron);

// Sets what is called "temperature", "top-k", "top-p", "min-p", "repetition-penalty", "tokens" or
// "seed"; returns why not, in a sentence, or nothing.
std::string change_setting(GenerationSettings& settings, std::string_view name,
                           std::string_view value);
// All of these and their values, a line each.
std::string settings_text(const GenerationSettings& settings);

}  // namespace bev::app
