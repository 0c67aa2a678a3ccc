#include "app/generate/output_formats.h"

#include "base/json.h"

namespace bev::app {

namespace {

Json logprobs_of(const std::vector<ScoredToken>& tokens) {
  Json values = Json::array();
  for (const ScoredToken& token : tokens) values.push_back(token.logprob);
  return values;
}

void add_tokens(std::string& table, std::string_view what, const std::vector<ScoredToken>& tokens,
                const Tokenizer* tokenizer) {
  double sum = 0;
  for (const ScoredToken& token : tokens) {
    sum += token.logprob;
    table += format("{:>10.4f} {:>7}", token.logprob, token.id);
    if (tokenizer != nullptr) table += format("  {}", in_quotes(tokenizer->decode({&token.id, 1})));
    table += '\n';
  }
  table += format("{:>10.4f}  {}, {} tokens\n", sum, what, tokens.size());
}

}  // namespace

std::string result_path(const FlagValues& flags) {
  flags.require_with("--sample-output-file", "--sample-input-file");
  flags.require_not_both("--genfile", "--sample-input-file");
  flags.require_not_both("--genfile", "--json");
  if (flags.has("--genfile")) return flags.path("--genfile");
  if (!flags.has("--sample-input-file")) return {};
  return flags.path("--sample-output-file", flags.path("--sample-input-file") + ".out");
}

std::string as_line(const Prompt& prompt, const GeneratedText& text) {
  return format("{}{}\n", prompt.begun(), text.text);
}

std::string as_json_line(const Prompt& prompt, const GeneratedText& text, bool logprobs) {
  Json json{{"prompt", prompt.text},
            {"text", format("{}{}", prompt.begun(), text.text)},
            {"continuation", text.text},
            {"length", text.tokens.size()},
            {"finished", text.end == TextEnd::End},
            {"finish", kTextEndNames[static_cast<size_t>(text.end)]}};
  Json ids = Json::array();
  for (const ScoredToken& token : text.tokens) ids.push_back(token.id);
  json["ids"] = ids;
  json["prompt_ids"] = prompt.ids;
  if (logprobs) {
    json["logprobs"] = logprobs_of(text.tokens);
    json["prompt_logprobs"] = logprobs_of(text.prompt);
  }
  if (text.beam) {
    json["logprob"] = text.beam->logprob;
    json["score"] = text.beam->score;
  }
  // A prompt can hold any bytes; what is not UTF-8 is replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string as_token_table(const Prompt& prompt, const GeneratedText& text,
                           const Tokenizer* tokenizer) {
  std::string table;
  if (prompt.is_continued)
    add_tokens(table, "the prompt from its second token on", text.prompt, tokenizer);
  if (!text.tokens.empty()) add_tokens(table, "the continuation", text.tokens, tokenizer);
  return table;
}

std::string as_megatron_sample(const Prompt& prompt, const GeneratedText& text) {
  // The prompt is a line with its newline.
  return format("\nContext:{}\n\n\nMegatron-LM:{}\n", prompt.text, text.text);
}

}  // namespace bev::app
