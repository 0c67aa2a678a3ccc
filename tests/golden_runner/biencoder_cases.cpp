// Bi-encoders against Megatron-LM: its weights through the import of checkpoints, then loss,
// accuracies and gradients. In float64 the fused GELU gets Megatron-LM's constant
// (megatron_gelu.h).
#include <algorithm>

#include "checkpoint/safetensors.h"
#include "golden_runner/cases.h"
#include "golden_runner/megatron_export.h"
#include "golden_runner/megatron_gelu.h"
#include "golden_runner/model_run.h"
#include "golden_runner/places.h"
#include "model/family/family.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/tolerance.h"
#include "train/training_state.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

// Megatron-LM computes accuracies in float32.
constexpr double kAccuracyBound = 1e-7;

// The parameters of a bi-encoder among Megatron-LM's tensors of a file.
class TowerTensors final : public WeightSource {
 public:
  TowerTensors(const Json& shapes, const fs::path& file, bool shared) : file_(file) {
    if (shared) {
      add(shapes, file, "", "model.");
    } else {
      add(shapes, file, kQueryTower, "query_model.");
      add(shapes, file, kContextTower, "context_model.");
    }
  }

  DType dtype_of(const ParamSpec& /*spec*/) override { return DType::f64; }
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override {
    const Tower& tower = *std::find_if(towers_.begin(), towers_.end(), [&](const Tower& each) {
      return spec.name.starts_with(each.ours);
    });
    ParamSpec own = spec;
    own.name.erase(0, tower.ours.size());
    if (!own.name.starts_with("projection"))
      return tower.encoder->weights.read(own, where, dtype, to);
    const std::string name = tower.theirs + "projection_enc" + own.name.substr(10);
    const Values values = file_.read_f64(file_.at(name));
    convert_elements(std::as_bytes(std::span(values)), DType::f64,
                     {to, values.size() * size_of(dtype)}, dtype);
  }
  void check_all_used() override {
    for (const Tower& tower : towers_) tower.encoder->weights.check_all_used();
  }

 private:
  struct Tower {
    std::string ours, theirs;
    std::unique_ptr<ExportedTensors> encoder;
  };

  void add(const Json& shapes, const fs::path& file, const std::string& ours,
           const std::string& theirs) {
    towers_.push_back(
        {ours, theirs,
         std::make_unique<ExportedTensors>(shapes, file, true, theirs + "language_model.")});
  }

  SafetensorsReader file_;
  std::vector<Tower> towers_;
};

class BiencoderCases {
 public:
  BiencoderCases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        place_(place),
        report_(report),
        result_(read_json(dir / "result.json")),
        shapes_(result_.at("shapes")) {}

  void run() {
    const Config c = config();
    const Plan plan = dry_run(c);
    const std::unique_ptr<Device> device =
        is_exact() ? make_megatron_reference() : make_device(place_.device, plan.threads);
    TrainingState state(c, *device, plan.arenas);
    TowerTensors weights(shapes_, dir_ / "model.safetensors", c.model.shared_towers);
    load_weights(weights, state.params);
    weights.check_all_used();

    const std::vector<HostBatch> batches{batch(state.spec.batch)};
    const LossSums sums = state.executor.evaluate(batches);
    const auto& losses = state.spec.losses;
    check(
        "loss",
        relative_error(Values{total_loss(losses, sums)}, Values{result_.at("loss").get<double>()}),
        bound());
    for (size_t i = 1; i < losses.size(); ++i) {
      const std::string key = losses[i].name.substr(0, losses[i].name.find('_')) + "_acc";
      check(key, relative_error(Values{sums[i].mean()}, Values{result_.at(key).get<double>()}),
            kAccuracyBound);
    }

    Exec ex = state.executor.exec();
    state.grads.begin_step(ex);
    state.executor.train(batches);
    compare_gradients(state);
  }

 private:
  bool is_exact() const { return place_.device == DeviceKind::Reference; }
  int64_t size(const char* name) const { return shapes_.at(name).get<int64_t>(); }

  double bound() const {
    if (is_exact()) return 1e-12;
    return test::tolerance(place_.dtype(), std::max({size("hidden"), size("ffn"), size("vocab")}),
                           static_cast<int>(2 * (2 * size("layers") + 4)));
  }

