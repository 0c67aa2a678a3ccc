// LAMB and its variants: ten steps of the optimizer on given gradients, on one rank and on two
// tensor-parallel ranks.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "comm/thread_communicator.h"
#include "golden_runner/cases.h"
#include "golden_runner/places.h"
#include "ops/make_device.h"
#include "ops/update.h"
#include "optim/grad_reducer.h"
#include "optim/optimizer.h"
#include "support/tolerance.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

using Series = std::vector<double>;

struct Variant {
  std::string_view name;
  void (*set)(OptimConfig& optim, double alpha);
  bool is_per_rank = false;  // the file has the shards of two ranks
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"apex", [](OptimConfig& o, double) { o.kind = OptimizerKind::Lamb; }},
      {"apex_nvlamb",
       [](OptimConfig& o, double) {
         o.kind = OptimizerKind::Lamb;
         o.nvlamb = true;
       }},
      {"apex_l2",
       [](OptimConfig& o, double) {
         o.kind = OptimizerKind::Lamb;
         o.lamb_decoupled = false;
       }},
      {"apex_raw",
       [](OptimConfig& o, double) {
         o.kind = OptimizerKind::Lamb;
         o.lamb_bias_correction = o.lamb_grad_averaging = false;
       }},
      {"paper", [](OptimConfig& o, double) { o.kind = OptimizerKind::LambPaper; }},
      {"paper_v3", [](OptimConfig& o, double) { o.kind = OptimizerKind::LambPreprint; }},
      {"mylamb", [](OptimConfig& o, double) { o.kind = OptimizerKind::MyLamb; }},
      {"mylamb2", [](OptimConfig& o, double) { o.kind = OptimizerKind::MyLamb2; }},
      {"mylamb3",
       [](OptimConfig& o, double alpha) {
         o.kind = OptimizerKind::MyLamb3;
         o.alpha = alpha;
       }},
      {"mylamb3_alpha_quarter",
       [](OptimConfig& o, double) {
         o.kind = OptimizerKind::MyLamb3;
         o.alpha = 0.25;
       }},
      {"lambtp_solution0", [](OptimConfig& o, double) { o.lambtp_solution = 0; }, true},
      {"lambtp_solution1", [](OptimConfig& o, double) { o.lambtp_solution = 1; }, true},
      {"lambtp_solution2", [](OptimConfig& o, double) { o.lambtp_solution = 2; }, true},
      {"lambtp_solution3", [](OptimConfig& o, double) { o.lambtp_solution = 3; }, true},
  };
  return all;
}

// The values of tensors after each step, by quantity and name: "param.dense.bias"; of a rank's
// shard: "rank0.param.dense.bias".
using TensorSeries = std::map<std::string, Series>;

class LambCases {
 public:
  LambCases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        place_(place),
        report_(report),
        steps_(read_json(dir / "steps.json")),
        hyper_(steps_.at("hyper")),
        rates_(hyper_.at("lr").get<Series>()),
        inputs_(dir / "inputs.safetensors") {
    const auto decayed = steps_.at("decayed").get<std::vector<std::string>>();
    const SafetensorsReader shards(dir / "lambtp_solution0.safetensors");
    for (const StoredTensor& stored : inputs_.tensors()) {
      constexpr std::string_view kParam = "param.";
      if (!stored.name.starts_with(kParam)) continue;
      ParamSpec spec{.name = stored.name.substr(kParam.size()), .shape = stored.shape};
      const bool decays = std::find(decayed.begin(), decayed.end(), spec.name) != decayed.end();
      spec.role = decays ? Role::Matrix : Role::Bias;
      const Shape& shard = shards.at("rank0.param." + spec.name).shape;  // after its steps
      for (int dim = 0; dim < spec.shape.rank(); ++dim)
        if (shard[dim + 1] != spec.shape[dim]) spec.place.cut = Cut{dim, Axis::Tensor};
      specs_.push_back(spec);
    }
  }

  void run() {
    for (const auto& [variant, steps] : steps_.at("steps").items()) {
      const auto known = std::find_if(variants().begin(), variants().end(),
                                      [&](const Variant& v) { return v.name == variant; });
      const std::string case_name = name_ + "/" + variant;
      if (known == variants().end()) {
        report_.skip(case_name, kNotYet);
        continue;
      }
      report_.guarded(case_name, place_.name(), [&] {
        if (!known->is_per_rank) compare(case_name, *known, 1);
        compare(case_name + "/tensor2", *known, 2);
      });
    }
  }

