// BERT against transformers: states, logits, losses and gradients of BertForPreTraining.
#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/safetensors.h"
#include "convert/huggingface/huggingface.h"
#include "golden_runner/bert/bert_forward.h"
#include "golden_runner/cases.h"
#include "golden_runner/places.h"
#include "model/family/family.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/tolerance.h"
#include "train/training_state.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

std::vector<int32_t> integers(const SafetensorsReader& file, const char* name) {
  const std::vector<double> values = file.read_f64(file.at(name));
  return {values.begin(), values.end()};
}

class BertCases {
 public:
  BertCases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        place_(place),
        report_(report),
        inputs_(dir / "inputs.safetensors"),
        model_(read_huggingface_config(dir)),
        sequences_(inputs_.at("input_ids").shape[0]),
        length_(inputs_.at("input_ids").shape[1]) {}

  void run() {
    const Config config = training_config();
    const Plan plan = dry_run(config);
    const std::unique_ptr<Device> device = make_device(place_.device, plan.threads);
    TrainingState state(config, *device, plan.arenas);
    load_huggingface(dir_, state.params);
    const std::vector<HostBatch> batches{batch(config)};
    Exec ex = state.executor.exec();
    state.grads.begin_step(ex);
    state.executor.train(batches);

    LossSums sums;
    device->download(state.executor.loss_sums().data, sums.data(),
                     state.spec.losses.size() * sizeof(LossSum));
    const SafetensorsReader forward(dir_ / "forward.safetensors");
    compare_loss(forward, "mlm_loss", sums[0].mean());
    compare_loss(forward, "nsp_loss", sums[1].mean());
    compare_loss(forward, "loss", total_loss(state.spec.losses, sums));
    compare_states(forward, state, batches.front());

    const SafetensorsReader grads(dir_ / "grads.safetensors");
    std::set<std::string> seen;
    for (const Param* param : state.params.all()) {
      for (const NamedValues& ours :
           huggingface_values(model_.family, param->spec, param->grad, *device, plan.model.vocab)) {
        seen.insert(ours.name);
        const std::string case_name = name_ + "/grads/" + ours.name;
        const StoredTensor* stored = grads.find(ours.name);
        if (stored == nullptr) {
          report_.fail(case_name, place_.name(), "the golden file has no such tensor");
        } else if (ours.name.ends_with("key.bias")) {
          // Softmax cancels it: rounding noise around 0.
          report_.check(case_name, place_.name(), largest(ours.values), 100 * bound());
        } else {
          report_.check(case_name, place_.name(),
                        relative_error(ours.values, grads.read_f64(*stored)), bound());
        }
      }
    }
    for (const StoredTensor& stored : grads.tensors())
      if (!seen.contains(stored.name))
        report_.fail(name_ + "/grads/" + stored.name, place_.name(), "we have no such tensor");
  }

 private:
  double bound() const {
    if (place_.device == DeviceKind::Reference) return 1e-12;
    const ModelConfig& m = model_.model;
    return test::tolerance(place_.dtype(), std::max({m.width, m.ffn, m.vocab}),
                           static_cast<int>(2 * (2 * m.layers + 4)));
  }

  static double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double v : values) most = std::max(most, std::abs(v));
    return most;
  }

  Config training_config() const {
    Config c;
    c.model = model_.model;
    c.model.hidden_dropout = c.model.attention_dropout = 0;
    c.train.sequence = length_;
    c.train.micro_batch = c.train.global_batch = sequences_;
    c.train.iterations = 1;
    c.optim.lr = 1;
    c.data.mask_prob = 1;  // any token may be predicted
    c.device.kind = place_.device;
    c.device.precision = place_.precision;
    return c;
  }

  HostBatch batch(const Config& config) const {
    HostBatch host;
    host.resize(sequences_, model_spec(config).batch);
    const std::vector<int32_t> ids = integers(inputs_, "input_ids");
    const std::vector<int32_t> mask = integers(inputs_, "attention_mask");
    const std::vector<int32_t> types = integers(inputs_, "token_type_ids");
    const std::vector<int32_t> labels = integers(inputs_, "labels");
    const std::vector<int32_t> next = integers(inputs_, "next_sentence_label");
    for (int64_t row = 0; row < sequences_ * length_; ++row) {
      const auto i = static_cast<size_t>(row);
      host.tokens[i] = ids[i];
      host.types[i] = types[i];
      host.positions[i] = static_cast<int32_t>(row % length_);
      host.rows[i] = row;
      host.marked[i] = static_cast<int32_t>(row);
      host.targets[i] = std::max(labels[i], 0);
      host.weight[i] = labels[i] >= 0 ? 1.0f : 0.0f;
    }
    for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
      const auto i = static_cast<size_t>(sequence);
      const auto first = mask.begin() + sequence * length_;
      host.lengths[i] = static_cast<int32_t>(std::count(first, first + length_, 1));
      host.pooled[i] = static_cast<int32_t>(sequence * length_);
      host.label[i] = next[i];
      host.label_weight[i] = 1;
    }
    return host;
  }

  void compare_loss(const SafetensorsReader& file, const char* key, double ours) {
    const std::vector<double> got{ours};
    report_.check(name_ + "/forward/" + key, place_.name(),
                  relative_error(got, file.read_f64(file.at(key))), bound());
  }

  // States of all layers, the pooler's output and logits.
  void compare_states(const SafetensorsReader& file, RankModel& model, const HostBatch& batch) {
    static const std::map<std::string, std::string> kOurNames{
        {"prediction_logits", "lm_logits"}, {"seq_relationship_logits", "binary_logits"}};
    const BertTensors ours = bert_forward(model, batch);
    for (const StoredTensor& stored : file.tensors()) {
      if (stored.name.ends_with("loss")) continue;
      const std::string case_name = name_ + "/forward/" + stored.name;
      const auto renamed = kOurNames.find(stored.name);
      const auto found = ours.find(renamed == kOurNames.end() ? stored.name : renamed->second);
      if (found == ours.end()) {
        report_.fail(case_name, place_.name(), "we have no such tensor");
        continue;
      }
      std::vector<double> expected = file.read_f64(stored);
      if (stored.shape.rank() == 3) expected = without_padding(expected, batch);
      report_.check(case_name, place_.name(), relative_error(found->second, expected), bound());
    }
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  SafetensorsReader inputs_;
  HuggingFaceModel model_;
  int64_t sequences_, length_;
};

}  // namespace

bool is_bert(const fs::path& dir) {
  return fs::exists(dir / "config.json") && fs::exists(dir / "inputs.safetensors") &&
         read_json(dir / "config.json").value("model_type", "") == "bert";
}

void run_bert(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report)) {
    if (place.is_short()) continue;
    report.guarded(name, place.name(), [&] { BertCases(dir, name, place, report).run(); });
  }
}

}  // namespace bev::golden
