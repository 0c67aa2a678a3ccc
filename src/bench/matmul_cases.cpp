#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/matmul.h"

namespace bev {

namespace {

using ops::Epilogue;
using ops::Transpose;

// A linear layer of the model. One that is followed by a plain activation applies it to its own
// result, and the one behind that multiplies its input gradient by the derivative.
struct LinearShape {
  std::string_view name;
  int64_t rows, in, out;
  bool bias = false, is_activated = false, follows_activation = false;
  bool joins_residual = false;  // its result is added to the residual stream
};

void add_forward(std::vector<OpCase>& cases, const CaseOperands& o, const LinearShape& l,
                 const std::string& shape) {
  const Tensor x = o.value({l.rows, l.in}), w = o.value({l.out, l.in});
  const Tensor y = o.value({l.rows, l.out});
  const ops::Matmul plain{.a = x, .b = w, .tb = Transpose::Yes, .out = y};
  cases.push_back({shape + " forward", [=](Exec& ex) { ops::matmul(ex, plain); }});
  ops::Matmul biased = plain;
  if (l.bias) {
    biased.bias = o.value({l.out});
    biased.epilogue = Epilogue::Bias;
    cases.push_back({shape + " forward + bias", [=](Exec& ex) { ops::matmul(ex, biased); }});
  }
  if (l.joins_residual) {
    ops::Matmul joined = biased;
    joined.addend = o.value({l.rows, l.out});
    cases.push_back({shape + (l.bias ? " forward + bias, residual" : " forward, residual"),
                     [=](Exec& ex) { ops::matmul(ex, joined); }});
  }
  if (!l.is_activated) return;
  ops::Matmul activated = biased;
  activated.epilogue = l.bias ? Epilogue::BiasActivate : Epilogue::Activate;
  activated.activation = o.config.model.activation;
  activated.pre_activation = o.value({l.rows, l.out});
  cases.push_back({shape + (l.bias ? " forward + bias, activation" : " forward, activation"),
                   [=](Exec& ex) { ops::matmul(ex, activated); }});
}

void add_backward(std::vector<OpCase>& cases, const CaseOperands& o, const LinearShape& l,
                  const std::string& shape) {
  const Tensor x = o.value({l.rows, l.in}), w = o.value({l.out, l.in});
  const Tensor dy = o.value({l.rows, l.out}), dx = o.value({l.rows, l.in});
  const ops::Matmul plain{.a = dy, .b = w, .out = dx};
  cases.push_back({shape + " input gradient", [=](Exec& ex) { ops::matmul(ex, plain); }});
  if (l.follows_activation) {
    ops::Matmul derived = plain;
    derived.epilogue = Epilogue::ActivateBackward;
    derived.activation = o.config.model.activation;
    derived.activation_input = x;
    cases.push_back(
        {shape + " input gradient, activation", [=](Exec& ex) { ops::matmul(ex, derived); }});
  }
  const ops::Matmul weight{.a = dy, .b = x, .ta = Transpose::Yes, .out = o.gradient({l.out, l.in})};
  cases.push_back({shape + " weight gradient", [=](Exec& ex) { ops::matmul(ex, weight); }});
  if (!l.bias) return;
  ops::Matmul with_bias = weight;
  with_bias.dbias = o.sum({l.out});
  cases.push_back(
      {shape + " weight + bias gradient", [=](Exec& ex) { ops::matmul(ex, with_bias); }});
}

}  // namespace

std::vector<OpCase> matmul_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  const BiasKind bias = o.config.model.bias;
  const bool all = bias == BiasKind::All, plain = !is_gated(o.config.model.activation);
  const LinearShape layers[] = {
      {"qkv", o.tokens, m.width, (m.heads + 2 * m.kv_heads) * m.head_dim, bias != BiasKind::None},
      {"out", o.tokens, m.heads * m.head_dim, m.width, all, false, false, true},
      {"up", o.tokens, m.width, o.inner, all, plain},
      {"down", o.tokens, m.ffn, m.width, all, false, plain, true},
      {"head", o.loss_rows, m.width, m.padded_vocab},
  };
  std::vector<OpCase> cases;
  for (const LinearShape& l : layers) {
    const std::string shape = format("{} {} x {} x {}", l.name, l.rows, l.out, l.in);
    add_forward(cases, o, l, shape);
    add_backward(cases, o, l, shape);
  }
  return cases;
}

}  // namespace bev
