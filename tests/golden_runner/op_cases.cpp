// Single operations against PyTorch's float64 results, forward and backward.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "golden_runner/cases.h"
#include "golden_runner/places.h"
#include "ops/make_device.h"
#include "ops/op_table.h"
#include "support/tolerance.h"

namespace bev::golden {

namespace {

using Values = std::vector<double>;

// One execution of an op: its inputs from the file, its results compared with the file.
class OpCase {
 public:
  OpCase(const SafetensorsReader& file, std::string op, std::string name, Device& device,
         const Place& place, Report& report)
      : file_(file),
        op_(std::move(op)),
        name_(std::move(name)),
        place_(place),
        dtype_(place.dtype()),
        report_(report),
        device_(device),
        keep_(device, kArenaBytes, "golden"),
        scratch_(device, kArenaBytes, "golden"),
        recompute_(device, kArenaBytes, "golden"),
        exec_{device, device.compute_stream(), keep_, scratch_, recompute_} {}

  Exec& exec() { return exec_; }
  DType dtype() const { return dtype_; }
  DType sums() const { return accumulation_of(dtype_); }

  Shape shape(const std::string& key) const { return file_.at(op_ + "." + key).shape; }
  Values values(const std::string& key) const { return file_.read_f64(file_.at(op_ + "." + key)); }

  // A tensor on the device.
  Tensor make(const Shape& shape, DType dtype) { return keep_.allocate(shape, dtype, "golden"); }
  Tensor zeros(const Shape& shape, DType dtype) {
    const Tensor t = make(shape, dtype);
    ops::fill(exec_, {.out = t, .value = 0});
    return t;
  }
  Tensor put(const Values& values, const Shape& shape, DType dtype) {
    const Tensor t = make(shape, dtype);
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    if (dtype == DType::i32) {
      for (size_t i = 0; i < values.size(); ++i) {
        reinterpret_cast<int32_t*>(bytes.data())[i] = static_cast<int32_t>(values[i]);
      }
    } else {
      convert_elements(std::as_bytes(std::span(values)), DType::f64, bytes, dtype);
    }
    device_.upload(bytes.data(), t.data, bytes.size());
    return t;
  }
  Tensor input(const std::string& key, const Shape& as) {
    return put(values("in." + key), as, dtype_);
  }
  Values get(const ConstTensor& t) const {
    std::vector<std::byte> bytes(bytes_of(t));
    device_.download(t.data, bytes.data(), bytes.size());
    Values result(static_cast<size_t>(t.shape.elements()));
    convert_elements(bytes, t.dtype, std::as_writable_bytes(std::span(result)), DType::f64);
    return result;
  }

  // Distinguishes cases that compare with the same results.
  void set_variant(const std::string& variant) { variant_ = " (" + variant + ")"; }

  // `reduction` is the longest sum behind a result, `stores` how often it was rounded on the way.
  void compare(const std::string& key, const Values& got, int64_t reduction, int stores = 2) {
    const double bound = dtype_ == DType::f64 ? 1e-10 : test::tolerance(dtype_, reduction, stores);
    report_.check(name_ + variant_ + "." + key, place_.name(), relative_error(got, values(key)),
                  bound);
  }
  void compare(const std::string& key, const ConstTensor& got, int64_t reduction, int stores = 2) {
    compare(key, get(got), reduction, stores);
  }

 private:
  static constexpr size_t kArenaBytes = size_t{64} << 20;

