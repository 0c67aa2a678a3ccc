// The prompts of `bevatron generate`, and what is asked of the model for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/cli_flags.h"
#include "app/generate/generation_settings.h"
#include "app/launch/inference_ranks.h"
#include "infer/generation_request.h"
#include "infer/model_folder.h"
#include "text/tokenizer.h"

namespace bev::app {

inline constexpr VerbFlag kPromptFlag{"--prompt", "TEXT",
                                      "what to continue; without it the start of a document"};
inline constexpr VerbFlag kPromptFileFlag{
    "--prompt-file", "FILE",
    "the same from a file ('-': stdin); a newline at its very end does not count"};
inline constexpr VerbFlag kPromptIdsFlag{
    "--prompt-ids", "ID ...", "the same as token ids, for models without a tokenizer here"};
inline constexpr VerbFlag kSampleInputFlag{"--sample-input-file", "FILE",
                                           "a prompt in each line, all of which are continued"};

// One text to continue.
struct Prompt {
  std::string name{};  // for messages: "the prompt", "line 3 of prompts.txt"
  std::string text{};
  std::vector<int32_t> ids{};
  bool is_continued = true;  // false: an encoder reads it, and the output starts without it

  // The beginning of the generated text.
  std::string_view begun() const { return is_continued ? text : std::string_view(); }
};

// What the flags name, as texts: one, or those of a file with a line each. Nothing for --prompt-ids
// and for stdin, which is read with stdin_prompt(): of several ranks only one has it.
// Usage error when two flags name prompts, Data error when what they name is empty. REQUIRES: the
// verb has all flags above.
std::optional<std::vector<Prompt>> named_prompts(const FlagValues& flags);
bool reads_stdin(const FlagValues& flags);
Prompt stdin_prompt(const std::string& text);
// The prompt that stdin of the first rank holds, on every rank. Collective.
Prompt piped_prompt(const RankContext& place);
Prompt ids_prompt(const FlagValues& flags, const ModelFolder& folder);

// Fills in the ids: the start of a document, then the text; for a T5 the encoder's text. Usage
// error when there is nothing to continue or the text needs a tokenizer and there is none (null).
void encode_prompt(Prompt& prompt, const ModelFolder& folder, Tokenizer* tokenizer);

// ResumePlan number `sample` of the prompt. Usage error where it does not fit the context.
GenerationRequest request_for(const Prompt& prompt, const GenerationSettings& settings,
                              int64_t sample);

}  // namespace bev::app
