// Rules about blends of token files and the order of samples.
#include <algorithm>
#include <array>
#include <cmath>

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

// The tokens that a family needs in its vocabulary.
struct VocabularyNeed {
  std::string_view lack;  // of tokenizers without it: "has no tokens for masks"
  std::string_view why;
  std::string_view flags;
};

constexpr VocabularyNeed kMaskVocabulary{
    .lack = "has no tokens for masks",
    .why = "samples of BERT hold [CLS], [SEP] and [MASK], whose ids it has",
    .flags =
        "--tokenizer-type BertWordPieceLowerCase --vocab-file vocab.txt, another tokenizer "
        "with these tokens"};
constexpr VocabularyNeed kQueryVocabulary{
    .lack = "has no [CLS] and [SEP]",
    .why = "a sample is [CLS] query [SEP] and [CLS] title [SEP] block [SEP], and it has these ids",
    .flags = kMaskVocabulary.flags};
constexpr VocabularyNeed kSpanVocabulary{
    .lack = "has no sentinels",
    .why = "in samples of T5, sentinels (<extra_id_0>, <extra_id_1>, ...) replace masked spans",
    .flags =
        "--tokenizer-type BertWordPieceLowerCase --vocab-file vocab.txt --vocab-extra-ids "
        "100, a tokenizer of T5"};

const VocabularyNeed* vocabulary_need(ModelFamily family) {
  switch (family) {
    case ModelFamily::Gpt: break;
    case ModelFamily::Bert: return &kMaskVocabulary;
    case ModelFamily::T5: return &kSpanVocabulary;
    case ModelFamily::Biencoder: return &kQueryVocabulary;
  }
  return nullptr;
}

// Which tokenizers have [MASK] and its like the files say; these have not.
Found family_has_a_vocabulary(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  const VocabularyNeed* need = vocabulary_need(f.config.model.family);
  if (f.purpose != Purpose::Train || need == nullptr || d.mock) return {};
  const auto problem = [&](std::string what) {
    return Problem{
        .what = std::move(what),
        .where =
            f.where({"model.family", "data.tokenizer", "data.vocab_file", "data.tokenizer_model"}),
        .why = std::string(need->why),
        .legal = format("{}, or --mock-data; to train a GPT: {}", need->flags, kGptCommand)};
  };
  switch (d.tokenizer) {
    case TokenizerKind::None:
      return problem(
          format("model.family {} needs a tokenizer", name_of_choice(f.config.model.family)));
    case TokenizerKind::Byte:
    case TokenizerKind::Null:
    case TokenizerKind::Gpt2:
    case TokenizerKind::External:
      return problem(format("the tokenizer {} {}", name_of_choice(d.tokenizer), need->lack));
    default: break;
  }
  if (d.vocab_file.empty() && d.tokenizer_model.empty())
    return problem(
        format("the file of the tokenizer {} is not given", name_of_choice(d.tokenizer)));
  return {};
}

// Megatron-LM's cased tokenizer has 100 sentinels by itself, except in the classic version.
Found t5_has_sentinels(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  const bool without =
      d.tokenizer == TokenizerKind::BertLower ||
      (d.tokenizer == TokenizerKind::BertCased && f.config.train.compat == Compat::Classic);
  if (f.purpose != Purpose::Train || f.config.model.family != ModelFamily::T5 || d.mock ||
      !without || d.vocab_extra_ids > 0)
    return {};
  return Problem{.what = format("model.family t5 with the tokenizer {} needs extra ids",
                                name_of_choice(d.tokenizer)),
                 .where = f.where({"model.family", "data.tokenizer", "data.vocab_extra_ids"}),
                 .why = std::string(kSpanVocabulary.why),
                 .legal = "--vocab-extra-ids 100"};
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

Found sample_has_room(const RuleInput& f) {
  struct Shape {
    ModelFamily family;
    int64_t least;
    std::string_view name, parts;
  };
  static constexpr Shape kShapes[] = {
      {ModelFamily::Bert, 5, "of BERT", "[CLS] A [SEP] B [SEP]"},
      {ModelFamily::T5, 4, "of T5",
       "as long as the sequence less 2, as in Megatron-LM, with two "
       "tokens or more"},
      {ModelFamily::Biencoder, 4, "of the inverse cloze task", "[CLS] title [SEP] block [SEP]"},
  };
  const int64_t sequence = f.config.train.sequence;
  const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes), [&](const Shape& s) {
    return s.family == f.config.model.family;
  });
  if (f.purpose != Purpose::Train || shape == std::end(kShapes) || f.config.data.mock ||
      sequence <= 0 || sequence >= shape->least)
    return {};
  return Problem{
      .what = format("a sequence of {} tokens has no room for a sample {}", sequence, shape->name),
      .where = f.where({"train.sequence", "model.family"}),
      .why = format("a sample is {}", shape->parts),
      .legal = format("train.sequence at least {}", shape->least)};
}