  const SafetensorsReader& file_;
  std::string op_, name_, variant_;
  Place place_;
  DType dtype_;
  Report& report_;
  Device& device_;
  Arena keep_, scratch_, recompute_;
  Exec exec_;
};

int64_t rows_of(const Shape& shape) { return shape.elements() / shape[shape.rank() - 1]; }

void norm_case(OpCase& c, NormKind kind, double eps) {
  const int64_t rows = rows_of(c.shape("in.x")), width = c.shape("in.weight")[0];
  const bool is_layer_norm = kind == NormKind::LayerNorm;
  const Shape shape{rows, width};
  const Tensor x = c.input("x", shape), weight = c.input("weight", {width});
  const Tensor bias = is_layer_norm ? c.input("bias", {width}) : Tensor{};
  const Tensor y = c.make(shape, c.dtype()), rstd = c.make({rows}, c.sums());
  const Tensor mean = is_layer_norm ? c.make({rows}, c.sums()) : Tensor{};
  ops::norm(c.exec(), {.kind = kind,
                       .x = x,
                       .weight = weight,
                       .bias = bias,
                       .eps = eps,
                       .y = y,
                       .mean = mean,
                       .rstd = rstd});
  const Tensor dx = c.make(shape, c.dtype()), dweight = c.zeros({width}, c.sums());
  const Tensor dbias = is_layer_norm ? c.zeros({width}, c.sums()) : Tensor{};
  ops::norm_backward(c.exec(), {.kind = kind,
                                .dy = c.input("dy", shape),
                                .x = x,
                                .weight = weight,
                                .mean = mean,
                                .rstd = rstd,
                                .dx = dx,
                                .dweight = dweight,
                                .dbias = dbias});
  c.compare("out.y", y, width);
  c.compare("grad.x", dx, width);
  c.compare("grad.weight", dweight, rows);
  if (is_layer_norm) c.compare("grad.bias", dbias, rows);
}

void activation_case(OpCase& c, Activation activation) {
  const Shape shape = c.shape("in.x");
  const Tensor x = c.input("x", shape), y = c.make(shape, c.dtype()), dx = c.make(shape, c.dtype());
  ops::activate(c.exec(), {.activation = activation, .x = x, .y = y});
  ops::activate_backward(c.exec(),
                         {.activation = activation, .dy = c.input("dy", shape), .x = x, .dx = dx});
  c.compare("out.y", y, 1);
  c.compare("grad.x", dx, 1);
}

void gated_case(OpCase& c, Activation activation) {
  const int64_t rows = c.shape("in.gate")[0], n = c.shape("in.gate")[1];
  const Values gate = c.values("in.gate"), up = c.values("in.up");
  Values fused;
  for (int64_t row = 0; row < rows; ++row) {
    fused.insert(fused.end(), gate.begin() + row * n, gate.begin() + (row + 1) * n);
    fused.insert(fused.end(), up.begin() + row * n, up.begin() + (row + 1) * n);
  }
  const Tensor x = c.put(fused, {rows, 2 * n}, c.dtype());
  const Tensor y = c.make({rows, n}, c.dtype()), dx = c.make({rows, 2 * n}, c.dtype());
  ops::activate(c.exec(), {.activation = activation, .x = x, .y = y});
  ops::activate_backward(
      c.exec(), {.activation = activation, .dy = c.input("dy", {rows, n}), .x = x, .dx = dx});
  const Values both = c.get(dx);
  Values dgate, dup;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = both.begin() + row * 2 * n;
    dgate.insert(dgate.end(), begin, begin + n);
    dup.insert(dup.end(), begin + n, begin + 2 * n);
  }
  c.compare("out.y", y, 1);
  c.compare("grad.gate", dgate, 1);
  c.compare("grad.up", dup, 1);
}

// The file's [batch, heads, length, dim] and our [batch * length, heads, dim].
struct HeadLayout {
  int64_t batch, heads, length, dim;

  explicit HeadLayout(const Shape& s) : batch(s[0]), heads(s[1]), length(s[2]), dim(s[3]) {}
  Shape shape() const { return {batch * length, heads, dim}; }

  Values to_ours(const Values& theirs) const { return moved(theirs, true); }
  Values to_theirs(const Values& ours) const { return moved(ours, false); }

 private:
  Values moved(const Values& from, bool to_ours) const {
    Values to(from.size());
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < length; ++t) {
          for (int64_t i = 0; i < dim; ++i) {
            const auto theirs = static_cast<size_t>(((b * heads + h) * length + t) * dim + i);
            const auto ours = static_cast<size_t>(((b * length + t) * heads + h) * dim + i);
            to_ours ? to[ours] = from[theirs] : to[theirs] = from[ours];
          }
        }
      }
    }
    return to;
  }
};

