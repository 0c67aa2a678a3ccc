// Tiny T5s in checkpoints, with weights that are not small, and their results without a cache.
#pragma once

#include <algorithm>
#include <random>

#include "convert/checkpoint_weights.h"
#include "data/t5_dataset.h"
#include "infer/loaded_model.h"
#include "ops/make_device.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"

namespace bev::test {

inline constexpr int64_t kT5Source = 7, kT5Decoder = 9;

// Megatron-LM's, with and without its mask of the encoder's padding, and both of Hugging Face.
inline std::vector<TinyModel> tiny_t5s() {
  std::vector<TinyModel> models = tiny_models();
  std::erase_if(
      models, [](const TinyModel& model) { return model.config.model.family != ModelFamily::T5; });
  return models;
}

class StoredT5 {
 public:
  explicit StoredT5(Config c) : config(std::move(c)) {
    config.model.positions = kT5Decoder;
    config.model.vocab_multiple = 16;
    config.train.sequence = kT5Source;
    config.train.decoder_sequence = kT5Decoder;
    const std::unique_ptr<Device> device = make_device(config.device);
    RankModel model(config, *device);
    std::mt19937 random(7);
    std::normal_distribution<double> values(0, 0.4);
    std::vector<ParamSpec> specs;
    for (const Param* param : model.params.all()) {
      std::vector<double> drawn(static_cast<size_t>(param->value.shape.elements()));
      for (double& value : drawn) value = values(random);
      device->upload(drawn.data(), param->value.data, drawn.size() * sizeof(double));
      specs.push_back(param->spec);
    }
    StoreWeights weights(model.params);
    write_release(dir_ / "model", config, specs, weights, {});
  }

  ModelFolder folder() const { return open_model_folder(dir_ / "model"); }
  LoadedModel load(DeviceKind kind = DeviceKind::Reference) const {
    return LoadedModel(folder(), {.kind = kind, .threads = 1}, 1, kT5Source);
  }

  Config config;

 private:
  TemporaryDirectory dir_;
};

// The log-probabilities of the token after a decoder's text, by the forward pass of training.
// REQUIRES: the reference device, batches of one sequence.
inline std::vector<double> next_logprobs(LoadedModel& model, const std::vector<int32_t>& source,
                                         const std::vector<int32_t>& decoder) {
  HostBatch batch;
  batch.resize(1, model.placed().spec.batch);
  std::vector<double> logprobs;
  for (int32_t id = 0; id < model.vocab(); ++id) {
    put_t5_texts({.encoder = source,
                  .decoder = decoder,
                  .targets = std::vector<int32_t>(decoder.size(), id)},
                 0, batch, 0);
    batch.number_rows(0, 0);
    std::fill_n(batch.text(kDecoderText).weight.begin(), decoder.size() - 1, 0.0F);
    logprobs.push_back(-model.executor().evaluate({&batch, 1}).front().sum);
  }
  return logprobs;
}

}  // namespace bev::test
