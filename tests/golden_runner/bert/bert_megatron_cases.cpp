// BERT against Megatron-LM: its weights through the import of checkpoints, then states of all
// layers, logits, losses, gradients and ten steps of AdamW that average micro-batches. In float64
// the fused GELU gets Megatron-LM's constant (megatron_gelu.h); losses with ours, sqrt(2 / pi), are
// compared to its rounding.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "golden_runner/bert/bert_forward.h"
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

constexpr double kRoundedConstant = 2e-9;
constexpr double kAfterTenSteps = 1e-10;

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
    adamw();
    if (is_exact()) losses_with_full_constant();
  }

 private:
  bool is_exact() const { return place_.device == DeviceKind::Reference; }

  double bound() const {
    if (is_exact()) return 1e-12;
    const auto size = [&](const char* name) { return shapes_.at(name).get<int64_t>(); };
    return test::tolerance(place_.dtype(), std::max({size("hidden"), size("ffn"), size("vocab")}),
                           static_cast<int>(2 * (2 * size("layers") + 4)));
  }

  void check(const std::string& part, double error, double limit) {
    report_.check(name_ + "/" + part, place_.name(), error, limit);
  }

  int64_t steps() const { return inputs_.at("text").shape[0]; }
  int64_t micros() const { return shapes_.at("micro_batches").get<int64_t>(); }

  Config config(const MegatronModel& model) const {
    Config c;
    c.model = model.model;
    c.model.hidden_dropout = c.model.attention_dropout = 0;
    c.train.sequence = length_;
    c.train.micro_batch = sequences_;
    c.train.global_batch = sequences_ * micros();
    c.train.iterations = steps();
    c.optim.lr = 1;
    c.loss.average = LossAverage::MicroBatch;
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

  // All micro-batches of a step.
  std::vector<HostBatch> step(const Config& c, int64_t index) const {
    std::vector<HostBatch> batches;
    for (int64_t micro = 0; micro < micros(); ++micro)
      batches.push_back(batch(c, index * micros() + micro));
    return batches;
  }

  // The model of the folder, ready to train.
  struct Run {
    Run(const BertMegatronCases& cases, bool has_fused_gelu, const OptimConfig& optim,
        bool has_megatron_constant = true)
        : tensors(cases.shapes_, cases.dir_ / "model.safetensors", has_fused_gelu),
          config([&] {
            Config c = cases.config(tensors.model);
            c.optim = optim;
            return c;
          }()),
          plan(dry_run(config)),
          device(cases.is_exact() && has_megatron_constant
                     ? make_megatron_reference()
                     : make_device(cases.place_.device, plan.threads)),
          state(config, *device, plan.arenas),
          stepper(state, lr_schedule_from(config, plan.batch.global_batch, plan.iterations)) {
      load_weights(tensors.weights, state.params);
      tensors.weights.check_all_used();
      Exec ex = state.executor.exec();
      state.optimizer.refresh_master(ex);
    }

    ExportedTensors tensors;
    Config config;
    Plan plan;
    std::unique_ptr<Device> device;
    TrainingState state;
    StepRunner stepper;
  };

  void compare_loss(const std::string& part, double got, const std::string& key, double limit) {
    const SafetensorsReader file(dir_ / "forward.safetensors");
    check(part + key, relative_error(Values{got}, file.read_f64(file.at(key))), limit);
  }

  void compare_losses(Run& run, const std::string& part, const std::string& prefix, double limit) {
    const std::vector<HostBatch> batches{batch(run.config, 0)};
    const LossSums sums = run.state.executor.evaluate(batches);
    compare_loss(part, sums[0].mean(), prefix + "lm_loss", limit);
    compare_loss(part, sums[1].mean(), prefix + "sop_loss", limit);
    compare_loss(part, total_loss(run.state.spec.losses, sums), prefix + "loss", limit);
  }

  void forward(bool has_fused_gelu) {
    const std::string prefix = has_fused_gelu ? "" : "erf_";
    Run run(*this, has_fused_gelu, {.lr = 1});
    compare_losses(run, "forward/", prefix, bound());
    const HostBatch host = batch(run.config, 0);
    const BertTensors ours = bert_forward(run.state, host);
    const SafetensorsReader file(dir_ / "forward.safetensors");
    for (const StoredTensor& stored : file.tensors()) {
      const bool is_erf = stored.name.starts_with("erf_");
      if (is_erf == has_fused_gelu || stored.name.ends_with("loss")) continue;
      const auto found = ours.find(stored.name.substr(prefix.size()));
      if (found == ours.end()) {
        report_.fail(name_ + "/forward/" + stored.name, place_.name(), "we have no such tensor");
        continue;
      }
      Values expected = file.read_f64(stored);
      if (stored.shape.rank() == 3) expected = without_padding(expected, host);
      check("forward/" + stored.name, relative_error(found->second, expected), bound());
    }
  }

  void losses_with_full_constant() {
    Run run(*this, true, {.lr = 1}, false);
    compare_losses(run, "forward_with_full_constant/", "", kRoundedConstant);
  }

  using Measure = double (*)(std::span<const double>, std::span<const double>);

  // Compares a tensor of every parameter, in our layout, with a file that has Megatron-LM's.
  void compare_parameters(Run& run, const std::string& part, Tensor Param::* tensor,
                          Measure measure, double limit) {
    ExportedTensors golden(shapes_, dir_ / (part + ".safetensors"), true);
    for (const Param* param : run.state.params.all()) {
      Values expected(static_cast<size_t>(param->spec.shape.elements()));
      golden.weights.read(param->spec, whole_of(param->spec.shape), DType::f64,
                          reinterpret_cast<std::byte*>(expected.data()));
      Values got = read(*run.device, param->*tensor);
      if (param->spec.name.ends_with("attention.qkv.bias")) {
        // Softmax cancels the bias of the keys: rounding noise around 0.
        const auto third = static_cast<std::ptrdiff_t>(got.size() / 3);
        for (Values* each : {&got, &expected})
          each->erase(each->begin() + third, each->begin() + 2 * third);
      }
      check(part + "/" + param->spec.name, measure(got, expected), limit);
    }
    golden.weights.check_all_used();
  }

  void gradients() {
    Run run(*this, true, {.lr = 1});
    Exec ex = run.state.executor.exec();
    run.state.grads.begin_step(ex);
    run.state.executor.train(step(run.config, 0));
    compare_parameters(run, "grads", &Param::grad, relative_error, bound());
  }

  void adamw() {
    const Json golden = read_json(dir_ / "adamw.json");
    const OptimConfig optim = optim_of("adamw", golden.at("hyper"));
    Run run(*this, true, optim);
    std::map<std::string, Values> series;
    Exec ex = run.state.executor.exec();
    for (int64_t index = 0; index < steps(); ++index) {
      const StepResult result = run.stepper.step(step(run.config, index));
      for (const LossMean& loss : result.losses)
        series[std::string(loss.name) + " loss"].push_back(loss.value);
      series["loss"].push_back(result.loss);
      series["grad_norm"].push_back(result.grad_norm);
      series["clip_coefficient"].push_back(clip_coefficient(ex, optim.clip, result.grad_norm));
      series["lr"].push_back(result.lr);
    }
    const LossSums after = run.state.executor.evaluate(step(run.config, 0));
    series["loss_after_on_step_0"] = {total_loss(run.state.spec.losses, after)};
    const double limit = is_exact() ? kAfterTenSteps : bound();
    for (const auto& [key, values] : series) {
      const Json& stored = golden.at(key);
      const Values expected =
          stored.is_array() ? stored.get<Values>() : Values{stored.get<double>()};
      check("adamw/" + key, relative_error(values, expected), limit);
    }
    check_decayed(run, golden);
    compare_parameters(run, "adamw_after", &Param::value, is_exact() ? relative_error : rms_error,
                       is_exact() ? kAfterTenSteps : kAdamRmsBound);
  }

  void check_decayed(const Run& run, const Json& golden) {
    for (const bool decayed : {true, false}) {
      const char* key = decayed ? "decayed" : "not_decayed";
      int wrong = 0;
      const auto names = golden.at(key).get<std::vector<std::string>>();
      for (const std::string& name : names) {
        const auto ours = megatron_name(name);
        const Param* param = ours ? find_param(run, *ours) : nullptr;
        wrong += param == nullptr || param->spec.decays() != decayed ? 1 : 0;
      }
      check(std::string("adamw/") + key, wrong + (names.empty() ? 1 : 0), 0);
    }
  }

  static const Param* find_param(const Run& run, const MegatronName& name) {
    std::string ours = name.ours;
    if (const size_t star = ours.find('*'); star != std::string::npos)
      ours.replace(star, 1, std::to_string(name.layer));
    for (const Param* param : run.state.params.all())
      if (param->spec.name == ours) return param;
    return nullptr;
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
