// What `bevatron eval` says about its results: words for people, JSON with stable keys, and a line
// of JSON for each document, passage or question.
#pragma once

#include <string>

#include "base/json.h"
#include "eval/lambada.h"
#include "eval/masked_perplexity.h"
#include "eval/multiple_choice.h"
#include "eval/perplexity.h"
#include "eval/span_perplexity.h"
#include "eval/wikitext.h"

namespace bev::app {

struct EvalReport {
  std::string words{};   // lines
  Json json{};           // an object
  std::string scores{};  // lines of JSON, one for each part
};

EvalReport report_perplexity(const EvalText& text, const PerplexityRule& rule,
                             const TextScore& score);
EvalReport report_masked(const MaskedText& text, const MaskingRule& rule, const TextScore& score);
EvalReport report_spans(const SpanText& text, const SpanRule& rule, const SpanScore& score);
EvalReport report_wikitext(const WikitextCorpus& corpus, const PerplexityRule& rule,
                           const TextScore& score);
EvalReport report_lambada(const std::string& name, LambadaRule rule, const LambadaScore& score);
EvalReport report_choice(const std::string& name, const ChoiceScore& score);

}  // namespace bev::app
