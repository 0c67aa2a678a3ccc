#include "app/generate/generation_settings.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"
#include "text/utf8.h"

namespace bev::app {

namespace {

constexpr int64_t kMostTokens = 1 << 28;

// A number of SamplingOptions that can be changed.
struct ChoiceNumber {
  std::string_view name;
  double min, max;
  bool is_whole;
  double (*get)(const SamplingOptions& choice);
  void (*set)(SamplingOptions& choice, double value);
};

constexpr std::array<ChoiceNumber, 5> kChoiceNumbers{{
    {"temperature", 0, 100, false, [](const SamplingOptions& c) { return c.temperature; },
     [](SamplingOptions& c, double value) { c.temperature = value; }},
    {"top-k", 0, kMostTokens, true, [](const SamplingOptions& c) { return double(c.top_k); },
     [](SamplingOptions& c, double value) { c.top_k = static_cast<int64_t>(value); }},
    // Megatron writes 0 where nothing is to be left out.
    {"top-p", 0, 1, false, [](const SamplingOptions& c) { return c.top_p; },
     [](SamplingOptions& c, double value) { c.top_p = value == 0 ? 1 : value; }},
    {"min-p", 0, 1, false, [](const SamplingOptions& c) { return c.min_p; },
     [](SamplingOptions& c, double value) { c.min_p = value; }},
    {"repetition-penalty", 0.01, 100, false,
     [](const SamplingOptions& c) { return c.repetition_penalty; },
     [](SamplingOptions& c, double value) { c.repetition_penalty = value; }},
}};

void read_choice(const FlagValues& flags, SamplingOptions& choice) {
  for (const ChoiceNumber& number : kChoiceNumbers) {
    std::string flag = format("--{}", number.name);
    if (number.name == "top-k") flag = given_name(flags, flag, kMegatronTopKFlag.name);
    if (number.name == "top-p") flag = given_name(flags, flag, kMegatronTopPFlag.name);
    if (!flags.has(flag)) continue;
    const auto least = static_cast<int64_t>(number.min), most = static_cast<int64_t>(number.max);
    number.set(choice, number.is_whole ? static_cast<double>(flags.integer(flag, 0, least, most))
                                       : flags.real(flag, 0, number.min, number.max));
  }
  flags.require_not_both("--greedy", "--temperature");
  if (flags.has("--greedy")) choice.temperature = 0;
}

// The encoder reads the prompt, the decoder's text is generated.
void use_source(const FlagValues& flags, std::string_view tokens, const ModelFolder& folder,
                int64_t trained, GenerationSettings& settings) {
  const int64_t positions = longest_sequence(folder, kMostTokens);
  BEV_CHECK(settings.tokens.value_or(1) <= positions, Usage,
            "{} {}: the decoder has {} positions; use {} up to {}", tokens, *settings.tokens,
            positions, tokens, positions);
  BEV_CHECK(settings.tokens != 0, Usage,
            "{} 0 generates nothing, and an encoder gives the tokens of a prompt no probabilities; "
            "use {} 1 or more",
            tokens, tokens);
  settings.source.emplace(folder, settings.context);
  const int64_t decoder = folder.config.train.decoder_sequence;
  settings.context =
      1 + settings.tokens.value_or(longest_sequence(folder, decoder > 0 ? decoder : trained));
  if (!flags.has("--ignore-eod")) settings.end = static_cast<int32_t>(folder.decoder_ids.end);
}

std::string in_range(std::string_view name, std::string_view value, double min, double max) {
  return format("{} {}: a number from {} to {} is wanted", name, in_quotes(value), min, max);
}

}  // namespace

std::string_view given_name(const FlagValues& flags, std::string_view own,
                            std::string_view megatron) {
  flags.require_not_both(own, megatron);
  return flags.has(megatron) ? megatron : own;
}

GenerationSettings generation_settings(const FlagValues& flags, const ModelFolder& folder) {
  const Config& config = folder.config;
  GenerationSettings settings;
  read_choice(flags, settings.choice);
  const std::string_view tokens = given_name(flags, kTokensFlag.name, kMegatronTokensFlag.name);
  if (flags.has(tokens)) settings.tokens = flags.integer(tokens, 0, 0, kMostTokens);
  const int64_t trained = config.train.sequence > 0 ? config.train.sequence : 1024;
  settings.most_context = longest_sequence(folder, kMostTokens);
  settings.context =
      flags.integer("--context", longest_sequence(folder, trained), 1, settings.most_context);
  settings.seed = static_cast<uint64_t>(flags.integer("--seed", 1234, 0, INT64_MAX));
  settings.end = flags.has("--ignore-eod") ? -1 : static_cast<int32_t>(config.data.eod);
  settings.stops = flags.texts("--stop");
  for (const std::string& stop : settings.stops)
    BEV_CHECK(!stop.empty() && valid_utf8_prefix(stop) == stop.size(), Usage,
              "--stop {}: a text of at least one character in UTF-8 is wanted", in_quotes(stop));
  settings.logprobs = flags.has("--logprobs");
  if (folder.is_t5()) use_source(flags, tokens, folder, trained, settings);
  BEV_CHECK(settings.tokens != 0 || settings.logprobs, Usage,
            "{} 0 generates nothing; legal are 1 and more, and 0 with --logprobs, which then has "
            "those of the prompt",
            tokens);
  return settings;
}

std::string change_setting(GenerationSettings& settings, std::string_view name,
                           std::string_view value) {
  const auto number = std::find_if(kChoiceNumbers.begin(), kChoiceNumbers.end(),
                                   [&](const ChoiceNumber& n) { return n.name == name; });
  if (number != kChoiceNumbers.end()) {
    const auto real = parse_real(value);
    const bool is_whole = parse_integer(value).has_value();
    if (!real || *real < number->min || *real > number->max || (number->is_whole && !is_whole))
      return in_range(name, value, number->min, number->max);
    number->set(settings.choice, *real);
    return {};
  }
  const auto whole = parse_integer(value);
  if (name == "tokens") {
    if (!whole || *whole < 1 || *whole > settings.context)
      return in_range(name, value, 1, static_cast<double>(settings.context));
    settings.tokens = whole;
    return {};
  }
  if (name == "seed") {
    if (!whole || *whole < 0) return format("seed {}: a whole number is wanted", in_quotes(value));
    settings.seed = static_cast<uint64_t>(*whole);
    return {};
  }
  std::vector<std::string> names{"tokens", "seed"};
  for (const ChoiceNumber& n : kChoiceNumbers) names.emplace_back(n.name);
  const std::string near = nearest(std::string(name), names);
  return format("there is no setting {}; {}", in_quotes(name),
                near.empty() ? format("there are {}", fmt::join(names, ", "))
                             : format("did you mean {}?", near));
}

std::string settings_text(const GenerationSettings& settings) {
  std::string text;
  for (const ChoiceNumber& number : kChoiceNumbers)
    text += format("{:<18} {}\n", number.name, number.get(settings.choice));
  text += format("{:<18} {}\n", "tokens",
                 settings.tokens ? std::to_string(*settings.tokens) : "what fits, up to 256");
  return text + format("{:<18} {}\n", "seed", settings.seed);
}

}  // namespace bev::app
