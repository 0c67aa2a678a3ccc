#include "app/eval/eval_report.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/format.h"

namespace bev::app {

namespace {

std::string line(std::string_view name, const std::string& value) {
  return format("{:<13} {}\n", name, value);
}

// Between rulers, as Megatron-LM prints it.
std::string ruled(const std::string& text) {
  const std::string ruler(text.size() + 1, '-');
  return format("{}\n{}\n{}\n", ruler, text, ruler);
}

Json document_json(size_t number, const EvalDocument& document, const DocumentScore& score,
                   bool has_text) {
  Json out{{"document", number}, {"tokens", score.tokens}, {"nats", score.nats}};
  if (has_text) out["bytes"] = document.bytes;
  if (score.tokens > 0) out["loss"] = score.nats / static_cast<double>(score.tokens);
  return out;
}

// What each document has to itself.
std::string document_lines(const EvalText& text, const TextScore& score) {
  std::string lines;
  for (size_t i = 0; i < text.documents.size(); ++i)
    lines += document_json(i, text.documents[i], score.documents[i], text.has_text).dump() + "\n";
  return lines;
}

// The names of ChoiceBy in the order of its values.
constexpr std::array<std::pair<std::string_view, std::string_view>, kChoiceRules> kChoiceNames{{
    {"sum", "by the sum of its tokens"},
    {"byte", "by the mean over its bytes"},
    {"token", "by the mean over its tokens"},
}};

}  // namespace

EvalReport report_perplexity(const EvalText& text, const PerplexityRule& rule,
                             const TextScore& score) {
  const double loss = score.nats / static_cast<double>(score.tokens);
  EvalReport report{.words = line("data", text.name) + line("tokens", with_commas(score.tokens)) +
                             line("loss", format("{:.4f} nats per token", loss)) +
                             line("perplexity", format("{:.4f}", std::exp(loss))),
                    .json = {{"task", "perplexity"},
                             {"data", text.name},
                             {"documents", text.documents.size()},
                             {"tokens", score.tokens},
                             {"nats", score.nats},
                             {"loss", loss},
                             {"perplexity", std::exp(loss)},
                             {"length", rule.length},
                             {"overlap", rule.overlap},
                             {"rule", rule_in_words(rule)}},
                    .scores = document_lines(text, score)};
  int64_t bytes = 0, words = 0;
  for (const EvalDocument& document : text.documents) {
    bytes += document.bytes;
    words += document.words;
  }
  if (text.has_text && bytes > 0) {
    const double per_byte = score.nats / static_cast<double>(bytes);
    report.words += line("bits per byte", format("{:.4f} over {} bytes",
                                                 per_byte / std::numbers::ln2, with_commas(bytes)));
    report.json["bytes"] = bytes;
    report.json["bits_per_byte"] = per_byte / std::numbers::ln2;
    report.json["byte_perplexity"] = std::exp(per_byte);
  }
  if (text.has_text && words > 0) {
    const double per_word = score.nats / static_cast<double>(words);
    report.words += line("per word", format("perplexity {:.4f} over {} words between white space",
                                            std::exp(per_word), with_commas(words)));
    report.json["words"] = words;
    report.json["word_perplexity"] = std::exp(per_word);
  }
  report.words += line("rule", rule_in_words(rule));
  return report;
}

EvalReport report_masked(const MaskedText& text, const MaskingRule& rule, const TextScore& score) {
  const double loss = score.nats / static_cast<double>(score.tokens);
  EvalReport report{
      .words = line("data", text.name) + line("tokens", with_commas(score.tokens)) +
               line("masked loss", format("{:.4f} nats per masked token", loss)) +
               line("masked ppl", format("{:.4f}, not comparable with a causal model's perplexity",
                                         std::exp(loss))) +
               line("rule", rule_in_words(rule)),
      .json = {{"task", "masked-perplexity"},
               {"data", text.name},
               {"documents", text.documents.size()},
               {"tokens", score.tokens},
               {"nats", score.nats},
               {"masked_loss", loss},
               {"masked_perplexity", std::exp(loss)},
               {"length", rule.length},
               {"mask_every", rule.every},
               {"rule", rule_in_words(rule)}}};
  for (size_t i = 0; i < score.documents.size(); ++i) {
    const DocumentScore& each = score.documents[i];
    Json out{{"document", i}, {"tokens", each.tokens}, {"nats", each.nats}};
    if (each.tokens > 0) out["masked_loss"] = each.nats / static_cast<double>(each.tokens);
    report.scores += out.dump() + "\n";
  }
  return report;
}

EvalReport report_spans(const SpanText& text, const SpanRule& rule, const SpanScore& score) {
  const double loss = score.nats / static_cast<double>(score.targets);
  EvalReport report{
      .words = line("data", text.name) + line("tokens", with_commas(text.tokens)) +
               line("targets", format("{} in {} samples", with_commas(score.targets),
                                      with_commas(std::ssize(text.samples)))) +
               line("lm loss", format("{:.4f} nats per target", loss)) +
               line("perplexity", format("{:.4f}, not comparable with a causal model's perplexity",
                                         std::exp(loss))) +
               line("rule", rule_in_words(rule)),
      .json = {{"task", "span-perplexity"},
               {"data", text.name},
               {"documents", text.document_count},
               {"tokens", text.tokens},
               {"samples", text.samples.size()},
               {"targets", score.targets},
               {"nats", score.nats},
               {"lm_loss", loss},
               {"lm_perplexity", std::exp(loss)},
               {"length", rule.length},
               {"mask_prob", rule.masked},
               {"seed", rule.seed},
               {"without_room", text.without_room},
               {"rule", rule_in_words(rule)}}};
  if (text.without_room > 0)
    report.words +=
        line("note", format("{} samples have masked spans without room in {} decoder "
                            "tokens or without a sentinel; these spans stay in the text",
                            with_commas(text.without_room), rule.decoder_length()));
  for (size_t i = 0; i < score.samples.size(); ++i) {
    const T5Texts& texts = text.samples[i];
    const double nats = score.samples[i];
    const Json out{{"sample", i},
                   {"document", text.documents[i]},
                   {"targets", texts.targets.size()},
                   {"nats", nats},
                   {"lm_loss", nats / static_cast<double>(texts.targets.size())},
                   {"tokens", texts.encoder},
                   {"decoder_tokens", texts.decoder},
                   {"labels", texts.targets}};
    report.scores += out.dump() + "\n";
  }
  return report;
}

EvalReport report_wikitext(const WikitextCorpus& corpus, const PerplexityRule& rule,
                           const TextScore& score) {
  const WikitextScore result = wikitext_score(corpus, score.nats);
  const std::string_view rules = kDetokenizerNames[static_cast<size_t>(corpus.rules)];
  const std::string how = format(
      "the text {}; {}; a word is what single spaces separate in the file, and the first "
      "one is not counted",
      corpus.rules == Detokenizer::None ? "as it is" : format("made plain by the rules {}", rules),
      rule_in_words(rule));
  const std::string text = megatron_line(result);
  return {
      .words = ruled(text) + line("data", corpus.text.name) +
               line("tokens", with_commas(score.tokens)) +
               line("loss", format("{:.4f} nats per token", result.loss)) +
               line("perplexity", format("{:.4f}", result.perplexity())) +
               line("per word", format("perplexity {:.4f} over {} words", result.word_perplexity(),
                                       with_commas(corpus.original_words))) +
               line("rule", how),
      .json = {{"task", "wikitext"},
               {"data", corpus.text.name},
               {"detokenizer", rules},
               {"tokens", score.tokens},
               {"nats", score.nats},
               {"words", corpus.original_words},
               {"loss", result.loss},
               {"perplexity", result.perplexity()},
               {"word_perplexity", result.word_perplexity()},
               {"token_ratio", result.token_ratio},
               {"length", rule.length},
               {"overlap", rule.overlap},
               {"megatron", text},
               {"rule", how}},
      .scores = document_lines(corpus.text, score)};
}

EvalReport report_lambada(const std::string& name, LambadaRule rule, const LambadaScore& score) {
  const bool is_strict = rule == LambadaRule::LastWord;
  const std::string how =
      is_strict ? "strict: all tokens of a space and the last word must have the highest logit, "
                  "behind the tokens of the text before it"
                : "the last token of the text must have the highest logit";
  const std::string text = megatron_line(score);
  const double loss = score.nats / static_cast<double>(score.tokens);
  EvalReport report{
      .words = ruled(text) + line("data", name) +
               line("passages", with_commas(static_cast<int64_t>(score.passages.size()))) +
               line("correct", with_commas(score.correct)) +
               line("accuracy", format("{:.4f}", score.accuracy())) +
               line("tokens", with_commas(score.tokens)) +
               line("loss", format("{:.4f} nats per token", loss)) + line("rule", how),
      .json = {{"task", "lambada"},
               {"data", name},
               {"strict", is_strict},
               {"passages", score.passages.size()},
               {"correct", score.correct},
               {"accuracy", score.accuracy()},
               {"tokens", score.tokens},
               {"nats", score.nats},
               {"loss", loss},
               {"megatron", text},
               {"rule", how}}};
  for (size_t i = 0; i < score.passages.size(); ++i) {
    const PassageScore& passage = score.passages[i];
    const Json out{{"passage", i},
                   {"correct", passage.is_correct},
                   {"tokens", passage.tokens},
                   {"nats", passage.nats}};
    report.scores += out.dump() + "\n";
  }
  return report;
}

EvalReport report_choice(const std::string& name, const ChoiceScore& score) {
  const std::string how =
      "the ending with the smallest loss is chosen, its tokens scored behind those of the context, "
      "with a space between; bytes are those of the ending without white space around it";
  EvalReport report{
      .words = line("data", name) +
               line("questions", with_commas(static_cast<int64_t>(score.questions.size()))) +
               line("tokens", with_commas(score.tokens)),
      .json = {{"task", "choice"},
               {"data", name},
               {"questions", score.questions.size()},
               {"tokens", score.tokens},
               {"rule", how}}};
  for (size_t i = 0; i < kChoiceRules; ++i) {
    const double accuracy = score.accuracy(static_cast<ChoiceBy>(i));
    report.words += line("accuracy", format("{:.4f} {}", accuracy, kChoiceNames[i].second));
    report.json["accuracy"][std::string(kChoiceNames[i].first)] = accuracy;
  }
  report.words += line("rule", how);
  for (size_t q = 0; q < score.questions.size(); ++q) {
    const QuestionScore& question = score.questions[q];
    Json out{{"question", q}, {"label", question.label}};
    for (size_t i = 0; i < kChoiceRules; ++i)
      out["chosen"][std::string(kChoiceNames[i].first)] = question.chosen(static_cast<ChoiceBy>(i));
    for (const EndingScore& ending : question.endings) {
      out["nats"].push_back(ending.nats);
      out["tokens"].push_back(ending.tokens);
      out["bytes"].push_back(ending.bytes);
    }
    report.scores += out.dump() + "\n";
  }
  return report;
}

}  // namespace bev::app
