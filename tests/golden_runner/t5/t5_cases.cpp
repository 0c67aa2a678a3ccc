// T5 against Megatron-LM and transformers: states of all layers, logits, losses and gradients; with
// Megatron-LM's also ten steps of AdamW that average micro-batches. In float64 its fused GELU gets
// its constant (megatron_gelu.h).
#include <algorithm>
#include <map>
#include <memory>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "convert/huggingface/huggingface_weights.h"
#include "golden_runner/cases.h"
#include "golden_runner/megatron_export.h"
#include "golden_runner/megatron_gelu.h"
#include "golden_runner/model_run.h"
#include "golden_runner/places.h"
#include "golden_runner/t5/t5_tensors.h"
#include "model/family/family.h"
#include "ops/make_device.h"
#include "support/tolerance.h"
#include "train/training_state.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

constexpr double kT5AfterTenSteps = 1e-10;

// What the folders of both programs have in common.
class T5Cases {
 public:
  T5Cases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir), name_(std::move(name)), place_(place), report_(report) {
    const SafetensorsReader file(dir / "inputs.safetensors");
    for (const StoredTensor& stored : file.tensors()) {
      shapes_[stored.name] = stored.shape;
      for (const double value : file.read_f64(stored))
        values_[stored.name].push_back(static_cast<int32_t>(value));
    }
  }
  virtual ~T5Cases() = default;

 protected:
  // The model of the folder, ready to train.
  struct Run {
    Run(const T5Cases& cases, const Config& c, bool has_megatron_gelu)
        : config(c),
          plan(dry_run(config)),
          device(has_megatron_gelu ? make_megatron_reference()
                                   : make_device(cases.place_.device, plan.threads)),
          state(config, *device, plan.arenas),
          stepper(state, lr_schedule_from(config, plan.batch.global_batch, plan.iterations)) {
      const std::shared_ptr<WeightSource> weights = cases.tensors("model");
      load_weights(*weights, state.params);
      weights->check_all_used();
      Exec ex = state.executor.exec();
      state.optimizer.refresh_master(ex);
    }

    Config config;
    Plan plan;
    std::unique_ptr<Device> device;
    TrainingState state;
    StepRunner stepper;
  };

  bool is_exact() const { return place_.device == DeviceKind::Reference; }

  double bound(const Config& c) const {
    if (is_exact()) return 1e-12;
    const ModelConfig& m = c.model;
    const int64_t layers = m.layers + m.decoder_layers;
    return test::tolerance(place_.dtype(), std::max({m.width, m.ffn, m.vocab}),
                           static_cast<int>(2 * (3 * layers + 4)));
  }

  void check(const std::string& part, double error, double limit) {
    report_.check(name_ + "/" + part, place_.name(), error, limit);
  }

  // A file of the folder, read through the import of the program that wrote it.
  virtual std::shared_ptr<WeightSource> tensors(const std::string& part) const = 0;

  Config with_place(Config c) const {
    c.model.hidden_dropout = c.model.attention_dropout = 0;
    c.optim.lr = 1;
    c.device.kind = place_.device;
    c.device.precision = place_.precision;
    return c;
  }

  // Sequence `from` of an input becomes sequence `at` of a text.
  void fill(HostText& text, int64_t at, const std::string& input, int64_t from,
            int64_t length) const {
    for (int64_t i = 0; i < text.length; ++i) {
      const auto row = static_cast<size_t>(at * text.length + i);
      text.tokens[row] = values_.at(input)[static_cast<size_t>(from * text.length + i)];
      text.positions[row] = static_cast<int32_t>(i);
    }
    text.lengths[static_cast<size_t>(at)] = static_cast<int32_t>(length);
  }

  void compare_forward(Run& run, const HostBatch& host,
                       const std::map<std::string, std::string>& ours_by_theirs,
                       const std::string& prefix) {
    const std::map<std::string, Values> ours = t5_forward(run.state, host);
    const SafetensorsReader forward(dir_ / "forward.safetensors");
    for (const auto& [theirs, name] : ours_by_theirs) {
      const auto found = ours.find(name);
      if (found == ours.end()) {
        report_.fail(name_ + "/forward/" + prefix + theirs, place_.name(),
                     "we have no such tensor");
        continue;
      }
      const StoredTensor& stored = forward.at(prefix + theirs);
      Values expected = forward.read_f64(stored);
      if (stored.shape.rank() == 3) {
        const bool is_encoder = theirs.starts_with("encoder");
        expected = without_padding(expected, host.text(is_encoder ? kEncoderText : kDecoderText));
      }
      check("forward/" + prefix + theirs, relative_error(found->second, expected),
            bound(run.config));
    }
    const std::vector<HostBatch> batches{host};
    const LossSums sums = run.state.executor.evaluate(batches);
    check("forward/" + prefix + "loss",
          relative_error(Values{sums[0].mean()}, forward.read_f64(forward.at(prefix + "loss"))),
          bound(run.config));
  }

  using Measure = double (*)(std::span<const double>, std::span<const double>);

  // Compares a tensor of every parameter, in our layout, with a file of the folder.
  void compare_parameters(Run& run, const std::string& part, Tensor Param::* tensor,
                          Measure measure, double limit) {
    const std::shared_ptr<WeightSource> golden = tensors(part);
    for (const Param* param : run.state.params.all()) {
      const std::string& name = param->spec.name;
      Values got = values_on(*run.device, param->*tensor), expected(got.size());
      (void)golden->dtype_of(param->spec);
      golden->read(param->spec, whole_of(param->spec.shape), DType::f64,
                   reinterpret_cast<std::byte*>(expected.data()));
      // Softmax cancels the bias of the keys: rounding noise around 0.
      const auto drop = [&](size_t part_index, size_t parts) {
        for (Values* each : {&got, &expected}) {
          const auto size = static_cast<ptrdiff_t>(each->size() / parts);
          const auto begin = each->begin() + static_cast<ptrdiff_t>(part_index) * size;
          each->erase(begin, begin + size);
        }
      };
      if (name.ends_with("attention.qkv.bias")) drop(1, 3);
      if (name.ends_with("cross_attention.kv.bias")) drop(0, 2);
      check(part + "/" + name, measure(got, expected), limit);
    }
    golden->check_all_used();
  }

  void compare_gradients(Run& run, const std::vector<HostBatch>& batches) {
    Exec ex = run.state.executor.exec();
    run.state.grads.begin_step(ex);
    run.state.executor.train(batches);
    compare_parameters(run, "grads", &Param::grad, relative_error, bound(run.config));
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, std::vector<int32_t>> values_;
};

