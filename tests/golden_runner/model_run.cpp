#include "golden_runner/model_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "checkpoint/safetensors.h"
#include "ops/make_device.h"
#include "ops/update.h"
#include "support/whole_forward.h"

namespace bev::golden {

namespace {

constexpr double kHalfLossScale = 256;

Config config_of(const HuggingFaceModel& model, const Tokens& tokens, const Place& place,
                 const OptimConfig& optim) {
  Config c;
  c.model = model.model;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.train.sequence = tokens.length;
  c.train.micro_batch = tokens.batch;
  c.train.global_batch = tokens.batch * tokens.micros;
  c.train.iterations = tokens.steps;
  c.optim = optim;
  c.device.kind = place.device;
  c.device.precision = place.precision;
  // A fixed one: that of the search for the largest would skip the first steps.
  if (place.precision == Precision::F16) c.loss.scale = kHalfLossScale;
  return c;
}

// A tensor of its own outside the arenas.
struct Output {
  Output(Device& device, DType dtype, const Shape& shape)
      : buffer(device, static_cast<size_t>(shape.elements()) * size_of(dtype), "golden"),
        tensor(tensor_over(buffer.data(), dtype, shape)) {}

  NamedValues read(Device& device, std::string name) const {
    std::vector<std::byte> bytes(buffer.bytes());
    device.download(buffer.data(), bytes.data(), bytes.size());
    NamedValues out{std::move(name), tensor.shape,
                    Values(static_cast<size_t>(tensor.shape.elements()))};
    convert_elements(bytes, tensor.dtype, std::as_writable_bytes(std::span(out.values)),
                     DType::f64);
    return out;
  }

  Buffer buffer;
  Tensor tensor;
};

}  // namespace

Tokens::Tokens(const std::filesystem::path& file) {
  const SafetensorsReader reader(file);
  const StoredTensor& stored = reader.at("tokens");
  BEV_CHECK(stored.dtype == DType::i32 && stored.shape.rank() == 4, Data,
            "{}: tokens are {} {}, not I32 of rank 4", file.string(), stored.dtype_name,
            to_string(stored.shape));
  steps = stored.shape[0];
  micros = stored.shape[1];
  batch = stored.shape[2];
  length = stored.shape[3] - 1;
  ids.resize(static_cast<size_t>(stored.shape.elements()));
  std::memcpy(ids.data(), reader.bytes(stored).data(), stored.bytes);
}

std::vector<HostBatch> Tokens::step(int64_t index) const {
  std::vector<HostBatch> batches(static_cast<size_t>(micros));
  for (int64_t micro = 0; micro < micros; ++micro) {
    HostBatch& host = batches[static_cast<size_t>(micro)];
    host.resize(batch, length, false);
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t sample = (index * micros + micro) * batch + row;
      for (int64_t t = 0; t < length; ++t) {
        const auto to = static_cast<size_t>(row * length + t);
        const auto from = static_cast<size_t>(sample * (length + 1) + t);
        host.tokens[to] = ids[from];
        host.targets[to] = ids[from + 1];
        host.positions[to] = static_cast<int32_t>(t);
        host.weight[to] = 1;
        host.rows[to] = sample * length + t;
      }
    }
  }
  return batches;
}

ModelRun::ModelRun(const std::filesystem::path& dir, const Tokens& tokens, const Place& place,
                   const OptimConfig& optim)
    : model_(read_huggingface_config(dir)),
      config_(config_of(model_, tokens, place, optim)),
      plan_(dry_run(config_)),
      device_(make_device(place.device, plan_.threads)),
      assembly_(config_, *device_, plan_.arenas),
      stepper_(assembly_, lr_schedule_from(config_, plan_.batch.global_batch, plan_.iterations)) {
  load_huggingface(dir, assembly_.params);
  Exec ex = assembly_.executor.exec();
  assembly_.optimizer.refresh_master(ex);
}

