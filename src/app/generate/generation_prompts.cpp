#include "app/generate/generation_prompts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "app/cli/stdio_files.h"
#include "base/check.h"
#include "config/parse/notation.h"

namespace bev::app {

namespace {

constexpr std::string_view kStdin = "-";

std::string_view without_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::vector<Prompt> line_prompts(const std::string& path) {
  const WholeInput input(path);
  std::vector<Prompt> prompts;
  std::string_view rest = input.text();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1);
    prompts.push_back({.name = format("line {} of {}", prompts.size() + 1, input.name()),
                       .text = std::string(without_newline(rest.substr(0, end + 1)))});
    rest.remove_prefix(end + 1);
  }
  BEV_CHECK(!prompts.empty(), Data, "{} is empty; legal: prompts, one in each line", input.name());
  return prompts;
}

// The text of one prompt.
std::string whole_prompt(std::string_view text, std::string_view name) {
  BEV_CHECK(!text.empty(), Data,
            "{} is empty; legal: a text to continue, or no prompt at all, which starts a document",
            name);
  return std::string(without_newline(text));
}

bool begins_by_itself(const std::vector<int32_t>& ids, int32_t eod, const Tokenizer* tokenizer) {
  if (ids.empty()) return false;
  return ids.front() == eod || ids.front() == tokenizer->role_id(TokenRole::Begin);
}

// What else would be legal where the context is smaller than the model allows.
std::string or_context(const GenerationSettings& settings) {
  return settings.most_context > settings.context ? ", or a larger --context" : "";
}

}  // namespace

bool reads_stdin(const FlagValues& flags) { return flags.text("--prompt-file") == kStdin; }

std::optional<std::vector<Prompt>> named_prompts(const FlagValues& flags) {
  constexpr std::array<std::string_view, 4> kSources{"--prompt", "--prompt-file", "--prompt-ids",
                                                     "--sample-input-file"};
  for (size_t i = 0; i < kSources.size(); ++i)
    for (size_t j = i + 1; j < kSources.size(); ++j)
      flags.require_not_both(kSources[i], kSources[j]);
  if (flags.has("--prompt-ids") || reads_stdin(flags)) return std::nullopt;
  if (flags.has("--sample-input-file")) return line_prompts(flags.path("--sample-input-file"));
  Prompt prompt{.name = "the prompt"};
  if (flags.has("--prompt")) prompt.text = flags.text("--prompt");
  if (flags.has("--prompt-file")) {
    const WholeInput input(flags.path("--prompt-file"));
    prompt.name = input.name();
    prompt.text = whole_prompt(input.text(), input.name());
  }
  return std::vector<Prompt>{std::move(prompt)};
}

Prompt stdin_prompt(const std::string& text) {
  return {.name = "the prompt from stdin", .text = whole_prompt(text, "stdin")};
}

Prompt piped_prompt(const RankContext& place) {
  const std::string here = place.is_first ? std::string(WholeInput("-").text()) : std::string();
  return stdin_prompt(broadcast_text(place.world, here, 0));
}

Prompt ids_prompt(const FlagValues& flags, const ModelFolder& folder) {
  const int64_t vocab = folder.config.model.vocab;
  Prompt prompt{.name = "the prompt", .is_continued = !folder.is_t5()};
  for (const std::string& text : flags.texts("--prompt-ids")) {
    const auto id = parse_integer(text);
    BEV_CHECK(id && *id >= 0 && *id < vocab, Usage, "--prompt-ids {}: an id from 0 to {} is wanted",
              text, vocab - 1);
    prompt.ids.push_back(static_cast<int32_t>(*id));
  }
  return prompt;
}

void encode_prompt(Prompt& prompt, const ModelFolder& folder, Tokenizer* tokenizer) {
  BEV_CHECK(tokenizer != nullptr || prompt.text.empty(), Usage,
            "{} is a text, but {}; --prompt-ids takes token ids", prompt.name,
            why_no_tokenizer(folder));
  if (folder.is_t5()) {
    BEV_CHECK(!prompt.text.empty(), Usage,
              "{} is empty, but the encoder of a T5 reads a text; use --prompt TEXT, --prompt-file "
              "FILE or --prompt-ids ID",
              prompt.name);
    prompt.is_continued = false;
    return encode_source(prompt.text, folder.decoder_ids, *tokenizer, prompt.ids);
  }
  if (tokenizer != nullptr) tokenizer->encode_begun(prompt.text, prompt.ids);
  // A document begins where another one has ended, unless the vocabulary begins texts by itself.
  const auto eod = static_cast<int32_t>(folder.config.data.eod);
  if (eod >= 0 && !begins_by_itself(prompt.ids, eod, tokenizer))
    prompt.ids.insert(prompt.ids.begin(), eod);
  BEV_CHECK(!prompt.ids.empty(), Usage,
            "there is nothing to continue: {} is empty, and the model does not say how a document "
            "begins; legal: --prompt TEXT or --prompt-ids ID",
            prompt.name);
}

GenerationRequest request_for(const Prompt& prompt, const GenerationSettings& settings,
                              int64_t sample) {
  GenerationRequest request{.prompt = prompt.ids,
                            .choice = settings.choice,
                            .seed = settings.seed,
                            .sample = sample,
                            .end = settings.end,
                            .score_prompt = settings.logprobs};
  if (settings.source) {
    const int64_t longest = settings.source->longest, tokens = std::ssize(prompt.ids);
    BEV_CHECK(tokens <= longest, Usage,
              "{} has {} tokens, but the encoder reads at most {}; use a shorter prompt{}",
              prompt.name, tokens, longest,
              settings.most_context > longest ? ", or a larger --context" : "");
    settings.source->apply(request);
    request.tokens = settings.tokens_after(std::ssize(request.prompt));
    return request;
  }
  const auto size = static_cast<int64_t>(prompt.ids.size());
  const int64_t wanted = settings.tokens.value_or(1);
  BEV_CHECK(size + std::min<int64_t>(wanted, 1) <= settings.context, Usage,
            "{} has {} tokens, but the model sees at most {}; legal: at most {} tokens{}",
            prompt.name, size, settings.context, settings.context - std::min<int64_t>(wanted, 1),
            or_context(settings));
  BEV_CHECK(size + wanted <= settings.context, Usage,
            "{} tokens behind the {} of {} are {}, but the model sees at most {}; legal: --tokens "
            "up to {}{}",
            wanted, size, prompt.name, size + wanted, settings.context, settings.context - size,
            or_context(settings));
  request.tokens = settings.tokens_after(size);
  return request;
}

}  // namespace bev::app