 private:
  double bound() const {
    if (place_.device == DeviceKind::Reference) return 1e-12;
    int64_t most = 0;
    for (const ParamSpec& spec : specs_) most = std::max(most, spec.shape.elements());
    return test::tolerance(place_.dtype(), most, static_cast<int>(2 * rates_.size()));
  }

  OptimConfig optim_of(const Variant& variant) const {
    OptimConfig o{.kind = OptimizerKind::LambTp};
    o.beta1 = hyper_.at("beta1").get<double>();
    o.beta2 = hyper_.at("beta2").get<double>();
    o.eps = hyper_.at("eps").get<double>();
    o.lamb_clip = hyper_.at("max_grad_norm").get<double>();
    variant.set(o, hyper_.at("alpha").get<double>());
    return o;
  }

  // "param" of "param.dense.bias", "rank0.param" of "rank0.param.dense.bias".
  static std::string quantity_of(const std::string& tensor) {
    const size_t first = tensor.find('.');
    return tensor.substr(0, tensor.starts_with("rank") ? tensor.find('.', first + 1) : first);
  }

  // One line per quantity, with the worst of its tensors.
  void compare(const std::string& case_name, const Variant& variant, int tensor) {
    const TensorSeries course = train(optim_of(variant), tensor, variant.is_per_rank);
    const SafetensorsReader golden(dir_ / (std::string(variant.name) + ".safetensors"));
    // Variants whose files have parameters only have the moments of this one, if any.
    const SafetensorsReader moments(dir_ / "mylamb.safetensors");
    std::map<std::string, double> worst;
    std::set<std::string> compared;
    for (const auto& [tensor_name, values] : course) {
      const StoredTensor* stored = golden.find(tensor_name);
      const SafetensorsReader& source = stored != nullptr ? golden : moments;
      if (stored == nullptr && !variant.is_per_rank) stored = moments.find(tensor_name);
      if (stored == nullptr) continue;
      compared.insert(tensor_name);
      const double error = relative_error(values, source.read_f64(*stored));
      double& most = worst[quantity_of(tensor_name)];
      most = std::max(most, error == error ? error : 1e300);
    }
    for (const auto& [quantity, error] : worst)
      report_.check(case_name + "/" + quantity, place_.name(), error, bound());
    for (const StoredTensor& stored : golden.tensors())
      if (!compared.contains(stored.name))
        report_.fail(case_name + "/" + stored.name, place_.name(), "we have no such tensor");
  }

  TensorSeries train(const OptimConfig& optim, int tensor, bool by_rank) const {
    TensorSeries course;
    std::mutex mutex;
    run_ranks(tensor, std::chrono::seconds(60), [&](Communicator& world) {
      const TensorSeries own = train_rank(optim, world, by_rank);
      const std::lock_guard lock(mutex);
      // Ranks have zeros where others own elements.
      for (const auto& [name, values] : own) {
        Series& sum = course[name];
        sum.resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
      }
    });
    return course;
  }

  TensorSeries train_rank(const OptimConfig& optim, Communicator& world, bool by_rank) const {
    const ParallelLayout layout{.tensor = world.size()};
    ProcessGroups groups(layout, world);
    const std::unique_ptr<Device> device = make_device(place_.device, 1);
    ParamStore params(*device, layout, world.rank(), place_.dtype());
    for (const ParamSpec& spec : specs_) params.declare(spec);
    params.allocate();
    GradBuffer grads(params);
    GradReducer reducer(params, grads, groups);
    Optimizer optimizer(optim, params, grads, groups, 0);
    Arena none(*device, 0, "none"), scratch(*device, size_t{1} << 20, "scratch");
    Exec ex{*device, device->compute_stream(), none, scratch, none};
    for (const FlatParam& place : params.flat())
      put(*device, *place.param, inputs_.read_f64(inputs_.at("param." + place.param->spec.name)),
          place.param->value);
    optimizer.refresh_master(ex);

    const Buffer memory(*device, (3 + kUpdateStates + kUpdateDecisions) * sizeof(double), "golden");
    const Tensor all =
        tensor_over(memory.data(), DType::f64, {3 + kUpdateStates + kUpdateDecisions});
    const Tensor norm = slice(all, 0, 0, 1), loss = slice(all, 0, 1, 2);
    const Tensor state = slice(all, 0, 3, kUpdateStates);
    const Tensor decision = slice(all, 0, 3 + kUpdateStates, kUpdateDecisions);
    std::vector<double> start(kUpdateStates);
    reset_update_state({}, start.data());
    device->upload(start.data(), state.data, bytes_of(state));

    TensorSeries course;
    for (size_t step = 0; step < rates_.size(); ++step) {
      reducer.begin_step(ex);
      for (const FlatParam& place : params.flat())
        put(*device, *place.param, gradient(place.param->spec, step), place.param->grad);
      reducer.reduce(ex);
      reducer.squared_norm(ex, norm);
      UpdateRule rule;
      rule.schedule = {.max_lr = rates_[step],
                       .style = LrDecay::Constant,
                       .end_wd = hyper_.at("weight_decay").get<double>()};
      ops::decide_update(
          ex,
          {.norm_squared = norm, .loss = loss, .rule = rule, .state = state, .decision = decision});
      optimizer.step(ex, decision);
      ex.stream.synchronize();
      record(params, optimizer, by_rank, course);
    }
    return course;
  }

