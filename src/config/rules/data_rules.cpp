// Rules about blends of token files and the order of samples.
#include <algorithm>

#include "base/format.h"
#include "config/blend.h"
#include "config/rules/rule.h"
#include "config/sample_ranges.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found lists_are_blends(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  for (const auto& [path, list] :
       {std::pair{"data.path", &d.path}, std::pair{"data.train_path", &d.train_path},
        std::pair{"data.valid_path", &d.valid_path}, std::pair{"data.test_path", &d.test_path}}) {
    if (list->empty()) continue;
    if (*list == TextList{""})
      return Problem{.what = format("{} is an empty text", path),
                     .where = f.where({path}),
                     .why = "a token file has a name",
                     .legal = "one path without the ending .bin"};
    const ParsedBlend parsed = parse_blend(*list);
    if (parsed.blend) continue;
    return Problem{.what = format("{} is not a blend of token files", path),
                   .where = f.where({path}),
                   .why = parsed.why,
                   .legal =
                       "token files (A B), or each after its weight above 0 (0.3 A 0.7 B), without "
                       "the ending .bin"};
  }
  return {};
}

// NumPy's generator takes 32 bits.
Found megatron_seed(const RuleInput& f) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1;
  if (f.config.data.order != SampleOrder::Megatron || f.config.train.seed <= kMost) return {};
  return Problem{.what = "the seed is too large for Megatron-LM's order of samples",
                 .where = f.where({"train.seed", "data.order"}),
                 .why = "its random numbers start from 32 bits",
                 .legal = format("train.seed at most {}", kMost)};
}

Found cyclic_has_samples(const RuleInput& f) {
  if (f.config.data.sampler != SamplerKind::Cyclic || f.config.data.order == SampleOrder::Megatron)
    return {};
  return Problem{.what = "a cyclic order needs Megatron-LM's samples",
                 .where = f.where({"data.sampler", "data.order"}),
                 .why =
                     "it shuffles their numbers again, epoch by epoch; the arithmetic order does "
                     "that by itself",
                 .legal = "data.sampler single, or data.order megatron"};
}

Found skip_is_ranges(const RuleInput& f) {
  ParsedRanges parsed = parse_sample_ranges(f.config.data.skip);
  if (parsed.why.empty()) return {};
  return Problem{.what = "data.skip is not a list of samples",
                 .where = f.where({"data.skip"}),
                 .why = std::move(parsed.why),
                 .legal = std::string(kLegalSampleRanges)};
}

constexpr std::string_view kBertCommand =
    "model.family bert, which `bevatron train pretrain_bert.py ...` sets";
constexpr std::string_view kGptCommand =
    "model.family gpt, which `bevatron train pretrain_gpt.py ...` sets";

// Which tokenizers have [MASK] and its like the files say; these have not.
Found bert_has_a_vocabulary(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  if (f.purpose != Purpose::Train || f.config.model.family != ModelFamily::Bert || d.mock)
    return {};
  const auto problem = [&](std::string what) {
    return Problem{.what = std::move(what),
                   .where = f.where({"model.family", "data.tokenizer", "data.vocab_file",
                                     "data.tokenizer_model"}),
                   .why = "samples of BERT hold [CLS], [SEP] and [MASK], whose ids it has",
                   .legal = format("--tokenizer-type BertWordPieceLowerCase --vocab-file "
                                   "vocab.txt, another tokenizer with these tokens, or "
                                   "--mock-data; to train a GPT: {}",
                                   kGptCommand)};
  };
  switch (d.tokenizer) {
    case TokenizerKind::None: return problem("model.family bert needs a tokenizer");
    case TokenizerKind::Byte:
    case TokenizerKind::Null:
    case TokenizerKind::Gpt2:
    case TokenizerKind::External:
      return problem(
          format("the tokenizer {} has no tokens for masks", name_of_choice(d.tokenizer)));
    default: break;
  }
  if (d.vocab_file.empty() && d.tokenizer_model.empty())
    return problem(
        format("the file of the tokenizer {} is not given", name_of_choice(d.tokenizer)));
  return {};
}

