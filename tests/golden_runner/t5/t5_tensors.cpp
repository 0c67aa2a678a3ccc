#include "golden_runner/t5/t5_tensors.h"

#include "checkpoint/safetensors.h"
#include "infer/loaded_model.h"
#include "ops/matmul.h"
#include "pipeline/batch_uploader.h"

namespace bev::golden {

namespace {

using Values = std::vector<double>;

}  // namespace

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