// `rotary` dims of each head turn; `base` to the power of -2 i / rotary is the angle of position 1.
void rope_case(OpCase& c, double rotary_fraction, double base) {
  const HeadLayout layout(c.shape("in.x"));
  const auto rotary =
      static_cast<int64_t>(std::lround(static_cast<double>(layout.dim) * rotary_fraction));
  Values cosine, sine, positions;
  for (int64_t p = 0; p < layout.length; ++p) {
    for (int64_t i = 0; i < rotary / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary);
      const double angle = static_cast<double>(p) * std::pow(base, exponent);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  }
  for (int64_t t = 0; t < layout.batch * layout.length; ++t) {
    positions.push_back(static_cast<double>(t % layout.length));
  }
  const Shape table{layout.length, rotary / 2};
  const auto turn = [&](const char* key, bool inverse) {
    const Tensor x = c.put(layout.to_ours(c.values(key)), layout.shape(), c.dtype());
    ops::rope(c.exec(), {.x = x,
                         .positions = c.put(positions, {x.rows()}, DType::i32),
                         .cosine = c.put(cosine, table, c.sums()),
                         .sine = c.put(sine, table, c.sums()),
                         .inverse = inverse});
    return layout.to_theirs(c.get(x));
  };
  c.compare("out.y", turn("in.x", false), 2);
  c.compare("grad.x", turn("in.dy", true), 2);
}

void attention_case(OpCase& c, bool causal) {
  const HeadLayout q_layout(c.shape("in.q")), kv_layout(c.shape("in.k"));
  const auto put = [&](const char* key, const HeadLayout& layout) {
    return c.put(layout.to_ours(c.values(key)), layout.shape(), c.dtype());
  };
  const Tensor q = put("in.q", q_layout), k = put("in.k", kv_layout), v = put("in.v", kv_layout);
  const Tensor out = c.make(q.shape, c.dtype());
  const Tensor lse = c.make({q_layout.batch, q.shape[1], q.shape[0] / q_layout.batch}, c.sums());
  ops::AttentionMask mask{.causal = causal};
  if (!causal) {
    // Keys with mask 1 are adjacent.
    const std::vector<double> visible = c.values("in.key_mask");
    std::vector<double> first, lengths;
    for (int64_t sequence = 0; sequence < kv_layout.batch; ++sequence) {
      const auto begin = visible.begin() + sequence * kv_layout.length;
      const auto end = begin + kv_layout.length;
      const auto hidden_before = std::find(begin, end, 1.0) - begin;
      first.insert(first.end(), static_cast<size_t>(q_layout.length),
                   static_cast<double>(hidden_before));
      lengths.push_back(static_cast<double>(hidden_before + std::count(begin, end, 1.0)));
    }
    mask.document_start = c.put(first, {q.shape[0]}, DType::i32);
    mask.key_lengths = c.put(lengths, {q_layout.batch}, DType::i32);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(q_layout.dim));
  ops::attention(
      c.exec(),
      {{.q = q, .k = k, .v = v, .sequences = q_layout.batch, .scale = scale, .mask = mask},
       out,
       lse});
  const Tensor dq = c.make(q.shape, c.dtype());
  const Tensor dk = c.make(k.shape, c.dtype()), dv = c.make(v.shape, c.dtype());
  ops::attention_backward(
      c.exec(),
      {{.q = q, .k = k, .v = v, .sequences = q_layout.batch, .scale = scale, .mask = mask},
       put("in.dy", q_layout),
       out,
       lse,
       dq,
       dk,
       dv});
  const int64_t reduction = q_layout.dim + q_layout.length;
  c.compare("out.y", q_layout.to_theirs(c.get(out)), reduction);
  // The stored out takes part in the gradient, and GPUs multiply rounded P and dS.
  constexpr int kStores = 4;
  c.compare("grad.q", q_layout.to_theirs(c.get(dq)), reduction, kStores);
  c.compare("grad.k", kv_layout.to_theirs(c.get(dk)), reduction, kStores);
  c.compare("grad.v", kv_layout.to_theirs(c.get(dv)), reduction, kStores);
}

