#include "bench/op_bench.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/json.h"
#include "bench/rig.h"
#include "config/resolve.h"
#include "model/head.h"
#include "ops/make_device.h"
#include "ops/op_table.h"

namespace bev {

namespace {

using ops::Transpose;

// One op at one shape: `run` issues it on operands that lie in the rig.
struct Case {
  std::string name, shape;
  std::function<void(Exec&)> run;
};

// Operands in the dtypes of a run, filled with something that is neither zero nor special: values
// vary, sums that are divided by or whose root is taken do not.
class Operands {
 public:
  Operands(Rig& rig, DType dtype) : rig_(rig), dtype_(dtype) {}

  Tensor value(Shape shape) { return rig_.make_varied(shape, dtype_); }
  Tensor sum(Shape shape) { return filled(shape, accumulation_of(dtype_), 0.5); }
  Tensor flat(Shape shape, DType dtype, double content) { return filled(shape, dtype, content); }

 private:
  Tensor filled(Shape shape, DType dtype, double content) {
    const Tensor t = rig_.make(shape, dtype);
    ops::fill(rig_.exec(), {.out = t, .value = content});
    return t;
  }
  Rig& rig_;
  DType dtype_;
};

void product_cases(std::vector<Case>& cases, Operands& o, int64_t tokens, int64_t in, int64_t out) {
  const Tensor x = o.value({tokens, in}), w = o.value({out, in}), y = o.value({tokens, out});
  const Tensor dw = o.sum({out, in});
  const std::string shape = format("{} x {} x {}", tokens, out, in);
  cases.push_back({"matmul", shape + " forward", [=](Exec& ex) {
                     ops::matmul(ex, {.a = x, .b = w, .tb = Transpose::Yes, .out = y});
                   }});
  cases.push_back({"matmul", shape + " input gradient",
                   [=](Exec& ex) { ops::matmul(ex, {.a = y, .b = w, .out = x}); }});
  cases.push_back({"matmul", shape + " weight gradient", [=](Exec& ex) {
                     ops::matmul(ex, {.a = y, .b = x, .ta = Transpose::Yes, .out = dw});
                   }});
}

void norm_cases(std::vector<Case>& cases, Operands& o, const Config& c, int64_t tokens,
                int64_t width) {
  const NormKind kind = c.model.norm;
  const Tensor x = o.value({tokens, width}), y = o.value({tokens, width});
  const Tensor w = o.value({width}), dw = o.sum({width}), db = o.sum({width});
  const bool layer = kind == NormKind::LayerNorm;
  const Tensor mean = layer ? o.sum({tokens}) : Tensor{};
  const Tensor rstd = o.sum({tokens});
  const std::string shape = format("{} x {}", tokens, width);
  cases.push_back({"norm", shape + " forward", [=](Exec& ex) {
                     ops::norm(ex, {.kind = kind,
                                    .x = x,
                                    .weight = w,
                                    .bias = layer ? ConstTensor(w) : ConstTensor{},
                                    .y = y,
                                    .mean = mean,
                                    .rstd = rstd});
                   }});
  cases.push_back({"norm", shape + " backward", [=](Exec& ex) {
                     ops::norm_backward(ex, {.kind = kind,
                                             .dy = y,
                                             .x = x,
                                             .weight = w,
                                             .mean = mean,
                                             .rstd = rstd,
                                             .dx = y,
                                             .dweight = dw,
                                             .dbias = layer ? db : Tensor{}});
                   }});
}

void attention_cases(std::vector<Case>& cases, Operands& o, const ModelShape& m,
                     const BatchShape& b, DType stat) {
  const int64_t tokens = b.tokens_per_micro();
  const Shape queries{tokens, m.heads, m.head_dim}, keys{tokens, m.kv_heads, m.head_dim};
  const Tensor q = o.value(queries), k = o.value(keys), v = o.value(keys), out = o.value(queries);
  const Tensor dq = o.value(queries), dk = o.value(keys), dv = o.value(keys);
  const Tensor lse = o.flat({b.micro_batch, m.heads, b.sequence}, stat, 5);
  const int64_t sequences = b.micro_batch;
  const std::string shape =
      format("{} x {}, {} heads x {}", b.micro_batch, b.sequence, m.heads, m.head_dim);
  cases.push_back({"attention", shape + " forward", [=](Exec& ex) {
                     ops::attention(ex, {.q = q,
                                         .k = k,
                                         .v = v,
                                         .sequences = sequences,
                                         .scale = 0.125,
                                         .out = out,
                                         .lse = lse});
                   }});
  cases.push_back({"attention", shape + " backward", [=](Exec& ex) {
                     ops::attention_backward(ex, {.dout = out,
                                                  .q = q,
                                                  .k = k,
                                                  .v = v,
                                                  .out = out,
                                                  .lse = lse,
                                                  .sequences = sequences,
                                                  .scale = 0.125,
                                                  .dq = dq,
                                                  .dk = dk,
                                                  .dv = dv});
                   }});
}

void head_cases(std::vector<Case>& cases, Operands& o, const ModelShape& m, int64_t rows) {
  const Tensor logits = o.value({rows, m.padded_vocab});
  const Tensor loss = o.sum({rows});
  const Tensor targets = o.flat({rows}, DType::i32, 3), weight = o.flat({rows}, DType::f32, 1);
  const std::string shape = format("{} x {}", rows, m.padded_vocab);
  cases.push_back({"cross_entropy", shape, [=, classes = m.padded_vocab](Exec& ex) {
                     ops::cross_entropy(ex, {.logits = logits,
                                             .targets = targets,
                                             .weight = weight,
                                             .classes = classes,
                                             .loss = loss,
                                             .dlogits = logits});
                   }});
}

void update_cases(std::vector<Case>& cases, Operands& o, DType dtype) {
  constexpr int64_t kElements = int64_t{1} << 24;
  const Tensor p = o.value({kElements}), g = o.sum({kElements});
  const Tensor m = o.sum({kElements}), v = o.sum({kElements});
  const Tensor master = dtype == accumulation_of(dtype) ? Tensor{} : o.sum({kElements});
  const Tensor decision = o.flat({kUpdateDecisions}, DType::f64, 1),
               sum = o.flat({1}, DType::f64, 0);
  const std::string shape = format("{}", kElements);
  cases.push_back(
      {"adamw", shape, [=](Exec& ex) {
         ops::adamw(
             ex, {.param = p, .master = master, .m = m, .v = v, .grad = g, .decision = decision});
       }});
  cases.push_back(
      {"squared_norm", shape, [=](Exec& ex) { ops::squared_norm(ex, {.x = g, .out = sum}); }});
}

std::vector<Case> make_cases(Rig& rig, const Config& config) {
  const ModelShape m = resolve_model(config);
  const BatchShape b = resolve_batch(config);
  const DType dtype = resolve_dtype(config);
  const int64_t tokens = b.tokens_per_micro();
  const int64_t inner = is_gated(config.model.activation) ? 2 * m.ffn : m.ffn;
  const int64_t chunk = std::min(tokens, head_chunk(config));
  Operands o(rig, dtype);
  std::vector<Case> cases;
  product_cases(cases, o, tokens, m.width, (m.heads + 2 * m.kv_heads) * m.head_dim);
  product_cases(cases, o, tokens, m.heads * m.head_dim, m.width);
  product_cases(cases, o, tokens, m.width, inner);
  product_cases(cases, o, tokens, m.ffn, m.width);
  product_cases(cases, o, chunk, m.width, m.padded_vocab);
  norm_cases(cases, o, config, tokens, m.width);
  attention_cases(cases, o, m, b, accumulation_of(dtype));
  const Tensor up = o.value({tokens, inner}), act = o.value({tokens, m.ffn});
  const Activation activation = config.model.activation;
  cases.push_back({"activate", format("{} x {}", tokens, inner), [=](Exec& ex) {
                     ops::activate(ex, {.activation = activation, .x = up, .y = act});
                   }});
  head_cases(cases, o, m, chunk);
  update_cases(cases, o, dtype);
  return cases;
}

}  // namespace

std::vector<std::string> benchable_ops() {
  return {"matmul", "norm", "attention", "activate", "cross_entropy", "adamw", "squared_norm"};
}

std::vector<OpBench> bench_ops(const Config& config, const std::vector<std::string>& only,
                               double seconds_each) {
  const std::unique_ptr<Device> device = make_device(config.device);
  const MachinePeak peak = measure_peak(*device);
  Rig rig(*device, rig_sizes(*device, [&](Rig& rehearsal) {
    for (const Case& c : make_cases(rehearsal, config)) c.run(rehearsal.exec());
  }));
  std::vector<OpBench> results;
  for (const Case& c : make_cases(rig, config)) {
    if (!only.empty() && std::find(only.begin(), only.end(), c.name) == only.end()) continue;
    OpBench result{.name = c.name, .shape = c.shape};
    rig.exec().cost = &result.cost;
    c.run(rig.exec());
    rig.exec().cost = nullptr;
    result.time = measure_on(*device, [&] { c.run(rig.exec()); }, seconds_each, 5);
    result.floor =
        std::max(result.cost.flops / peak.flops, result.cost.bytes_moved / peak.bandwidth);
    results.push_back(std::move(result));
  }
  return results;
}

std::string op_bench_table(const std::vector<OpBench>& results) {
  std::string text = format("{:<14} {:<38} {:>10} {:>9} {:>9} {:>8} {:>9}\n", "op", "shape",
                            "median us", "spread %", "GFLOP/s", "GB/s", "of floor");
  bool batched = false;
  for (const OpBench& r : results) {
    text += format("{:<14} {:<38} {:>10.1f} {:>9.1f} {:>9.1f} {:>8.1f} {:>9.2f}\n", r.name, r.shape,
                   1e6 * r.time.median, 100 * (r.time.high - r.time.low) / r.time.median,
                   r.cost.flops / r.time.median * 1e-9, r.cost.bytes_moved / r.time.median * 1e-9,
                   r.floor / r.time.median);
    batched = batched || r.time.calls > 1;
  }
  if (batched) {
    text +=
        "times are of one call: a run makes as many as take some milliseconds, waits for the "
        "device "
        "once and is divided by them\n";
  }
  return text;
}

std::string op_bench_json(const std::vector<OpBench>& results) {
  Json list = Json::array();
  for (const OpBench& r : results) {
    list.push_back({{"op", r.name},
                    {"shape", r.shape},
                    {"median_seconds", r.time.median},
                    {"low_seconds", r.time.low},
                    {"high_seconds", r.time.high},
                    {"runs", r.time.runs},
                    {"calls_per_run", r.time.calls},
                    {"flops", r.cost.flops},
                    {"bytes", r.cost.bytes_moved},
                    {"fraction_of_floor", r.floor / r.time.median}});
  }
  return list.dump(2);
}

}  // namespace bev
