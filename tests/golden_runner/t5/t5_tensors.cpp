#include "golden_runner/t5/t5_tensors.h"

#include "base/check.h"
#include "infer/loaded_model.h"
#include "ops/matmul.h"
#include "pipeline/batch_uploader.h"

namespace bev::golden {

namespace {

using Values = std::vector<double>;

// "decoder.layers.2.norm1.weight"
struct LayerName {
  std::string side, number, module, tensor;  // "decoder", "2", "norm1", "weight"

  bool is_decoder() const { return side == "decoder"; }
};

std::optional<LayerName> layer_name(const std::string& name) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t layers = name.find(kLayers);
  if (layers == std::string::npos) return {};
  const size_t number = layers + kLayers.size(), module = name.find('.', number) + 1;
  const size_t tensor = name.rfind('.') + 1;
  return LayerName{.side = name.substr(0, layers),
                   .number = name.substr(number, module - 1 - number),
                   .module = name.substr(module, tensor - 1 - module),
                   .tensor = name.substr(tensor)};
}

template <class Map>
std::string mapped(const Map& names, const std::string& name) {
  const auto found = names.find(name);
  BEV_CHECK(found != names.end(), Data, "{}: the other program has no such tensor", name);
  return found->second;
}

Values joined(std::initializer_list<Values> parts) {
  Values all;
  for (const Values& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

Values T5File::at(const std::string& name) {
  seen_.insert(name);
  return reader_.read_f64(reader_.at(name));
}

Values T5File::by_part(const std::string& name, int64_t parts) {
  const Values values = at(name);
  const size_t rows = values.size() / static_cast<size_t>(heads_ * parts);
  Values sorted;
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t head = 0; head < heads_; ++head) {
      const auto first = values.begin() + static_cast<ptrdiff_t>(rows) * (head * parts + part);
      sorted.insert(sorted.end(), first, first + static_cast<ptrdiff_t>(rows));
    }
  }
  return sorted;
}

Values T5File::read(const std::string& name) {
  return names_ == T5Names::Megatron ? read_megatron(name) : read_huggingface(name);
}

Values T5File::read_megatron(const std::string& name) {
  const std::string model = "language_model.";
  if (name == "embedding.tokens.weight") return at(model + "embedding.word_embeddings.weight");
  if (name == "embedding.positions.weight")
    return at(model + "embedding.position_embeddings.weight");
  if (name == "lm_head.bias") return at(name);
  const auto layer = layer_name(name);
  if (!layer) return at(model + name);
  const std::map<std::string, std::string> modules{
      {"norm1", "input_norm"},
      {"attention.qkv", "self_attention.query_key_value"},
      {"attention.out", "self_attention.dense"},
      {"cross_norm", "post_attention_norm"},
      {"cross_attention.q", "inter_attention.query"},
      {"cross_attention.kv", "inter_attention.key_value"},
      {"cross_attention.out", "inter_attention.dense"},
      {"norm2", layer->is_decoder() ? "post_inter_attention_norm" : "post_attention_norm"},
      {"mlp.up", "mlp.dense_h_to_4h"},
      {"mlp.down", "mlp.dense_4h_to_h"}};
  const std::string theirs = model + layer->side + ".layers." + layer->number + "." +
                             mapped(modules, layer->module) + "." + layer->tensor;
  if (layer->module == "attention.qkv") return by_part(theirs, 3);
  return layer->module == "cross_attention.kv" ? by_part(theirs, 2) : at(theirs);
}

Values T5File::read_huggingface(const std::string& name) {
  const std::string attention = ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const std::map<std::string, std::string> tables{
      {"embedding.tokens.weight", "shared.weight"},
      {"head.weight", "lm_head.weight"},
      {"encoder.relative_bias.weight", "encoder" + attention},
      {"decoder.relative_bias.weight", "decoder" + attention},
      {"encoder.final_norm.weight", "encoder.final_layer_norm.weight"},
      {"decoder.final_norm.weight", "decoder.final_layer_norm.weight"}};
  const auto layer = layer_name(name);
  if (!layer) return at(mapped(tables, name));
  const std::string block = layer->side + ".block." + layer->number + ".layer.";
  const std::string self = block + "0.SelfAttention.", cross = block + "1.EncDecAttention.";
  const std::string last = block + (layer->is_decoder() ? "2." : "1.");
  const std::string mlp = last + "DenseReluDense.";
  const auto weight = [&](const std::string& theirs) { return at(theirs + ".weight"); };
  const std::string& module = layer->module;
  if (module == "attention.qkv")
    return joined({weight(self + "q"), weight(self + "k"), weight(self + "v")});
  if (module == "cross_attention.kv") return joined({weight(cross + "k"), weight(cross + "v")});
  if (module == "mlp.gate_up") return joined({weight(mlp + "wi_0"), weight(mlp + "wi_1")});
  const std::map<std::string, std::string> modules{{"norm1", block + "0.layer_norm"},
                                                   {"attention.out", self + "o"},
                                                   {"cross_norm", block + "1.layer_norm"},
                                                   {"cross_attention.q", cross + "q"},
                                                   {"cross_attention.out", cross + "o"},
                                                   {"norm2", last + "layer_norm"},
                                                   {"mlp.up", mlp + "wi"},
                                                   {"mlp.down", mlp + "wo"}};
  return weight(mapped(modules, module));
}

void T5File::load(RankModel& model) {
  for (const Param* param : model.params.all()) {
    const Values values = read(param->spec.name);
    BEV_CHECK(std::ssize(values) == param->value.shape.elements(), Data, "{} has {} elements",
              param->spec.name, values.size());
    std::vector<std::byte> bytes(values.size() * size_of(param->value.dtype));
    convert_elements(std::as_bytes(std::span(values)), DType::f64, bytes, param->value.dtype);
    model.device.upload(bytes.data(), param->value.data, bytes.size());
  }
}

std::vector<std::string> T5File::unread() const {
  std::vector<std::string> names;
  for (const StoredTensor& stored : reader_.tensors())
    if (!seen_.contains(stored.name)) names.push_back(stored.name);
  return names;
}

Values values_on(Device& device, const ConstTensor& t) {
  std::vector<std::byte> bytes(static_cast<size_t>(t.shape.elements()) * size_of(t.dtype));
  device.download(t.data, bytes.data(), bytes.size());
  Values values(static_cast<size_t>(t.shape.elements()));
  convert_elements(bytes, t.dtype, std::as_writable_bytes(std::span(values)), DType::f64);
  return values;
}

Values without_padding(const Values& values, const HostText& text) {
  const int64_t width = std::ssize(values) / text.tokens_count();
  Values kept;
  for (int64_t sequence = 0; sequence < text.sequences; ++sequence) {
    const auto begin = values.begin() + sequence * text.length * width;
    kept.insert(kept.end(), begin, begin + text.lengths[static_cast<size_t>(sequence)] * width);
  }
  return kept;
}

namespace {

// Runs the modules one by one. On the null device it finds the sizes of the arenas.
class T5Forward {
 public:
  T5Forward(RankModel& model, const HostBatch& batch, const ArenaSizes& sizes)
      : model_(model),
        batch_(batch),
        uploader_(model.device, sizes.batch, 1),
        keep_(model.device, sizes.keep, "activations"),
        scratch_(model.device, sizes.scratch, "scratch"),
        recompute_(model.device, sizes.recompute, "recomputation"),
        env_{.borders = model.env.borders, .pass = {.training = false}} {}