struct CrossEntropyCase {
  double smoothing = 0;
  bool megatron = false;   // smoothing by Megatron's definition
  bool per_token = false;  // y is a vector, dy weighs its entries
  const char* targets = "in.targets";
  bool masked = false;
};

void cross_entropy_case(OpCase& c, const CrossEntropyCase& p) {
  const Shape shape = c.shape("in.logits");
  const int64_t rows = shape[0], classes = shape[1];
  Values weights(static_cast<size_t>(rows), 1.0);
  if (p.masked) weights = c.values("in.loss_mask");
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (p.per_token) weights = c.values("in.dy");
  const auto count = static_cast<double>(classes);
  const double smoothing = p.megatron ? p.smoothing * count / (count - 1) : p.smoothing;

  const Tensor logits = c.input("logits", shape);
  const Tensor targets = c.put(c.values(p.targets), {rows}, DType::i32);
  const Tensor weight = c.put(weights, {rows}, DType::f32);
  const Tensor stats = c.make({rows, ops::kSoftmaxStats}, c.sums());
  const Tensor loss = c.make({rows}, c.sums()), dlogits = c.make(shape, c.dtype());
  const Tensor grad_scale = c.put({p.per_token ? 1.0 : 1.0 / total}, {1}, DType::f64);
  ops::softmax_stats(c.exec(), {.logits = logits, .targets = targets, .stats = stats});
  ops::cross_entropy(c.exec(), {.logits = logits,
                                .stats = stats,
                                .targets = targets,
                                .weight = weight,
                                .classes = classes,
                                .smoothing = smoothing,
                                .grad_scale = grad_scale,
                                .loss = loss,
                                .dlogits = dlogits});
  if (p.per_token) {
    c.compare("out.y", loss, classes);
  } else {
    const Tensor sums = c.zeros({2}, DType::f64);
    ops::weighted_sum(c.exec(), {.x = loss, .weight = weight, .out = sums});
    const Values both = c.get(sums);
    c.compare("out.y", Values{both[0] / total}, classes);
  }
  c.compare("grad.logits", dlogits, classes);
}

void embedding_case(OpCase& c) {
  const Shape table = c.shape("in.weight");
  const int64_t tokens = c.shape("in.ids").elements();
  const Tensor ids = c.put(c.values("in.ids"), {tokens}, DType::i32);
  const Tensor out = c.make({tokens, table[1]}, c.dtype());
  ops::embedding(c.exec(), {.table = c.input("weight", table), .ids = ids, .out = out});
  const Tensor dtable = c.zeros(table, c.sums());
  ops::embedding_backward(
      c.exec(), {.dout = c.input("dy", {tokens, table[1]}), .ids = ids, .dtable = dtable});
  c.compare("out.y", out, 1);
  c.compare("grad.weight", dtable, tokens);
}

// Gradients a and b clipped together. An SGD step of rate -1 from zero leaves the clipped gradient.
void clip_case(OpCase& c, double max_norm) {
  const Tensor norm_squared = c.zeros({1}, DType::f64),
               decision = c.make({kUpdateDecisions}, DType::f64);
  std::map<std::string, Tensor> gradients;
  int64_t elements = 0;
  for (const char* key : {"a", "b"}) {
    const int64_t count = c.shape(std::string("in.") + key).elements();
    gradients[key] = c.put(c.values(std::string("in.") + key), {count}, c.sums());
    ops::squared_norm(c.exec(), {.x = gradients[key], .out = norm_squared});
    elements += count;
  }
  UpdateRule rule{.max_norm = max_norm};
  rule.schedule = {.max_lr = -1, .style = LrDecay::Constant};
  Values started(kUpdateStates);
  reset_update_state(rule.scaling, started.data());
  ops::decide_update(c.exec(), {.norm_squared = norm_squared,
                                .loss = c.zeros({2}, DType::f64),
                                .rule = rule,
                                .state = c.put(started, {kUpdateStates}, DType::f64),
                                .decision = decision});
  c.compare("out.norm", Values{std::sqrt(c.get(norm_squared)[0])}, elements);
  for (const auto& [key, gradient] : gradients) {
    const Tensor param = c.zeros(gradient.shape, c.dtype());
    ops::sgd(c.exec(), {.param = param,
                        .buffer = c.zeros(gradient.shape, c.sums()),
                        .grad = gradient,
                        .decision = decision,
                        .momentum = 0});
    c.compare("out." + key, param, elements);
  }
}