  Series gradient(const ParamSpec& spec, size_t step) const {
    const Series all = inputs_.read_f64(inputs_.at("grad." + spec.name));
    const auto begin = all.begin() + static_cast<int64_t>(step) * spec.shape.elements();
    return {begin, begin + spec.shape.elements()};
  }

  // Uploads this rank's part of a logical tensor.
  static void put(Device& device, const Param& param, const Series& logical, const Tensor& to) {
    Series local(static_cast<size_t>(param.value.shape.elements()));
    visit_runs(param.pieces, param.value.shape, param.spec.shape,
               [&](int64_t into, int64_t from, int64_t count) {
                 std::copy_n(logical.begin() + from, count, local.begin() + into);
               });
    if (to.dtype == DType::f64) {
      device.upload(local.data(), to.data, bytes_of(to));
    } else {
      const std::vector<float> rounded(local.begin(), local.end());
      device.upload(rounded.data(), to.data, bytes_of(to));
    }
  }

  static Series downloaded(Device& device, const ConstTensor& t) {
    std::vector<std::byte> bytes(bytes_of(t));
    device.download(t.data, bytes.data(), bytes.size());
    const auto count = static_cast<size_t>(t.shape.elements());
    if (t.dtype == DType::f32) {
      const auto* values = reinterpret_cast<const float*>(bytes.data());
      return {values, values + count};
    }
    const auto* values = reinterpret_cast<const double*>(bytes.data());
    return {values, values + count};
  }

  // Adds what this rank has after a step.
  static void record(const ParamStore& params, const Optimizer& optimizer, bool by_rank,
                     TensorSeries& course) {
    const std::map<std::string_view, std::string> quantities{
        {"adam.m", "m."}, {"adam.v", "v."}, {"lamb.q", "q."}};
    for (const FlatParam& place : params.flat())
      append(params, place, downloaded(params.device(), place.param->value), "param.", by_rank,
             course);
    for (const OptimizerState& state : optimizer.states()) {
      const auto quantity = quantities.find(state.name);
      if (quantity == quantities.end()) continue;
      for (const UpdateRange& range : optimizer.ranges())
        append(params, *range.place,
               downloaded(params.device(), UpdateBuffers::state(state.flat, range)),
               quantity->second, by_rank, course);
    }
  }

  static void append(const ParamStore& params, const FlatParam& place, const Series& local,
                     const std::string& quantity, bool by_rank, TensorSeries& course) {
    const ParamSpec& spec = place.param->spec;
    const int64_t count = place.param->value.shape.elements();
    if (by_rank) {
      Series& course_of =
          course["rank" + std::to_string(params.rank()) + "." + quantity + spec.name];
      course_of.insert(course_of.end(), local.begin(), local.begin() + count);
      return;
    }
    Series& course_of = course[quantity + spec.name];
    const size_t begin = course_of.size();
    course_of.resize(begin + static_cast<size_t>(spec.shape.elements()));
    visit_runs(owned_pieces(spec, params.layout(), params.rank()), place.param->value.shape,
               spec.shape, [&](int64_t from, int64_t into, int64_t n) {
                 std::copy_n(local.begin() + from, n,
                             course_of.begin() + static_cast<int64_t>(begin) + into);
               });
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  Json steps_, hyper_;
  Series rates_;
  SafetensorsReader inputs_;
  std::vector<ParamSpec> specs_;
};

}  // namespace

bool is_lamb(const fs::path& dir) {
  return fs::exists(dir / "steps.json") && fs::exists(dir / "inputs.safetensors") &&
         fs::exists(dir / "mylamb.safetensors");
}

void run_lamb(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report)) {
    if (place.is_short()) continue;
    report.guarded(name, place.name(), [&] { LambCases(dir, name, place, report).run(); });
  }
}

}  // namespace bev::golden
