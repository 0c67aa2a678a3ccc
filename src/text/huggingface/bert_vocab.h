// BERT's tokenizer from vocab.txt: one token a line, the number of the line is its id.
#pragma once

#include <memory>

#include "text/bpe/bpe_vocab.h"
#include "text/huggingface/pipeline_tokenizer.h"

namespace bev {

struct BertSettings {
  bool lower_case = true;  // and without accents
  // The rules of October 2023: [BOS] and [EOS] stand behind the vocabulary where they are not in
  // it, nothing is put around a text, special tokens in a text are text, a word may have 200
  // characters.
  bool classic = false;
  int64_t extra_ids = 0;  // <extra_id_0> and so on, behind everything
};

// Data error when a line is empty, no UTF-8 or there already, or a token that BERT needs is
// missing.
std::shared_ptr<const TokenizerParts> bert_parts(NamedText vocab, const BertSettings& settings);

std::shared_ptr<const TokenizerParts> read_bert_vocab(const std::filesystem::path& vocab_txt,
                                                      const BertSettings& settings);

}  // namespace bev