// What the README of the golden models says about each op; constants are not in the file.
const std::map<std::string, std::function<void(OpCase&)>>& op_table() {
  constexpr double kSmoothing = 0.1, kClip = 0.5, kBase = 10000;
  static const std::map<std::string, std::function<void(OpCase&)>> table{
      {"layer_norm", [](OpCase& c) { norm_case(c, NormKind::LayerNorm, 1e-5); }},
      {"rms_norm", [](OpCase& c) { norm_case(c, NormKind::RmsNorm, 1e-6); }},
      {"gelu_tanh", [](OpCase& c) { activation_case(c, Activation::GeluTanh); }},
      {"gelu_erf", [](OpCase& c) { activation_case(c, Activation::GeluErf); }},
      {"squared_relu", [](OpCase& c) { activation_case(c, Activation::SquaredRelu); }},
      {"swiglu", [](OpCase& c) { gated_case(c, Activation::SwiGlu); }},
      {"geglu_tanh", [](OpCase& c) { gated_case(c, Activation::GeGluTanh); }},
      {"geglu_erf", [](OpCase& c) { gated_case(c, Activation::GeGluErf); }},
      {"rope", [](OpCase& c) { rope_case(c, 1.0, kBase); }},
      {"rope_partial", [](OpCase& c) { rope_case(c, 0.5, kBase); }},
      {"attention_causal_gqa", [](OpCase& c) { attention_case(c, true); }},
      {"attention_padded", [](OpCase& c) { attention_case(c, false); }},
      {"cross_entropy", [](OpCase& c) { cross_entropy_case(c, {}); }},
      {"cross_entropy_per_token", [](OpCase& c) { cross_entropy_case(c, {.per_token = true}); }},
      {"cross_entropy_smooth", [](OpCase& c) { cross_entropy_case(c, {.smoothing = kSmoothing}); }},
      {"cross_entropy_smooth_megatron",
       [](OpCase& c) { cross_entropy_case(c, {.smoothing = kSmoothing, .megatron = true}); }},
      {"cross_entropy_masked",
       [](OpCase& c) {
         cross_entropy_case(c, {.masked = true});
         c.set_variant("targets ignored");
         cross_entropy_case(c, {.targets = "in.targets_ignored", .masked = true});
       }},
      {"cross_entropy_masked_smooth",
       [](OpCase& c) {
         cross_entropy_case(c, {.smoothing = kSmoothing, .masked = true});
         c.set_variant("targets ignored");
         cross_entropy_case(
             c, {.smoothing = kSmoothing, .targets = "in.targets_ignored", .masked = true});
       }},
      {"embedding", embedding_case},
      {"clip_norm_above", [](OpCase& c) { clip_case(c, kClip); }},
      {"clip_norm_below", [](OpCase& c) { clip_case(c, kClip); }},
  };
  return table;
}

}  // namespace

void run_ops(const std::filesystem::path& file, const std::string& name, Report& report) {
  const SafetensorsReader reader(file);
  std::vector<std::string> ops;  // in the order of the file, each once
  for (const StoredTensor& tensor : reader.tensors()) {
    std::string op = tensor.name.substr(0, tensor.name.find('.'));
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(std::move(op));
  }
  const std::vector<Place> all_places = places(name, report);
  std::vector<std::unique_ptr<Device>> devices;
  for (const Place& place : all_places) devices.push_back(make_device(place.device, 1));
  for (const std::string& op : ops) {
    const std::string case_name = name + "/" + op;
    const auto entry = op_table().find(op);
    if (entry == op_table().end()) {
      report.skip(case_name, "not in this version");
      continue;
    }
    for (size_t i = 0; i < all_places.size(); ++i) {
      report.guarded(case_name, all_places[i].name(), [&] {
        OpCase c(reader, op, case_name, *devices[i], all_places[i], report);
        entry->second(c);
      });
    }
  }
}

}  // namespace bev::golden