class MegatronT5Cases : public T5Cases {
 public:
  MegatronT5Cases(const fs::path& dir, const std::string& name, const Place& place, Report& report)
      : T5Cases(dir, name, place, report), model_(read_json(dir / "config.json").at("shapes")) {}

  void run() {
    for (const bool has_fused_gelu : {true, false}) forward(has_fused_gelu);
    Run run = start({.lr = 1}, true);
    compare_gradients(run, step(run.config, 0));
    adamw();
  }

 private:
  int64_t size(const char* key) const { return model_.at(key).get<int64_t>(); }

  std::shared_ptr<WeightSource> tensors(const std::string& part) const override {
    const auto exported =
        std::make_shared<ExportedTensors>(model_, dir_ / (part + ".safetensors"), true);
    return {exported, &exported->weights};
  }

  Run start(const OptimConfig& optim, bool has_fused_gelu) const {
    Config c;
    c.model = ExportedTensors(model_, dir_ / "model.safetensors", has_fused_gelu).model.model;
    c.train.sequence = size("encoder_seq");
    c.train.decoder_sequence = size("decoder_seq");
    c.train.micro_batch = size("batch");
    c.train.global_batch = size("batch") * size("micro_batches");
    c.train.iterations = shapes_.at("text_enc")[0];
    c.loss.average = LossAverage::MicroBatch;
    c = with_place(c);
    c.optim = optim;
    return {*this, c, is_exact()};
  }

