#include "convert/huggingface/huggingface_names.h"

#include <array>
#include <span>

#include "base/check.h"
#include "convert/weight_source.h"
#include "param/param_store.h"

namespace bev {

namespace {

// Names without their last word (weight, bias); '*' is the layer. A fused parameter has one line
// per part; a line without a part holds all rows.
struct HuggingFaceName {
  std::string_view ours, part, theirs;
  bool transposed = false;
};

constexpr std::array<HuggingFaceName, 10> kGpt2Lines{{
    {"embedding.tokens", "", "transformer.wte"},
    {"embedding.positions", "", "transformer.wpe"},
    {"layers.*.norm1", "", "transformer.h.*.ln_1"},
    {"layers.*.attention.qkv", "", "transformer.h.*.attn.c_attn", true},
    {"layers.*.attention.out", "", "transformer.h.*.attn.c_proj", true},
    {"layers.*.norm2", "", "transformer.h.*.ln_2"},
    {"layers.*.mlp.up", "", "transformer.h.*.mlp.c_fc", true},
    {"layers.*.mlp.down", "", "transformer.h.*.mlp.c_proj", true},
    {"final_norm", "", "transformer.ln_f"},
    {"head", "", "lm_head"},
}};

constexpr std::array<HuggingFaceName, 14> kLlamaLines{{
    {"embedding.tokens", "", "model.embed_tokens"},
    {"layers.*.norm1", "", "model.layers.*.input_layernorm"},
    {"layers.*.attention.qkv", "q", "model.layers.*.self_attn.q_proj"},
    {"layers.*.attention.qkv", "k", "model.layers.*.self_attn.k_proj"},
    {"layers.*.attention.qkv", "v", "model.layers.*.self_attn.v_proj"},
    {"layers.*.attention.q_norm", "", "model.layers.*.self_attn.q_norm"},
    {"layers.*.attention.k_norm", "", "model.layers.*.self_attn.k_norm"},
    {"layers.*.attention.out", "", "model.layers.*.self_attn.o_proj"},
    {"layers.*.norm2", "", "model.layers.*.post_attention_layernorm"},
    {"layers.*.mlp.gate_up", "gate", "model.layers.*.mlp.gate_proj"},
    {"layers.*.mlp.gate_up", "up", "model.layers.*.mlp.up_proj"},
    {"layers.*.mlp.down", "", "model.layers.*.mlp.down_proj"},
    {"final_norm", "", "model.norm"},
    {"head", "", "lm_head"},
}};

constexpr std::array<HuggingFaceName, 17> kBertLines{{
    {"embedding.tokens", "", "bert.embeddings.word_embeddings"},
    {"embedding.positions", "", "bert.embeddings.position_embeddings"},
    {"embedding.types", "", "bert.embeddings.token_type_embeddings"},
    {"embedding.norm", "", "bert.embeddings.LayerNorm"},
    {"layers.*.attention.qkv", "q", "bert.encoder.layer.*.attention.self.query"},
    {"layers.*.attention.qkv", "k", "bert.encoder.layer.*.attention.self.key"},
    {"layers.*.attention.qkv", "v", "bert.encoder.layer.*.attention.self.value"},
    {"layers.*.attention.out", "", "bert.encoder.layer.*.attention.output.dense"},
    {"layers.*.norm1", "", "bert.encoder.layer.*.attention.output.LayerNorm"},
    {"layers.*.mlp.up", "", "bert.encoder.layer.*.intermediate.dense"},
    {"layers.*.mlp.down", "", "bert.encoder.layer.*.output.dense"},
    {"layers.*.norm2", "", "bert.encoder.layer.*.output.LayerNorm"},
    {"lm_head.dense", "", "cls.predictions.transform.dense"},
    {"lm_head.norm", "", "cls.predictions.transform.LayerNorm"},
    {"lm_head", "", "cls.predictions"},
    {"binary_head.pooler", "", "bert.pooler.dense"},
    {"binary_head.output", "", "cls.seq_relationship"},
}};

std::span<const HuggingFaceName> lines_of(HuggingFaceFamily family) {
  if (family == HuggingFaceFamily::Gpt2) return kGpt2Lines;
  if (family == HuggingFaceFamily::Bert) return kBertLines;
  return kLlamaLines;
}

// The rows of a part, from the first.
std::pair<int64_t, int64_t> rows_of_part(const ParamSpec& spec, std::string_view name) {
  int64_t begin = 0;
  for (const Part& part : spec.place.parts) {
    if (part.name == name) return {begin, part.extent};
    begin += part.extent;
  }
  throw Error(ErrorKind::Internal, format("{} has no part {}", spec.name, name));
}

std::string with_layer(std::string_view pattern, std::string_view our_name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  const std::string_view rest = our_name.substr(our_name.find('.') + 1);
  return format("{}{}{}", pattern.substr(0, star), rest.substr(0, rest.find('.')),
                pattern.substr(star + 1));
}

}  // namespace

std::vector<HuggingFaceTensor> huggingface_tensors(HuggingFaceFamily family,
                                                   const ParamSpec& spec) {
  const std::string kind = param_kind(spec.name);
  const size_t dot = kind.rfind('.');
  const std::string_view stem = std::string_view(kind).substr(0, dot);
  const std::string_view last = std::string_view(kind).substr(dot);
  std::vector<HuggingFaceTensor> tensors;
  for (const HuggingFaceName& line : lines_of(family)) {
    if (line.ours != stem) continue;
    const auto [begin, rows] = line.part.empty() ? std::pair<int64_t, int64_t>{0, spec.shape[0]}
                                                 : rows_of_part(spec, line.part);
    tensors.push_back({.name = with_layer(line.theirs, spec.name) + std::string(last),
                       .row_begin = begin,
                       .rows = rows,
                       .transposed = line.transposed && spec.shape.rank() == 2,
                       .vocabulary = is_vocab_table(spec.role)});
  }
  BEV_CHECK(!tensors.empty(), Internal, "{} has no name in the family {}", spec.name,
            name_of(family));
  return tensors;
}

Shape huggingface_shape(const HuggingFaceTensor& tensor, const ParamSpec& spec, int64_t vocab) {
  const int64_t rows = tensor.vocabulary ? vocab : tensor.rows;
  if (spec.shape.rank() == 1) return {rows};
  return tensor.transposed ? Shape{spec.shape[1], rows} : Shape{rows, spec.shape[1]};
}

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"transformer.", "model.", "bert."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

std::vector<std::string> huggingface_spellings(const std::string& name) {
  std::vector<std::string> names{name, std::string(without_prefix(name))};
  constexpr std::array<std::array<std::string_view, 2>, 3> kOlder{
      {{"LayerNorm.weight", "LayerNorm.gamma"},
       {"LayerNorm.bias", "LayerNorm.beta"},
       {"cls.predictions.bias", "cls.predictions.decoder.bias"}}};
  for (const auto& [ending, older] : kOlder)
    if (name.ends_with(ending))
      for (const std::string& known : {names[0], names[1]})
        names.push_back(known.substr(0, known.size() - ending.size()) + std::string(older));
  return names;
}

bool is_bert_head(std::string_view our_name) {
  return our_name.starts_with("lm_head.") || our_name.starts_with("binary_head.");
}

bool is_huggingface_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq") || name.ends_with("embeddings.position_ids") ||
         name.ends_with("embeddings.token_type_ids");
}

}  // namespace bev
