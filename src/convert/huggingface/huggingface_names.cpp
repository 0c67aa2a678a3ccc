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

constexpr std::array<HuggingFaceName, 31> kT5Lines{{
    {"embedding.tokens", "", "shared"},
    {"encoder.relative_bias", "", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
    {"encoder.layers.*.norm1", "", "encoder.block.*.layer.0.layer_norm"},
    {"encoder.layers.*.attention.qkv", "q", "encoder.block.*.layer.0.SelfAttention.q"},
    {"encoder.layers.*.attention.qkv", "k", "encoder.block.*.layer.0.SelfAttention.k"},
    {"encoder.layers.*.attention.qkv", "v", "encoder.block.*.layer.0.SelfAttention.v"},
    {"encoder.layers.*.attention.out", "", "encoder.block.*.layer.0.SelfAttention.o"},
    {"encoder.layers.*.norm2", "", "encoder.block.*.layer.1.layer_norm"},
    {"encoder.layers.*.mlp.up", "", "encoder.block.*.layer.1.DenseReluDense.wi"},
    {"encoder.layers.*.mlp.gate_up", "gate", "encoder.block.*.layer.1.DenseReluDense.wi_0"},
    {"encoder.layers.*.mlp.gate_up", "up", "encoder.block.*.layer.1.DenseReluDense.wi_1"},
    {"encoder.layers.*.mlp.down", "", "encoder.block.*.layer.1.DenseReluDense.wo"},
    {"encoder.final_norm", "", "encoder.final_layer_norm"},
    {"decoder.relative_bias", "", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
    {"decoder.layers.*.norm1", "", "decoder.block.*.layer.0.layer_norm"},
    {"decoder.layers.*.attention.qkv", "q", "decoder.block.*.layer.0.SelfAttention.q"},
    {"decoder.layers.*.attention.qkv", "k", "decoder.block.*.layer.0.SelfAttention.k"},
    {"decoder.layers.*.attention.qkv", "v", "decoder.block.*.layer.0.SelfAttention.v"},
    {"decoder.layers.*.attention.out", "", "decoder.block.*.layer.0.SelfAttention.o"},
    {"decoder.layers.*.cross_norm", "", "decoder.block.*.layer.1.layer_norm"},
    {"decoder.layers.*.cross_attention.q", "", "decoder.block.*.layer.1.EncDecAttention.q"},
    {"decoder.layers.*.cross_attention.kv", "k", "decoder.block.*.layer.1.EncDecAttention.k"},
    {"decoder.layers.*.cross_attention.kv", "v", "decoder.block.*.layer.1.EncDecAttention.v"},
    {"decoder.layers.*.cross_attention.out", "", "decoder.block.*.layer.1.EncDecAttention.o"},
    {"decoder.layers.*.norm2", "", "decoder.block.*.layer.2.layer_norm"},
    {"decoder.layers.*.mlp.up", "", "decoder.block.*.layer.2.DenseReluDense.wi"},
    {"decoder.layers.*.mlp.gate_up", "gate", "decoder.block.*.layer.2.DenseReluDense.wi_0"},
    {"decoder.layers.*.mlp.gate_up", "up", "decoder.block.*.layer.2.DenseReluDense.wi_1"},
    {"decoder.layers.*.mlp.down", "", "decoder.block.*.layer.2.DenseReluDense.wo"},
    {"decoder.final_norm", "", "decoder.final_layer_norm"},
    {"head", "", "lm_head"},
}};

std::span<const HuggingFaceName> lines_of(HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::Gpt2: return kGpt2Lines;
    case HuggingFaceFamily::Bert: return kBertLines;
    case HuggingFaceFamily::T5: return kT5Lines;
    case HuggingFaceFamily::Llama:
    case HuggingFaceFamily::Mistral:
    case HuggingFaceFamily::Qwen2:
    case HuggingFaceFamily::Qwen3: break;
  }
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

// The pattern with the layer of our parameter, whose kind has a '*' in its place.
std::string with_layer(std::string_view pattern, std::string_view our_name, std::string_view kind) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  const std::string_view layer = our_name.substr(kind.find('*'));
  return format("{}{}{}", pattern.substr(0, star), layer.substr(0, layer.find('.')),
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
    tensors.push_back({.name = with_layer(line.theirs, spec.name, kind) + std::string(last),
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
  constexpr std::array<std::array<std::string_view, 2>, 5> kOlder{
      {{"LayerNorm.weight", "LayerNorm.gamma"},
       {"LayerNorm.bias", "LayerNorm.beta"},
       {"cls.predictions.bias", "cls.predictions.decoder.bias"},
       {"shared.weight", "encoder.embed_tokens.weight"},
       {"shared.weight", "decoder.embed_tokens.weight"}}};
  for (const auto& [ending, older] : kOlder)
    if (name.ends_with(ending))
      for (const std::string& known : {names[0], names[1]})
        names.push_back(known.substr(0, known.size() - ending.size()) + std::string(older));
  return names;
}

std::vector<StoredCopy> huggingface_copies(HuggingFaceFamily family, bool tied) {
  constexpr std::string_view kTied = "tie_word_embeddings is true";
  constexpr std::string_view kOneTable = "both sides of a T5 have one token table";
  std::vector<StoredCopy> copies;
  switch (family) {
    case HuggingFaceFamily::Gpt2:
      if (tied) copies.push_back({"lm_head.weight", "transformer.wte.weight", kTied});
      break;
    case HuggingFaceFamily::Llama:
    case HuggingFaceFamily::Mistral:
    case HuggingFaceFamily::Qwen2:
    case HuggingFaceFamily::Qwen3:
      if (tied) copies.push_back({"lm_head.weight", "model.embed_tokens.weight", kTied});
      break;
    case HuggingFaceFamily::Bert:
      copies.push_back(
          {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", kTied});
      copies.push_back({"cls.predictions.decoder.bias", "cls.predictions.bias",
                        "both are the bias of the LM head"});
      break;
    case HuggingFaceFamily::T5:
      if (tied) copies.push_back({"lm_head.weight", "shared.weight", kTied});
      copies.push_back({"encoder.embed_tokens.weight", "shared.weight", kOneTable});
      copies.push_back({"decoder.embed_tokens.weight", "shared.weight", kOneTable});
  }
  return copies;
}

bool is_bert_head(std::string_view our_name) {
  return our_name.starts_with("lm_head.") || our_name.starts_with("binary_head.");
}

bool is_huggingface_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq") || name.ends_with("embeddings.position_ids") ||
         name.ends_with("embeddings.token_type_ids") ||
         name.ends_with("EncDecAttention.relative_attention_bias.weight");
}

}  // namespace bev
