// BERT against Megatron-LM: its weights through the import of checkpoints, then losses and
// gradients. Megatron-LM's fused GELU has 0.79788456 for sqrt(2 / pi), which ours does not round:
// what it touches differs by about 1e-9 in float64, and is compared to that; the exact GELU
// (--no-bias-gelu-fusion) agrees to 1e-12. Its optimizer steps average micro-batches with different
// numbers of masked tokens equally, which this program does not: they are skipped.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "convert/megatron/megatron_weights.h"
#include "golden_runner/cases.h"
#include "golden_runner/places.h"
#include "golden_runner/scratch_folder.h"
#include "model/family/family.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/tolerance.h"
#include "train/training_state.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

constexpr double kRoundedConstant = 2e-9;

// Puts tensors under the names of a checkpoint next to a megatron.json, as tools/megatron_export.py
// does.
void write_export(const fs::path& tensors, const Json& shapes, bool has_fused_gelu,
                  const fs::path& to) {
  fs::create_directories(to);
  const SafetensorsReader reader(tensors);
  std::vector<TensorToWrite> list;
  for (const StoredTensor& each : reader.tensors())
    list.push_back({"model." + each.name, *each.dtype, each.shape});
  write_safetensors(to / "mp_rank_00.safetensors", list,
                    [&](const TensorToWrite& out, std::span<std::byte> bytes) {
                      const auto from = reader.bytes(reader.at(out.name.substr(6)));
                      std::copy(from.begin(), from.end(), bytes.begin());
                    });
  const Json json{
      {"format", 1},
      {"args",
       {{"num_layers", shapes.at("layers")},
        {"hidden_size", shapes.at("hidden")},
        {"num_attention_heads", shapes.at("heads")},
        {"kv_channels", shapes.at("kv_channels")},
        {"ffn_hidden_size", shapes.at("ffn")},
        {"padded_vocab_size", shapes.at("vocab")},
        {"max_position_embeddings", shapes.at("positions")},
        {"norm_epsilon", shapes.at("eps")},
        {"bias_gelu_fusion", has_fused_gelu}}},
      {"tensor", 1},
      {"pipeline", 1},
      {"checkpoint_version", 3.0},
      {"shards", {{{"file", "mp_rank_00.safetensors"}, {"tensor", 0}, {"pipeline", 0}}}}};
  std::ofstream(to / "megatron.json") << json.dump();
}

class BertMegatronCases {
 public:
  BertMegatronCases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        place_(place),
        report_(report),
        shapes_(read_json(dir / "config.json").at("shapes")),
        inputs_(dir / "inputs.safetensors"),
        sequences_(shapes_.at("batch").get<int64_t>()),
        length_(shapes_.at("seq").get<int64_t>()) {
    for (const char* field : {"text", "types", "labels", "loss_mask", "padding_mask", "is_random"})
      for (const double value : inputs_.read_f64(inputs_.at(field)))
        values_[field].push_back(static_cast<int32_t>(value));
  }

  void run() {
    for (const bool has_fused_gelu : {true, false}) forward(has_fused_gelu);
    gradients();
  }

 private:
  double bound() const {
    if (place_.device == DeviceKind::Reference) return 1e-12;
    const auto size = [&](const char* name) { return shapes_.at(name).get<int64_t>(); };
    return test::tolerance(place_.dtype(), std::max({size("hidden"), size("ffn"), size("vocab")}),
                           static_cast<int>(2 * (2 * size("layers") + 4)));
  }

  void check(const std::string& part, std::span<const double> got, std::span<const double> expected,
             double least) {
    report_.check(name_ + "/" + part, place_.name(), relative_error(got, expected),
                  std::max(least, bound()));
  }

  Config config(const MegatronModel& model) const {
    Config c;
    c.model = model.model;
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

  // One of the micro-batches of all steps.
  HostBatch batch(const Config& c, int64_t micro) const {
    HostBatch host;
    host.resize(sequences_, model_spec(c).batch);
    const int64_t first = micro * sequences_;
    const auto at = [&](const char* field, int64_t row) {
      return values_.at(field)[static_cast<size_t>(first * length_ + row)];
    };
    for (int64_t row = 0; row < sequences_ * length_; ++row) {
      const auto i = static_cast<size_t>(row);
      host.tokens[i] = at("text", row);
      host.types[i] = at("types", row);
      host.positions[i] = static_cast<int32_t>(row % length_);
      host.rows[i] = row;
      host.marked[i] = static_cast<int32_t>(row);
      host.targets[i] = std::max(at("labels", row), 0);
      host.weight[i] = static_cast<float>(at("loss_mask", row));
    }
    for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
      const auto i = static_cast<size_t>(sequence);
      host.lengths[i] = 0;
      for (int64_t t = 0; t < length_; ++t)
        host.lengths[i] += at("padding_mask", sequence * length_ + t);
      host.pooled[i] = static_cast<int32_t>(sequence * length_);
      host.label[i] = values_.at("is_random")[static_cast<size_t>(first + sequence)];
      host.label_weight[i] = 1;
    }
    return host;
  }