  void check(const std::string& part, double error, double limit) {
    report_.check(name_ + "/" + part, place_.name(), error, limit);
  }

  Config config() const {
    const Json& options = result_.at("options");
    Config c;
    c.model.family = ModelFamily::Biencoder;
    c.model.layers = size("layers");
    c.model.width = size("hidden");
    c.model.heads = size("heads");
    c.model.head_dim = size("kv_channels");
    c.model.ffn = size("ffn");
    c.model.vocab = size("vocab");
    c.model.vocab_multiple = 1;
    c.model.positions = size("seq");
    c.model.norm_eps = result_.at("norm_epsilon").get<double>();
    c.model.hidden_dropout = c.model.attention_dropout = 0;
    c.model.shared_towers = options.at("shared").get<bool>();
    c.model.projection = options.at("projection").get<int64_t>();
    c.model.scale_scores = options.at("scaling").get<bool>();
    for (const auto& [key, value] : result_.items())
      if (key.starts_with("top") && key.ends_with("_acc"))
        c.log.top_k.push_back(key.substr(3, key.size() - 7));
    c.train.sequence = size("seq");
    c.train.micro_batch = c.train.global_batch = size("batch");
    c.train.iterations = 1;
    c.device.kind = place_.device;
    c.device.precision = place_.precision;
    return c;
  }

  HostBatch batch(const BatchSpec& fields) const {
    const SafetensorsReader inputs(dir_ / "inputs.safetensors");
    HostBatch host;
    host.resize(size("batch"), fields);
    for (size_t i = 0; i < host.text_count(); ++i) {
      HostText& text = host.text(i);
      const Values tokens =
          inputs.read_f64(inputs.at(i == kQueryText ? "query_tokens" : "context_tokens"));
      for (int64_t row = 0; row < text.tokens_count(); ++row) {
        const auto at = static_cast<size_t>(row), sequence = static_cast<size_t>(row / text.length);
        if (row % text.length == 0) {
          text.lengths[sequence] = 0;
          text.pooled[sequence] = static_cast<int32_t>(text.first_row + row);
        }
        text.tokens[at] = static_cast<int32_t>(tokens[at]);
        text.positions[at] = static_cast<int32_t>(row % text.length);
        text.types[at] = 0;
        text.lengths[sequence] += text.tokens[at] > 0 ? 1 : 0;
      }
    }
    for (int64_t at = 0; at < host.sequences; ++at) {
      host.number_rows(at, at);
      host.label_weight[static_cast<size_t>(at)] = 1;
    }
    return host;
  }

  // In our layout, with a file that has Megatron-LM's.
  void compare_gradients(const TrainingState& state) {
    TowerTensors golden(shapes_, dir_ / "grads.safetensors", state.config.model.shared_towers);
    for (const Param* param : state.params.all()) {
      Values expected(static_cast<size_t>(param->spec.shape.elements()));
      golden.read(param->spec, whole_of(param->spec.shape), DType::f64,
                  reinterpret_cast<std::byte*>(expected.data()));
      const Tensor& grad = param->grad;
      std::vector<std::byte> bytes(bytes_of(grad));
      state.device.download(grad.data, bytes.data(), bytes.size());
      Values got(expected.size());
      convert_elements(bytes, grad.dtype, std::as_writable_bytes(std::span(got)), DType::f64);
      if (param->spec.name.ends_with("attention.qkv.bias")) {
        // Softmax cancels the bias of the keys: rounding noise around 0.
        const auto third = static_cast<std::ptrdiff_t>(got.size() / 3);
        for (Values* each : {&got, &expected})
          each->erase(each->begin() + third, each->begin() + 2 * third);
      }
      if (is_bias_of_contexts(state.config.model, param->spec.name)) continue;
      check("grads/" + param->spec.name, relative_error(got, expected), bound());
    }
    golden.check_all_used();
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  Json result_, shapes_;
};

}  // namespace

bool is_biencoder(const fs::path& dir) {
  return fs::exists(dir / "result.json") && fs::exists(dir / "inputs.safetensors") &&
         fs::exists(dir / "model.safetensors") && fs::exists(dir / "grads.safetensors") &&
         read_json(dir / "result.json").contains("top1_acc");
}

void run_biencoder(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report))
    report.guarded(name, place.name(), [&] { BiencoderCases(dir, name, place, report).run(); });
}

}  // namespace bev::golden