  // Ids from 1 on are tokens.
  int64_t length_of(const std::string& input, int64_t sequence, int64_t length) const {
    const auto begin = values_.at(input).begin() + sequence * length;
    return std::count_if(begin, begin + length, [](int32_t id) { return id >= 1; });
  }

  HostBatch batch(const Config& c, int64_t micro) const {
    HostBatch host;
    host.resize(size("batch"), model_spec(c).batch);
    for (int64_t at = 0; at < host.sequences; ++at) {
      const int64_t from = micro * host.sequences + at;
      HostText &encoder = host.text(kEncoderText), &decoder = host.text(kDecoderText);
      fill(encoder, at, "text_enc", from, length_of("text_enc", from, encoder.length));
      fill(decoder, at, "text_dec", from, length_of("text_dec", from, decoder.length));
      for (int64_t i = 0; i < decoder.length; ++i) {
        const auto row = static_cast<size_t>(at * decoder.length + i);
        const auto there = static_cast<size_t>(from * decoder.length + i);
        decoder.targets[row] = std::max(values_.at("labels")[there], 0);
        decoder.weight[row] = static_cast<float>(values_.at("loss_mask")[there]);
      }
      host.number_rows(at, at);
    }
    return host;
  }

  // All micro-batches of a step.
  std::vector<HostBatch> step(const Config& c, int64_t index) const {
    std::vector<HostBatch> batches;
    for (int64_t micro = 0; micro < size("micro_batches"); ++micro)
      batches.push_back(batch(c, index * size("micro_batches") + micro));
    return batches;
  }

  // unmasked_cross_* are left out: their code lets padding attend evenly to all tokens, which ours
  // never computes.
  void forward(bool has_fused_gelu) {
    Run run = start({.lr = 1}, has_fused_gelu);
    std::map<std::string, std::string> names{{"lm_logits", "lm_logits"}};
    for (const std::string side : {"encoder", "decoder"}) {
      if (!has_fused_gelu) break;
      for (int64_t i = 0; i <= size((side + "_layers").c_str()); ++i) {
        const std::string name = side + "_hidden_" + std::to_string(i);
        names[name] = name;
      }
      names[side + "_final_norm"] = side + "_final_norm";
    }
    compare_forward(run, batch(run.config, 0), names, has_fused_gelu ? "" : "erf_");
  }

  void adamw() {
    const Json golden = read_json(dir_ / "adamw.json");
    const OptimConfig optim = optim_of("adamw", golden.at("hyper"));
    Run run = start(optim, true);
    std::map<std::string, Values> series;
    Exec ex = run.state.executor.exec();
    for (int64_t index = 0; index < shapes_.at("text_enc")[0]; ++index) {
      const StepResult result = run.stepper.step(step(run.config, index));
      series["loss"].push_back(result.loss);
      series["grad_norm"].push_back(result.grad_norm);
      series["clip_coefficient"].push_back(clip_coefficient(ex, optim.clip, result.grad_norm));
      series["lr"].push_back(result.lr);
    }
    const LossSums after = run.state.executor.evaluate(step(run.config, 0));
    series["loss_after_on_step_0"] = {total_loss(run.state.spec.losses, after)};
    const double limit = is_exact() ? kT5AfterTenSteps : bound(run.config);
    for (const auto& [key, values] : series) {
      const Json& stored = golden.at(key);
      const Values expected =
          stored.is_array() ? stored.get<Values>() : Values{stored.get<double>()};
      check("adamw/" + key, relative_error(values, expected), limit);
    }
    compare_parameters(run, "adamw_after", &Param::value, is_exact() ? relative_error : rms_error,
                       is_exact() ? kT5AfterTenSteps : kAdamRmsBound);
  }

  Json model_;
};