// A decoder that cannot hold the masked tokens of a full sample even as a single span. Which others
// are too short depends on the samples.
Found spans_have_room(const RuleInput& f) {
  const Config& c = f.config;
  if (f.purpose != Purpose::Train || c.model.family != ModelFamily::T5 || c.data.mock ||
      c.train.sequence < 4)
    return {};
  const int64_t decoder =
      c.train.decoder_sequence > 0 ? c.train.decoder_sequence : c.train.sequence;
  const auto tokens = static_cast<double>(c.train.sequence - 2);
  const auto masked = c.data.max_predictions > 0
                          ? std::min(c.data.max_predictions,
                                     std::max<int64_t>(1, std::llrint(c.data.mask_prob * tokens)))
                          : static_cast<int64_t>(c.data.mask_prob * tokens);
  const int64_t least = masked + 2;
  if (decoder >= least) return {};
  return Problem{
      .what = format("a decoder of {} tokens has no room for the masked spans of {} tokens",
                     decoder, c.train.sequence),
      .where = f.where(
          {"train.decoder_sequence", "train.sequence", "data.mask_prob", "data.max_predictions"}),
      .why =
          format("{} tokens are masked; the decoder reads them, a first token and a sentinel for "
                 "each span",
                 masked),
      .legal = format("train.decoder_sequence {} or more for the usual number of spans; or a "
                      "smaller data.mask_prob",
                      masked + masked / 3 + 2)};
}

Found titles_belong_to_a_file(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  if (d.titles_path.empty()) return {};
  const auto problem = [&](std::string_view what, std::string_view why, std::string_view legal) {
    return Problem{.what = std::string(what),
                   .where = f.where({"data.titles_path", "model.family", "data.path"}),
                   .why = std::string(why),
                   .legal = std::string(legal)};
  };
  if (f.config.model.family != ModelFamily::Biencoder)
    return problem("data.titles_path needs a bi-encoder", "no other model reads titles",
                   "model.family biencoder, which `bevatron train pretrain_ict.py ...` sets; or no "
                   "data.titles_path");
  if (f.purpose != Purpose::Train || d.mock || d.path.size() == 1) return {};
  return problem("data.titles_path needs a single file in data.path",
                 "title i belongs to document i of that file",
                 "--data-path PREFIX, divided by --split; or no data.titles_path");
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
       family_has_a_vocabulary},
      {{"model.family", "data.tokenizer"}, gpt_has_no_bert_tokenizer},
      {{"model.family", "data.path", "data.train_path", "data.valid_path", "data.test_path"},
       gpt_has_no_sentence_files},
      {{"model.family", "data.mock", "data.tokenizer", "data.vocab_extra_ids", "train.compat"},
       t5_has_sentinels},
      {{"model.family", "data.mock", "train.sequence"}, sample_has_room},
      {{"model.family", "data.mock", "train.sequence", "train.decoder_sequence", "data.mask_prob",
        "data.max_predictions"},
       spans_have_room},
      {{"data.titles_path", "model.family", "data.path", "data.mock"}, titles_belong_to_a_file},
      {{"data.max_predictions", "train.sequence"}, predictions_fit},
  };
}

}  // namespace bev
