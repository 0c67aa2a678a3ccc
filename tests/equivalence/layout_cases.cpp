#include "equivalence/layout_cases.h"

#include <algorithm>
#include <ostream>

#include "equivalence/layout_factors.h"
#include "support/layout_name.h"
#include "support/tiny_models.h"
#include "verify/layout_name.h"

namespace bev::test {

namespace {

Config divisible(Config c) {
  c.model.layers = 4;
  c.model.heads = 4;
  c.model.vocab = 32;
  c.model.hidden_dropout = 0.1;
  c.model.attention_dropout = 0.1;
  c.train.sequence = 8;
  c.train.micro_batch = 1;
  c.train.global_batch = 8;
  c.device.threads = 1;
  return c;
}

// Four layers and four heads, so that every axis can be cut in four; wide enough for a GPU's
// kernels. Adam's first updates have the size of the learning rate however small a gradient is, so
// that in bf16 the noise in small ones would move weights as much as the rest: there weights follow
// their gradients.
Config on_gpu(Config c, Precision precision) {
  c = divisible(c);
  c.model.width = 64;
  c.model.vocab = 64;
  c.model.positions = 32;
  c.model.init_std = 0.05;
  c.train.sequence = 32;
  c.device.kind = DeviceKind::Cuda;
  c.device.precision = precision;
  c.device.cache = "off";
  c.optim.eps = 1e-4;
  if (precision == Precision::Bf16) c.optim.kind = OptimizerKind::Sgd;
  return c;
}

struct Options {
  std::string name;
  Config config;
};

// Together they have every pair of model, embedding, dropout, recomputation and optimizer.
std::vector<Options> option_sets() {
  std::vector<Options> all;
  const auto add = [&](const char* name, Config config, auto change) {
    change(config);
    all.push_back({name, config});
  };
  const auto without_dropout = [](Config& c) {
    c.model.hidden_dropout = c.model.attention_dropout = 0;
  };
  add("gpt_tied_dropout", divisible_gpt(), [](Config&) {});
  add("llama_untied_dropout", divisible_llama(), [](Config&) {});
  add("gpt_tied_sgd", divisible_gpt(), [&](Config& c) {
    without_dropout(c);
    c.optim.kind = OptimizerKind::Sgd;
  });
  add("llama_tied_dropout_qk_norm_recomputed", divisible_llama(), [](Config& c) {
    c.model.tied = true;
    c.model.qk_norm = true;
    c.recompute.granularity = Recompute::Full;
  });
  add("gpt_tied_dropout_smoothed_selective", divisible_gpt(), [](Config& c) {
    c.recompute.granularity = Recompute::Selective;
    c.loss.label_smoothing = 0.1;
    c.loss.z_loss = 0.01;
  });
  add("gpt_untied_sgd_recomputed", divisible_gpt(), [&](Config& c) {
    without_dropout(c);
    c.model.tied = false;
    c.recompute.granularity = Recompute::Full;
    c.optim.kind = OptimizerKind::Sgd;
  });
  add("llama_untied_selective", divisible_llama(), [&](Config& c) {
    without_dropout(c);
    c.recompute.granularity = Recompute::Selective;
  });
  add("llama_tied_dropout_sgd_selective", divisible_llama(), [](Config& c) {
    c.model.tied = true;
    c.recompute.granularity = Recompute::Selective;
    c.optim.kind = OptimizerKind::Sgd;
  });
  return all;
}

LayoutCase case_of(std::string_view layout, const Options& options) {
  Config many = options.config;
  many.parallel = parse_layout(layout);
  many = with_layers_for_all_stages(many);
  Config one = many;
  one.parallel = {};
  return {std::string(layout), layout_name(std::string(layout)) + "_on_" + options.name, one, many};
}

// Of the cases that are left, the one with the most pairs that are not covered yet goes over.
void move_best(std::vector<LayoutCase>& from, PairCoverage& covered, std::vector<LayoutCase>& to) {
  const auto gain = [&](const LayoutCase& c) { return covered.gain(values_in(c.many)); };
  const auto best = std::max_element(
      from.begin(), from.end(), [&](const auto& a, const auto& b) { return gain(a) < gain(b); });
  covered.add(values_in(best->many));
  to.push_back(std::move(*best));
  from.erase(best);
}

struct Tiers {
  std::vector<LayoutCase> quick, slow;
};

Tiers tiers() {
  Tiers result;
  PairCoverage covered, all;
  for (const std::string_view layout : layouts()) {
    std::vector<LayoutCase> of_layout;
    for (const Options& options : option_sets()) of_layout.push_back(case_of(layout, options));
    for (const LayoutCase& c : of_layout) all.add(values_in(c.many));
    move_best(of_layout, covered, result.quick);
    std::move(of_layout.begin(), of_layout.end(), std::back_inserter(result.slow));
  }
  while (!covered.missing(all).empty()) move_best(result.slow, covered, result.quick);
  return result;
}

}  // namespace

Config divisible_gpt() { return divisible(tiny_gpt()); }

Config divisible_llama() { return divisible(tiny_llama()); }

Config divisible_bert() { return divisible(tiny_bert()); }

Config with_layers_for_all_stages(Config config) {
  const int64_t stages = config.parallel.pipeline * config.parallel.chunks;
  config.model.layers = std::max(config.model.layers, stages);
  return config;
}

void PrintTo(const LayoutCase& layout_case, std::ostream* out) { *out << layout_case.name; }

const std::vector<std::string_view>& layouts() {
  static const std::vector<std::string_view> all{
      "tp2",
      "tp4",
      "tp2.sp",
      "tp4.sp",
      "dp2",
      "dp4",
      "dp2.zero1",
      "dp4.zero1",
      "dp2.zero2",
      "dp4.zero2",
      "dp2.zero3",
      "dp4.zero3",
      "pp2",
      "pp4",
      "pp2.gpipe",
      "pp4.zero-bubble",
      "pp2.chunks2",
      "pp2.chunks3",
      "pp4.chunks2",
      "tp2.dp2",
      "tp2.sp.dp2",
      "tp2.sp.dp2.zero1",
      "tp4.dp2.zero2",
      "tp4.sp.dp4",
      "tp2.pp2",
      "tp2.sp.pp2",
      "tp2.sp.pp2.zero-bubble",
      "tp2.pp2.chunks2",
      "tp2.sp.pp2.chunks2",
      "tp4.pp4.zero-bubble",
      "dp2.pp2",
      "dp2.pp2.zero1",
      "dp2.pp2.chunks2",
      "dp2.pp2.chunks2.zero1",
      "dp2.pp2.chunks2.zero2",
      "dp2.pp4.zero1.gpipe",
      "dp4.pp4.zero3",
      "tp2.dp2.pp2",
      "tp2.sp.dp2.pp2.zero1",
      "tp2.sp.dp2.pp2.zero2.gpipe",
      "tp2.sp.dp2.pp2.chunks2.zero3",
      "tp4.sp.dp2.pp2.chunks2.zero1",
      "tp2.dp2.pp2.zero1.zero-bubble",
      "tp2.dp4.pp2.gpipe",
      "tp2.sp.dp4.pp2.chunks2.zero3",
      "tp4.sp.dp2.pp2.zero-bubble",
      "tp2.dp2.pp4.chunks2.zero1",
      "tp2.sp.dp2.pp4.zero2",
      "tp4.dp2.pp2.zero3.gpipe",
      "tp2.sp.dp4.pp2.zero1.zero-bubble",
      // Exchanges beside other work: buckets, memories that take turns, what is gathered ahead.
      "dp2.overlap",
      "dp4.zero1.overlap",
      "dp2.zero1.overlap-parameters",
      "dp2.zero2.overlap",
      "dp4.zero2.overlap-gradients",
      "dp4.zero3.overlap",
      "dp2.zero3.overlap-parameters",
      "dp2.zero3.overlap-gradients",
      "tp2.sp.dp2.pp2.overlap",
      "tp4.dp2.zero1.overlap",
      "tp2.dp2.pp2.zero1.zero-bubble.overlap",
      "dp2.pp2.chunks2.zero1.overlap",
      "dp2.pp2.chunks2.zero2.overlap",
      "tp2.sp.dp2.pp2.chunks2.zero3.overlap",
      "dp2.pp4.zero3.gpipe.overlap",
      // What is asked for but has nothing to divide.
      "overlap",
      "sp.dp2.gpipe",
      "zero1.zero-bubble",
      "tp4.zero3.gpipe",
      "pp2.zero2",
  };
  return all;
}

std::vector<LayoutCase> quick_layout_cases() { return tiers().quick; }

std::vector<LayoutCase> slow_layout_cases() { return tiers().slow; }

LayoutCase on_cpu(LayoutCase c) {
  for (Config* config : {&c.one, &c.many}) {
    config->device.kind = DeviceKind::Cpu;
    config->device.precision = Precision::F32;
    config->optim.eps = 1e-4;
  }
  return c;
}

std::vector<LayoutCase> cuda_layout_cases(Precision precision) {
  Config recomputed = on_gpu(tiny_llama(), precision);
  recomputed.model.ffn = 96;
  recomputed.recompute.granularity = Recompute::Full;
  std::vector<LayoutCase> cases;
  for (const char* layout :
       {"tp2", "tp4.sp", "dp2", "dp2.overlap", "dp2.zero1", "dp4.zero1.overlap", "dp2.zero2",
        "dp2.zero2.overlap", "dp2.zero3", "dp4.zero3.overlap", "pp2", "pp4.gpipe",
        "pp2.zero-bubble", "pp2.chunks2", "tp2.sp.dp2.pp2.zero1.overlap",
        "tp2.dp2.pp2.chunks2.zero3.overlap"}) {
    cases.push_back(case_of(layout, {"gpt_tied_dropout", on_gpu(tiny_gpt(), precision)}));
    cases.push_back(case_of(layout, {"llama_untied_recomputed", recomputed}));
  }
  for (LayoutCase& c : cases) c.name += precision == Precision::F32 ? "_f32" : "_bf16";
  return cases;
}

}  // namespace bev::test