  std::map<std::string, Values> run() {
    micro_ = uploader_.upload(batch_, 0);
    const Tensor context = side(kEncoderText, {});
    logits(side(kDecoderText, context));
    return std::move(tensors_);
  }

  ArenaSizes peaks() const {
    return {.keep = keep_.peak(),
            .batch = uploader_.peak(),
            .scratch = scratch_.peak(),
            .recompute = recompute_.peak()};
  }

 private:
  Tensor side(int text, const Tensor& context) {
    const Stage& stage = model_.stages.front();
    const auto index = static_cast<size_t>(text);
    const std::string name = text == kEncoderText ? "encoder_" : "decoder_";
    const auto encoder_blocks = static_cast<size_t>(model_.shape.layers);
    const size_t first = text == kEncoderText ? 0 : encoder_blocks;
    const size_t end = text == kEncoderText ? encoder_blocks : stage.blocks().size();
    Exec ex{model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
    const TextView& view = micro_[text];
    const auto put = [&](const std::string& part, const Tensor& t) {
      tensors_[name + part] = without_padding(values_on(model_.device, t), batch_.text(index));
    };

    const Shape shape{view.tokens_count(), model_.shape.width};
    const Tensor x = keep_.allocate(shape, model_.params.dtype(), "golden.x");
    Embedding::Saved embedded;
    stage.embeddings()[index].forward(ex, env_, view, x, embedded);
    put("hidden_0", x);
    BlockInputs in{.text = view};
    if (!stage.biases().empty()) {
      in.bias.values = stage.biases()[index].forward(ex, env_, view.length);
      tensors_[name + "position_bias"] = values_on(model_.device, in.bias.values);
    }
    if (context.present()) in.context.emplace(micro_[kEncoderText], context);
    for (size_t i = first; i < end; ++i) {
      const ArenaScope scope(keep_);
      Block::Saved unused;
      stage.blocks()[i].forward(ex, env_, in, x, x, unused);
      put("hidden_" + std::to_string(i - first + 1), x);
    }
    const Tensor normed = keep_.allocate(shape, x.dtype, "golden.final_norm");
    NormModule::Saved unused;
    stage.norms()[index].forward(ex, x, normed, unused);
    put("final_norm", normed);
    return normed;
  }

  void logits(const Tensor& x) {
    Exec ex{model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
    const LmHead& head = model_.stages.front().heads().front();
    const Tensor logits = keep_.allocate({x.rows(), model_.shape.vocab}, x.dtype, "golden.logits");
    ops::scale(ex, {.x = x, .factor = head.input_scale(), .y = x});
    const bool bias = head.bias() != nullptr;
    ops::matmul(ex, {.a = x,
                     .b = head.weight().value,
                     .tb = ops::Transpose::Yes,
                     .out = logits,
                     .epilogue = bias ? ops::Epilogue::Bias : ops::Epilogue::None,
                     .bias = bias ? ConstTensor(head.bias()->value) : ConstTensor{}});
    tensors_["lm_logits"] =
        without_padding(values_on(model_.device, logits), batch_.text(kDecoderText));
  }

  RankModel& model_;
  const HostBatch& batch_;
  BatchUploader uploader_;
  MicroBatch micro_;
  Arena keep_, scratch_, recompute_;
  ModelEnv env_;
  std::map<std::string, Values> tensors_;
};

}  // namespace

std::map<std::string, Values> t5_forward(RankModel& model, const HostBatch& batch) {
  DryRunModel planned(model.config, 0);
  T5Forward sizes(planned.model, batch, {});
  sizes.run();
  return T5Forward(model, batch, sizes.peaks()).run();
}

}  // namespace bev::golden
