#include "golden_runner/bert/bert_forward.h"

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "infer/loaded_model.h"
#include "ops/matmul.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/executor.h"

namespace bev::golden {

namespace {

std::vector<double> read(Device& device, const ConstTensor& t) {
  std::vector<std::byte> bytes(bytes_of(t));
  device.download(t.data, bytes.data(), bytes.size());
  std::vector<double> values(static_cast<size_t>(t.shape.elements()));
  convert_elements(bytes, t.dtype, std::as_writable_bytes(std::span(values)), DType::f64);
  return values;
}

// The first `columns` of each row.
std::vector<double> first_columns(const std::vector<double>& values, int64_t rows,
                                  int64_t columns) {
  const int64_t width = std::ssize(values) / rows;
  std::vector<double> kept;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = values.begin() + row * width;
    kept.insert(kept.end(), begin, begin + columns);
  }
  return kept;
}

// Runs the modules one by one. On the null device it finds the sizes of the arenas.
class BertForward {
 public:
  BertForward(RankModel& model, const HostBatch& batch, const ArenaSizes& sizes)
      : model_(model),
        batch_(batch),
        uploader_(model.device, sizes.batch, 1),
        keep_(model.device, sizes.keep, "activations"),
        scratch_(model.device, sizes.scratch, "scratch"),
        recompute_(model.device, sizes.recompute, "recomputation"),
        env_{.borders = model.env.borders, .pass = {.training = false}} {}

  BertTensors run() {
    const Stage& stage = model_.stages.front();
    Exec ex{model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
    const TextView micro = uploader_.upload(batch_, 0)[0];
    const Shape shape{micro.tokens_count(), model_.shape.width};
    Tensor x = keep_.allocate(shape, model_.params.dtype(), "golden.x");
    int64_t number = 0;
    Embedding::Saved embedded;
    stage.embeddings().front().forward(ex, env_, micro, x, embedded);
    put("hidden_" + std::to_string(number), x);
    for (const Block& block : stage.blocks()) {
      const ArenaScope scope(keep_);
      Block::Saved unused;
      block.forward(ex, env_, {micro}, x, x, unused);
      put("hidden_" + std::to_string(++number), x);
    }
    if (!stage.norms().empty()) {
      const Tensor normed = keep_.allocate(shape, x.dtype, "golden.final_norm");
      NormModule::Saved unused;
      stage.norms().front().forward(ex, x, normed, unused);
      put("final_norm", normed);
      x = normed;
    }
    predict(ex, micro, x);
    if (!stage.classifiers().empty()) classify(ex, micro, x);
    return std::move(tensors_);
  }

  ArenaSizes peaks() const {
    return {.keep = keep_.peak(),
            .batch = uploader_.peak(),
            .scratch = scratch_.peak(),
            .recompute = recompute_.peak()};
  }

 private:
  void put(const std::string& name, const ConstTensor& t) {
    tensors_[name] = without_padding(read(model_.device, t), batch_);
  }

  void predict(Exec& ex, const TextView& micro, const Tensor& x) {
    const ArenaScope scope(scratch_);
    const MaskedLmHead& head = model_.stages.front().masked_heads().front();
    const Tensor in = head.transform(ex, env_, micro.tokens_count(), x, micro.marked).normed;
    const Tensor logits =
        scratch_.allocate({in.rows(), head.weight().value.rows()}, in.dtype, "golden.logits");
    ops::matmul(ex, {.a = in,
                     .b = head.weight().value,
                     .tb = ops::Transpose::Yes,
                     .out = logits,
                     .epilogue = ops::Epilogue::Bias,
                     .bias = head.bias().value});
    tensors_["lm_logits"] = without_padding(
        first_columns(read(model_.device, logits), in.rows(), model_.shape.vocab), batch_);
  }

  void classify(Exec& ex, const TextView& micro, const Tensor& x) {
    const ArenaScope scope(scratch_);
    const Classifier& classifier = model_.stages.front().classifiers().front();
    const Classifier::Classified out =
        classifier.classify(ex, env_, micro.tokens_count(), x, micro.pooled);
    tensors_["pooled"] = read(model_.device, out.pooled);
    tensors_["binary_logits"] = read(model_.device, out.logits);
  }

  RankModel& model_;
  const HostBatch& batch_;
  BatchUploader uploader_;
  Arena keep_, scratch_, recompute_;
  ModelEnv env_;
  BertTensors tensors_;
};

}  // namespace

BertTensors bert_forward(RankModel& model, const HostBatch& batch) {
  DryRunModel planned(model.config, 0);
  BertForward sizes(planned.model, batch, {});
  sizes.run();
  return BertForward(model, batch, sizes.peaks()).run();
}

std::vector<double> without_padding(const std::vector<double>& values, const HostBatch& batch) {
  const int64_t width = std::ssize(values) / batch.tokens_count();
  std::vector<double> kept;
  for (int64_t sequence = 0; sequence < batch.sequences; ++sequence) {
    const auto begin = values.begin() + sequence * batch.length * width;
    kept.insert(kept.end(), begin, begin + batch.lengths[static_cast<size_t>(sequence)] * width);
  }
  return kept;
}

}  // namespace bev::golden
