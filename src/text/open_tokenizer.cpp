#include "text/open_tokenizer.h"

#include "base/check.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/huggingface/bert_vocab.h"
#include "text/huggingface/tokenizer_json.h"
#include "text/sentencepiece/sentencepiece_tokenizer.h"
#include "text/tokenizer.h"

namespace bev {

namespace {

void require_file(const std::string& file, std::string_view flag, const TokenizerSpec& spec) {
  BEV_CHECK(!file.empty(), Usage, "the tokenizer {} needs {}",
            kTokenizerNames[static_cast<size_t>(spec.kind)], flag);
}

std::unique_ptr<Tokenizer> open_null(const TokenizerSpec& spec) {
  BEV_CHECK(spec.vocab >= 1 && spec.vocab < INT32_MAX, Usage,
            "the null tokenizer needs the size of the vocabulary: --vocab-size N");
  // There the number given does not count the end of a document.
  const int64_t vocab = spec.vocab + (spec.classic ? 1 : 0);
  const int64_t eod = spec.eod >= 0 ? spec.eod : vocab - 1;
  BEV_CHECK(eod < vocab, Usage, "the id {} that ends a document is not below the {} ids there are",
            eod, vocab);
  return std::make_unique<NullTokenizer>(vocab, static_cast<int32_t>(eod));
}

std::unique_ptr<Tokenizer> open_gpt2(const TokenizerSpec& spec) {
  require_file(spec.vocab_file, "--vocab-file vocab.json", spec);
  require_file(spec.merge_file, "--merge-file merges.txt", spec);
  return std::make_unique<Gpt2Tokenizer>(
      std::make_shared<const BpeVocab>(BpeVocab::read(spec.vocab_file, spec.merge_file)),
      spec.classic ? SpecialText::Plain : SpecialText::Special);
}

std::unique_ptr<Tokenizer> open_sentencepiece(const TokenizerSpec& spec) {
  require_file(spec.model, "--tokenizer-model FILE.model", spec);
  SentencePieceRules rules = SentencePieceRules::Plain;
  if (spec.classic && spec.kind == TokenizerKind::Llama2) rules = SentencePieceRules::BeginFirst;
  if (spec.classic && spec.kind == TokenizerKind::SentencePiece) rules = SentencePieceRules::Marked;
  return SentencePieceTokenizer::read(spec.model, rules, spec.extra_ids);
}

std::unique_ptr<Tokenizer> open_bert(const TokenizerSpec& spec) {
  constexpr int64_t kCasedExtraIds = 100;  // Megatron-LM's main, which reads no number of them
  require_file(spec.vocab_file, "--vocab-file vocab.txt", spec);
  const bool cased = spec.kind == TokenizerKind::BertCased;
  const bool usual = spec.extra_ids == 0 && cased && !spec.classic;
  return std::make_unique<PipelineTokenizer>(
      read_bert_vocab(spec.vocab_file, {.lower_case = !cased,
                                        .classic = spec.classic,
                                        .extra_ids = usual ? kCasedExtraIds : spec.extra_ids}),
      spec.add_template);
}

std::unique_ptr<Tokenizer> open_hugging_face(const TokenizerSpec& spec) {
  require_file(spec.model, "--tokenizer-model tokenizer.json", spec);
  return std::make_unique<PipelineTokenizer>(read_tokenizer_json(spec.model), spec.add_template);
}

}  // namespace

const std::string& TokenizerSpec::file() const {
  const bool has_own = kind == TokenizerKind::Gpt2 || kind == TokenizerKind::BertLower ||
                       kind == TokenizerKind::BertCased;
  return has_own ? vocab_file : model;
}

std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerSpec& spec) {
  switch (spec.kind) {
    case TokenizerKind::Byte: return std::make_unique<ByteTokenizer>();
    case TokenizerKind::Null: return open_null(spec);
    case TokenizerKind::Gpt2: return open_gpt2(spec);
    case TokenizerKind::HuggingFace: return open_hugging_face(spec);
    case TokenizerKind::BertLower:
    case TokenizerKind::BertCased: return open_bert(spec);
    case TokenizerKind::SentencePiece:
    case TokenizerKind::GptSentencePiece:
    case TokenizerKind::Llama2: return open_sentencepiece(spec);
    case TokenizerKind::None:
    case TokenizerKind::External: break;
  }
  throw Error(ErrorKind::Usage, format("the tokenizer {} is not in this version",
                                       kTokenizerNames[static_cast<size_t>(spec.kind)]));
}

}  // namespace bev