class HuggingFaceT5Cases : public T5Cases {
 public:
  HuggingFaceT5Cases(const fs::path& dir, const std::string& name, const Place& place,
                     Report& report)
      : T5Cases(dir, name, place, report) {}

  void run() {
    Run run(*this, config(), false);
    const std::vector<HostBatch> batches{batch(run.config)};
    std::map<std::string, std::string> names{{"logits", "lm_logits"}};
    for (const std::string side : {"encoder", "decoder"}) {
      const int64_t layers =
          side == "encoder" ? run.config.model.layers : run.config.model.decoder_layers;
      for (int64_t i = 0; i < layers; ++i) {
        const std::string name = side + "_hidden_" + std::to_string(i);
        names[name] = name;
      }
      names[side + "_last"] = side + "_final_norm";
      names[side + "_position_bias"] = side + "_position_bias";
    }
    compare_forward(run, batches.front(), names, "");
    compare_gradients(run, batches);
  }

 private:
  // A file of gradients as the weights of a model.
  struct Folder {
    Folder(const fs::path& config, const fs::path& file)
        : weights([&] {
            fs::copy_file(config, scratch.path() / kHuggingFaceConfig);
            fs::copy_file(file, scratch.path() / kHuggingFaceWeights);
            return scratch.path();
          }()) {}

    ScratchFolder scratch;
    HuggingFaceWeights weights;
  };

  std::shared_ptr<WeightSource> tensors(const std::string& part) const override {
    const auto folder =
        std::make_shared<Folder>(dir_ / kHuggingFaceConfig, dir_ / (part + ".safetensors"));
    return {folder, &folder->weights};
  }

  Config config() const {
    Config c;
    c.model = read_huggingface_config(dir_).model;
    c.train.sequence = shapes_.at("input_ids")[1];
    c.train.decoder_sequence = shapes_.at("labels")[1];
    c.train.micro_batch = c.train.global_batch = shapes_.at("labels")[0];
    c.train.iterations = 1;
    return with_place(c);
  }

  HostBatch batch(const Config& c) const {
    HostBatch host;
    host.resize(c.train.micro_batch, model_spec(c).batch);
    HostText &encoder = host.text(kEncoderText), &decoder = host.text(kDecoderText);
    for (int64_t at = 0; at < host.sequences; ++at) {
      const auto mask = values_.at("attention_mask").begin() + at * encoder.length;
      fill(encoder, at, "input_ids", at, std::count(mask, mask + encoder.length, 1));
      fill(decoder, at, "decoder_input_ids", at, decoder.length);
      for (int64_t i = 0; i < decoder.length; ++i) {
        const auto row = static_cast<size_t>(at * decoder.length + i);
        const int32_t label = values_.at("labels")[row];
        decoder.targets[row] = std::max(label, 0);
        decoder.weight[row] = label >= 0 ? 1.0f : 0.0f;
      }
      host.number_rows(at, at);
    }
    return host;
  }
};

template <class Cases>
void run_t5_cases(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report)) {
    if (place.is_short()) continue;
    report.guarded(name, place.name(), [&] { Cases(dir, name, place, report).run(); });
  }
}

}  // namespace

bool is_t5(const fs::path& dir) {
  return fs::exists(dir / "config.json") && fs::exists(dir / "inputs.safetensors") &&
         read_json(dir / "config.json").value("model_type", "") == "t5";
}

void run_t5(const fs::path& dir, const std::string& name, Report& report) {
  run_t5_cases<HuggingFaceT5Cases>(dir, name, report);
}

bool is_t5_megatron(const fs::path& dir) {
  return fs::exists(dir / "config.json") && fs::exists(dir / "inputs.safetensors") &&
         fs::exists(dir / "adamw.json") &&
         SafetensorsReader(dir / "inputs.safetensors").find("text_enc") != nullptr;
}

void run_t5_megatron(const fs::path& dir, const std::string& name, Report& report) {
  run_t5_cases<MegatronT5Cases>(dir, name, report);
}

}  // namespace bev::golden