std::vector<NamedValues> ModelRun::forward(const HostBatch& batch) {
  const DType dtype = assembly_.params.dtype();
  const Shape shape{batch.tokens_count(), plan_.model.width};
  std::vector<Output> hidden;
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i <= plan_.model.layers; ++i) {
    tensors.push_back(hidden.emplace_back(*device_, dtype, shape).tensor);
  }
  const Output final_norm(*device_, dtype, shape);
  const Output logits(*device_, dtype, {batch.tokens_count(), plan_.model.padded_vocab});
  test::whole_forward(
      assembly_, batch,
      {.hidden = tensors, .final_norm = final_norm.tensor, .logits = logits.tensor});
  std::vector<NamedValues> out;
  out.push_back(logits.read(*device_, "logits"));
  for (size_t i = 0; i < hidden.size(); ++i) {
    out.push_back(hidden[i].read(*device_, "hidden_" + std::to_string(i)));
  }
  out.push_back(final_norm.read(*device_, "final_norm"));
  return out;
}

std::vector<NamedValues> ModelRun::named(Tensor Param::* tensor) {
  std::vector<NamedValues> all;
  for (const Param* param : assembly_.params.all()) {
    for (NamedValues& values : huggingface_values(model_.family, param->spec, param->*tensor,
                                                  *device_, plan_.model.vocab)) {
      all.push_back(std::move(values));
    }
  }
  return all;
}

std::vector<NamedValues> ModelRun::gradients(const std::vector<HostBatch>& batches) {
  Exec ex = assembly_.executor.exec();
  assembly_.grads.begin_step(ex);
  assembly_.executor.train(batches);
  std::vector<NamedValues> all = named(&Param::grad);
  if (config_.loss.scale > 0) {
    for (NamedValues& gradient : all) {
      for (double& value : gradient.values) value /= config_.loss.scale;
    }
  }
  return all;
}

std::vector<NamedValues> ModelRun::weights() { return named(&Param::value); }

double ModelRun::mean_loss(const std::vector<HostBatch>& batches) {
  return assembly_.executor.evaluate(batches).front().mean();
}

OptimConfig optim_of(const std::string& kind, const Json& hyper) {
  OptimConfig o;
  o.weight_decay = hyper.at("weight_decay").get<double>();
  o.clip = hyper.at("clip_grad").get<double>();
  if (kind == "sgd") {
    o.kind = OptimizerKind::Sgd;
    o.lr = hyper.at("lr").get<double>();
    o.momentum = hyper.at("momentum").get<double>();
    o.decay = LrDecay::Constant;
    return o;
  }
  o.lr = hyper.at("max_lr").get<double>();
  o.min_lr = hyper.at("min_lr").get<double>();
  o.warmup_init = hyper.at("init_lr").get<double>();
  o.warmup_iterations = hyper.at("warmup_steps").get<int64_t>();
  o.decay_iterations = hyper.at("decay_steps").get<int64_t>();
  const auto& styles = EnumNames<LrDecay>::names;
  const auto style = std::find(styles.begin(), styles.end(),
                               hyper.at("decay_style").get_ref<const std::string&>());
  o.decay = static_cast<LrDecay>(style - styles.begin());
  o.beta1 = hyper.at("beta1").get<double>();
  o.beta2 = hyper.at("beta2").get<double>();
  o.eps = hyper.at("eps").get<double>();
  return o;
}

double clip_coefficient(Exec& ex, double clip, double grad_norm) {
  Device& device = ex.device;
  const Output squared(device, DType::f64, {1}), loss(device, DType::f64, {2});
  const Output state(device, DType::f64, {kUpdateStates});
  const Output decision(device, DType::f64, {kUpdateDecisions});
  const double value = grad_norm * grad_norm;
  device.upload(&value, squared.tensor.data, sizeof(value));
  double start[kUpdateStates];
  reset_update_state({}, start);
  device.upload(start, state.tensor.data, sizeof start);
  ops::decide_update(ex, {.norm_squared = squared.tensor,
                          .loss = loss.tensor,
                          .rule = {.max_norm = clip},
                          .state = state.tensor,
                          .decision = decision.tensor});
  return decision.read(device, "decision").values[kFactor];
}

double ModelRun::clip_coefficient(double grad_norm) {
  Exec ex = assembly_.executor.exec();
  return golden::clip_coefficient(ex, config_.optim.clip, grad_norm);
}

std::vector<std::string> ModelRun::names(bool decayed) {
  std::vector<std::string> names;
  for (const Param* param : assembly_.params.all()) {
    if (param->spec.decays() != decayed) continue;
    for (const NamedValues& values : huggingface_values(model_.family, param->spec, param->value,
                                                        *device_, plan_.model.vocab)) {
      names.push_back(values.name);
    }
  }
  return names;
}

}  // namespace bev::golden
