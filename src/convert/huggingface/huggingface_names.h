// Which tensors of a Hugging Face file a parameter of ours becomes: their names, the rows each of
// them holds and whether it is stored turned. The one table both directions and the tests read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/huggingface/huggingface_config.h"
#include "param/param_spec.h"

namespace bev {

struct HuggingFaceTensor {
  std::string name;         // with the prefix of a causal language model
  int64_t row_begin, rows;  // of our parameter
  bool transposed = false;  // stored [in, out]
  bool vocabulary = false;  // one row per token: rows beyond the vocabulary are padding of ours
};

// In the order of their rows. A parameter the family has no place for is an Internal error: the
// family was chosen for the model.
std::vector<HuggingFaceTensor> huggingface_tensors(HuggingFaceFamily family, const ParamSpec& spec);

// The shape in the file, with `vocab` rows where there is one per token.
Shape huggingface_shape(const HuggingFaceTensor& tensor, const ParamSpec& spec, int64_t vocab);

// The name as the bare model has it, without the prefix of the causal language model.
std::string_view without_prefix(std::string_view name);

// The names under which a tensor may be stored, best first: its name, the name of the bare model,
// those of older BERTs (LayerNorm.gamma and beta), and those of T5's one token table.
std::vector<std::string> huggingface_spellings(const std::string& name);

// A tensor that a file may hold besides the one that it is equal to.
struct StoredCopy {
  std::string copy, original;
  std::string_view why;  // for messages
};
// `tied`: the head is the token table.
std::vector<StoredCopy> huggingface_copies(HuggingFaceFamily family, bool tied);

// True for a parameter that a BertModel does not store or has no use for.
bool is_bert_head(std::string_view our_name);

// A tensor of older files that is no parameter: attention masks, rotary frequencies, T5's relative
// positions of cross attention, which are not used.
bool is_huggingface_buffer(std::string_view name);

}  // namespace bev
