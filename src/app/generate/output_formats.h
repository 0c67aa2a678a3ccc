// How generated texts are written down.
#pragma once

#include <string>

#include "app/generate/generation_prompts.h"
#include "app/generate/text_generation.h"

namespace bev::app {

// Where results go; empty: stdout. Usage error for flags that contradict each other. REQUIRES: the
// verb has --genfile, --json, --sample-input-file and --sample-output-file.
std::string result_path(const FlagValues& flags);

// The prompt, unless an encoder reads it, its continuation and a newline.
std::string as_line(const Prompt& prompt, const GeneratedText& text);

// A JSON object on one line, with stable keys (docs/generation.md). `logprobs`: with the tokens and
// their log-probabilities.
std::string as_json_line(const Prompt& prompt, const GeneratedText& text, bool logprobs);

// A token per line: log-probability, id, the token (where there is a tokenizer). A line with the
// sum ends each of the two parts, prompt and continuation. A prompt that an encoder reads has none.
std::string as_token_table(const Prompt& prompt, const GeneratedText& text,
                           const Tokenizer* tokenizer);

// As Megatron-LM's generate_samples wrote the continuations of the lines of a file.
std::string as_megatron_sample(const Prompt& prompt, const GeneratedText& text);

}  // namespace bev::app