  void forward(bool has_fused_gelu) {
    const std::string prefix = has_fused_gelu ? "" : "erf_";
    const ScratchFolder folder;
    write_export(dir_ / "model.safetensors", shapes_, has_fused_gelu, folder.path());
    const MegatronModel megatron = read_megatron_model(folder.path());
    const Config c = config(megatron);
    const Plan plan = dry_run(c);
    const std::unique_ptr<Device> device = make_device(place_.device, plan.threads);
    TrainingState state(c, *device, plan.arenas);
    MegatronWeights weights(folder.path(), megatron);
    load_weights(weights, state.params);
    weights.check_all_used();
    const SafetensorsReader file(dir_ / "forward.safetensors");
    const std::vector<HostBatch> batches{batch(c, 0)};
    const LossSums sums = state.executor.evaluate(batches);
    const auto check_loss = [&](const std::string& key, double ours) {
      check("forward/" + prefix + key, std::vector<double>{ours},
            file.read_f64(file.at(prefix + key)), has_fused_gelu ? kRoundedConstant : 0);
    };
    check_loss("lm_loss", sums[0].mean());
    check_loss("sop_loss", sums[1].mean());
    check_loss("loss", total_loss(state.spec.losses, sums));
  }

  // The gradients of each micro-batch's mean losses, averaged; compared in our layout.
  void gradients() {
    const ScratchFolder model, expected;
    write_export(dir_ / "model.safetensors", shapes_, true, model.path());
    write_export(dir_ / "grads.safetensors", shapes_, true, expected.path());
    const MegatronModel megatron = read_megatron_model(model.path());
    const Config c = config(megatron);
    const Plan plan = dry_run(c);
    const std::unique_ptr<Device> device = make_device(place_.device, plan.threads);
    TrainingState state(c, *device, plan.arenas);
    MegatronWeights weights(model.path(), megatron), golden(expected.path(), megatron);
    load_weights(weights, state.params);
    const auto micros = shapes_.at("micro_batches").get<int64_t>();
    std::map<std::string, std::vector<double>> sums;
    for (int64_t micro = 0; micro < micros; ++micro) {
      Exec ex = state.executor.exec();
      state.grads.begin_step(ex);
      const std::vector<HostBatch> batches{batch(c, micro)};
      state.executor.train(batches);
      for (const Param* param : state.params.all()) {
        std::vector<double>& sum = sums[param->spec.name];
        const std::vector<double> own = read(*device, param->grad);
        sum.resize(own.size());
        for (size_t i = 0; i < own.size(); ++i) sum[i] += own[i] / static_cast<double>(micros);
      }
    }
    for (const Param* param : state.params.all()) {
      std::vector<double> values(static_cast<size_t>(param->spec.shape.elements()));
      golden.read(param->spec, whole_of(param->spec.shape), DType::f64,
                  reinterpret_cast<std::byte*>(values.data()));
      std::vector<double>& got = sums[param->spec.name];
      if (param->spec.name.ends_with("attention.qkv.bias")) {
        // Softmax cancels the bias of the keys: rounding noise around 0.
        const auto third = static_cast<std::ptrdiff_t>(got.size() / 3);
        for (std::vector<double>* each : {&got, &values})
          each->erase(each->begin() + third, each->begin() + 2 * third);
      }
      check("grads/" + param->spec.name, got, values, kRoundedConstant);
    }
    golden.check_all_used();
    report_.skip(name_ + "/adamw", "micro-batches are not averaged equally in this version");
  }

  static std::vector<double> read(Device& device, const ConstTensor& t) {
    std::vector<std::byte> bytes(static_cast<size_t>(t.shape.elements()) * size_of(t.dtype));
    device.download(t.data, bytes.data(), bytes.size());
    std::vector<double> values(static_cast<size_t>(t.shape.elements()));
    convert_elements(bytes, t.dtype, std::as_writable_bytes(std::span(values)), DType::f64);
    return values;
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  Json shapes_;
  SafetensorsReader inputs_;
  int64_t sequences_, length_;
  std::map<std::string, std::vector<int32_t>> values_;
};

}  // namespace

bool is_bert_megatron(const fs::path& dir) {
  return fs::exists(dir / "config.json") && fs::exists(dir / "inputs.safetensors") &&
         fs::exists(dir / "adamw.json") && fs::exists(dir / "model.safetensors") &&
         read_json(dir / "config.json").contains("shapes") &&
         SafetensorsReader(dir / "model.safetensors").find("lm_head.dense.weight") != nullptr;
}

void run_bert_megatron(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report)) {
    if (place.is_short()) continue;
    report.guarded(name, place.name(), [&] { BertMegatronCases(dir, name, place, report).run(); });
  }
}

}  // namespace bev::golden