Found gpt_has_no_bert_tokenizer(const RuleInput& f) {
  const TokenizerKind kind = f.config.data.tokenizer;
  const bool is_bert = kind == TokenizerKind::BertLower || kind == TokenizerKind::BertCased;
  if (f.purpose != Purpose::Train || f.config.model.family != ModelFamily::Gpt || !is_bert)
    return {};
  return Problem{.what = "a GPT is trained with a tokenizer of BERT",
                 .where = f.where({"model.family", "data.tokenizer"}),
                 .why =
                     "its vocabulary is made for masked tokens: it has no end of a document, and "
                     "its texts have no blanks",
                 .legal = format("{}; or another tokenizer", kBertCommand)};
}

// `bevatron preprocess --split-sentences` and Megatron-LM call them so.
bool holds_sentences(std::string_view prefix) {
  for (const std::string_view ending : {".bin", ".idx"})
    if (prefix.ends_with(ending)) prefix.remove_suffix(ending.size());
  return prefix.ends_with("_sentence");
}

Found gpt_has_no_sentence_files(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  if (f.purpose != Purpose::Train || f.config.model.family != ModelFamily::Gpt) return {};
  for (const auto& [path, list] :
       {std::pair{"data.path", &d.path}, std::pair{"data.train_path", &d.train_path},
        std::pair{"data.valid_path", &d.valid_path}, std::pair{"data.test_path", &d.test_path}}) {
    const auto file = std::find_if(list->begin(), list->end(), holds_sentences);
    if (file == list->end()) continue;
    return Problem{.what = format("a GPT is trained on sentences: {}", *file),
                   .where = f.where({"model.family", path}),
                   .why =
                       "the file was made with --split-sentences for a BERT; its sentences have no "
                       "end of a document",
                   .legal = format("{}; or a file of documents, made by `bevatron preprocess` "
                                   "without --split-sentences",
                                   kBertCommand)};
  }
  return {};
}

Found bert_sample_has_room(const RuleInput& f) {
  const int64_t sequence = f.config.train.sequence, least = 5;
  if (f.purpose != Purpose::Train || f.config.model.family != ModelFamily::Bert ||
      f.config.data.mock || sequence <= 0 || sequence >= least)
    return {};
  return Problem{
      .what = format("a sequence of {} tokens has no room for a sample of BERT", sequence),
      .where = f.where({"train.sequence", "model.family"}),
      .why = "a sample is [CLS] A [SEP] B [SEP]",
      .legal = format("train.sequence at least {}", least)};
}

Found predictions_fit(const RuleInput& f) {
  const int64_t most = f.config.data.max_predictions, sequence = f.config.train.sequence;
  if (sequence <= 0 || most <= sequence) return {};
  return Problem{
      .what = format("data.max_predictions {} exceeds the sequence of {} tokens", most, sequence),
      .where = f.where({"data.max_predictions", "train.sequence"}),
      .why = "a token is predicted once",
      .legal = format("data.max_predictions at most {}", sequence)};
}

}  // namespace

std::vector<Rule> data_rules() {
  return {
      {{"data.path", "data.train_path", "data.valid_path", "data.test_path"}, lists_are_blends},
      {{"train.seed", "data.order"}, megatron_seed},
      {{"data.sampler", "data.order"}, cyclic_has_samples},
      {{"data.skip"}, skip_is_ranges},
      {{"model.family", "data.mock", "data.tokenizer", "data.vocab_file", "data.tokenizer_model"},
       bert_has_a_vocabulary},
      {{"model.family", "data.tokenizer"}, gpt_has_no_bert_tokenizer},
      {{"model.family", "data.path", "data.train_path", "data.valid_path", "data.test_path"},
       gpt_has_no_sentence_files},
      {{"model.family", "data.mock", "train.sequence"}, bert_sample_has_room},
      {{"data.max_predictions", "train.sequence"}, predictions_fit},
  };
}

}  // namespace bev
