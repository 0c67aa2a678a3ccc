// A tiny model in a folder, to be loaded again.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "config/parse/toml.h"
#include "convert/huggingface/huggingface.h"
#include "infer/loaded_model.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "support/whole_forward.h"
#include "train/run_directory.h"

namespace bev::test {

class StoredModel {
 public:
  // A padded vocabulary, so that the padding would be noticed.
  explicit StoredModel(Config c = tiny_llama()) : config(std::move(c)) {
    config.model.vocab_multiple = 16;
    SmallRun run(config);
    run.train(2);
    const RunDirectory folder(dir_.path());
    folder.prepare(print_config(config));
    save_huggingface(folder.model(), config, run.assembly.params);
  }

  ModelFolder folder() const { return open_model_folder(dir_.path()); }
  std::filesystem::path path() const { return dir_.path(); }

  LoadedModel load(int64_t sequences, int64_t length,
                   DeviceKind kind = DeviceKind::Reference) const {
    return LoadedModel(folder(), {.kind = kind, .threads = 1}, sequences, length);
  }

  Config config;

 private:
  TemporaryDirectory dir_;
};

// One sequence and nothing to score.
inline HostBatch batch_of(const std::vector<int32_t>& ids) {
  HostBatch batch;
  batch.resize(1, static_cast<int64_t>(ids.size()), false);
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.tokens[i] = ids[i];
    batch.targets[i] = 0;
    batch.positions[i] = static_cast<int32_t>(i);
    batch.weight[i] = 0;
    batch.rows[i] = static_cast<int64_t>(i);
  }
  return batch;
}

// The logits behind every token of a sequence, [tokens, vocab]. REQUIRES: the reference device.
inline std::vector<double> all_logits(LoadedModel& model, const std::vector<int32_t>& ids) {
  const auto tokens = static_cast<int64_t>(ids.size());
  std::vector<double> values(static_cast<size_t>(tokens * model.vocab()));
  whole_forward(model.placed(), batch_of(ids),
                {.logits = tensor_over(reinterpret_cast<std::byte*>(values.data()), DType::f64,
                                       {tokens, model.vocab()})});
  return values;
}

// The log-probabilities of the token behind a context, without any cache. REQUIRES: the reference
// device.
inline std::vector<double> next_logprobs(LoadedModel& model, const std::vector<int32_t>& context) {
  const std::vector<double> all = all_logits(model, context);
  std::vector<double> last(all.end() - model.vocab(), all.end());
  const double max = *std::max_element(last.begin(), last.end());
  double sum = 0;
  for (const double value : last) sum += std::exp(value - max);
  for (double& value : last) value -= max + std::log(sum);
  return last;
}

}  // namespace bev::test
