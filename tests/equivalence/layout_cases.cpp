#include "equivalence/layout_cases.h"

#include <algorithm>
#include <ostream>
#include <tuple>

#include "config/resolve.h"
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

void remove_dropout(Config& c) { c.model.hidden_dropout = c.model.attention_dropout = 0; }

template <class Change>
void add(std::vector<Options>& sets, const char* name, Config config, Change change) {
  change(config);
  sets.push_back({name, config});
}

// The sets of a model family have every pair of model, embedding, dropout, recomputation and
// optimizer.
std::vector<Options> decoder_options() {
  std::vector<Options> sets;
  add(sets, "gpt_tied_dropout", divisible_gpt(), [](Config&) {});
  add(sets, "llama_untied_dropout", divisible_llama(), [](Config&) {});
  add(sets, "gpt_tied_sgd", divisible_gpt(), [](Config& c) {
    remove_dropout(c);
    c.optim.kind = OptimizerKind::Sgd;
  });
  add(sets, "llama_tied_dropout_qk_norm_recomputed", divisible_llama(), [](Config& c) {
    c.model.tied = true;
    c.model.qk_norm = true;
    c.recompute.granularity = Recompute::Full;
  });
  add(sets, "gpt_tied_dropout_smoothed_selective", divisible_gpt(), [](Config& c) {
    c.recompute.granularity = Recompute::Selective;
    c.loss.label_smoothing = 0.1;
    c.loss.z_loss = 0.01;
  });
  add(sets, "gpt_untied_sgd_recomputed", divisible_gpt(), [](Config& c) {
    remove_dropout(c);
    c.model.tied = false;
    c.recompute.granularity = Recompute::Full;
    c.optim.kind = OptimizerKind::Sgd;
  });
  add(sets, "llama_untied_selective", divisible_llama(), [](Config& c) {
    remove_dropout(c);
    c.recompute.granularity = Recompute::Selective;
  });
  add(sets, "llama_tied_dropout_sgd_selective", divisible_llama(), [](Config& c) {
    c.model.tied = true;
    c.recompute.granularity = Recompute::Selective;
    c.optim.kind = OptimizerKind::Sgd;
  });
  const Config gpt_lamb = with_optimizer(divisible_gpt(), OptimizerKind::Lamb);
  const Config llama_lamb = with_optimizer(divisible_llama(), OptimizerKind::Lamb);
  add(sets, "gpt_tied_dropout_lamb", gpt_lamb, [](Config&) {});
  add(sets, "llama_untied_lamb_selective", llama_lamb, [](Config& c) {
    remove_dropout(c);
    c.recompute.granularity = Recompute::Selective;
  });
  add(sets, "gpt_untied_dropout_lamb_recomputed", gpt_lamb, [](Config& c) {
    c.model.tied = false;
    c.recompute.granularity = Recompute::Full;
  });
  return sets;
}

std::vector<Options> bert_options() {
  std::vector<Options> sets;
  const auto post_norm = [](Config& c) { c.model.norm_placement = NormPlacement::Post; };
  const auto selective = [](Config& c) { c.recompute.granularity = Recompute::Selective; };
  // A hidden state between two blocks of a group is recomputed too.
  const auto in_groups = [](Config& c) {
    c.recompute = {.granularity = Recompute::Full, .method = RecomputeMethod::Uniform, .layers = 2};
  };
  const Config adam = divisible_bert(), sgd = with_optimizer(adam, OptimizerKind::Sgd),
               lamb = with_optimizer(adam, OptimizerKind::Lamb);
  add(sets, "bert_dropout", adam, [](Config&) {});
  add(sets, "bert_post_norm_selective", adam, [&](Config& c) {
    remove_dropout(c);
    post_norm(c);
    selective(c);
  });
  add(sets, "bert_recomputed", adam, [&](Config& c) {
    remove_dropout(c);
    in_groups(c);
  });
  add(sets, "bert_post_norm_sgd", sgd, [&](Config& c) {
    remove_dropout(c);
    post_norm(c);
  });
  add(sets, "bert_dropout_sgd_selective", sgd, selective);
  add(sets, "bert_post_norm_dropout_sgd_recomputed_without_binary_head", sgd, [&](Config& c) {
    post_norm(c);
    in_groups(c);
    c.model.binary_head = false;
  });
  add(sets, "bert_lamb", lamb, remove_dropout);
  add(sets, "bert_post_norm_dropout_lamb_selective", lamb, [&](Config& c) {
    post_norm(c);
    selective(c);
  });
  add(sets, "bert_post_norm_dropout_lamb_recomputed", lamb, [&](Config& c) {
    post_norm(c);
    in_groups(c);
  });
  return sets;
}

std::vector<Options> t5_options() {
  std::vector<Options> sets;
  const auto selective = [](Config& c) { c.recompute.granularity = Recompute::Selective; };
  const auto full = [](Config& c) { c.recompute.granularity = Recompute::Full; };
  const auto in_groups = [](Config& c) {
    c.recompute = {.granularity = Recompute::Full, .method = RecomputeMethod::Uniform, .layers = 2};
  };
  const Config adam = divisible_t5(), relative = divisible_huggingface_t5(),
               sgd = with_optimizer(adam, OptimizerKind::Sgd),
               relative_sgd = with_optimizer(relative, OptimizerKind::Sgd),
               lamb = with_optimizer(adam, OptimizerKind::Lamb),
               relative_lamb = with_optimizer(relative, OptimizerKind::Lamb);
  add(sets, "t5_tied_dropout", adam, [](Config&) {});
  add(sets, "t5_untied_recomputed", adam, [&](Config& c) {
    remove_dropout(c);
    c.model.tied = false;
    in_groups(c);
  });
  add(sets, "t5_untied_dropout_sgd_selective", sgd, [&](Config& c) {
    c.model.tied = false;
    selective(c);
  });
  add(sets, "t5_tied_sgd_lost_mask", sgd, [&](Config& c) {
    remove_dropout(c);
    c.model.mask_cross_padding = false;
  });
  add(sets, "t5_tied_lamb_selective", lamb, [&](Config& c) {
    remove_dropout(c);
    selective(c);
  });
  add(sets, "t5_untied_dropout_lamb_recomputed", lamb, [&](Config& c) {
    c.model.tied = false;
    full(c);
  });
  add(sets, "relative_t5_tied", relative, [](Config& c) {
    remove_dropout(c);
    c.model.scale_head_input = true;
  });
  add(sets, "relative_t5_untied_dropout_selective", relative, [&](Config& c) {
    c.model.tied = false;
    c.model.activation = Activation::GeGluTanh;
    c.model.ffn = 32;
    selective(c);
  });
  add(sets, "relative_t5_tied_dropout_sgd_recomputed", relative_sgd, full);
  add(sets, "relative_t5_untied_sgd", relative_sgd, [&](Config& c) {
    remove_dropout(c);
    c.model.tied = false;
  });
  add(sets, "relative_t5_tied_lamb_recomputed", relative_lamb, [&](Config& c) {
    remove_dropout(c);
    in_groups(c);
  });
  add(sets, "relative_t5_untied_dropout_lamb", relative_lamb,
      [](Config& c) { c.model.tied = false; });
  return sets;
}

std::vector<Options> biencoder_options() {
  std::vector<Options> sets;
  const auto selective = [](Config& c) { c.recompute.granularity = Recompute::Selective; };
  const auto full = [](Config& c) { c.recompute.granularity = Recompute::Full; };
  const auto projected = [](Config& c) {
    c.model.projection = 12;
    c.model.scale_scores = true;
  };
  for (const bool shared : {true, false}) {
    const std::string name = shared ? "biencoder_shared_" : "biencoder_separate_";
    const Config adam = divisible_biencoder(shared), sgd = with_optimizer(adam, OptimizerKind::Sgd),
                 lamb = with_optimizer(adam, OptimizerKind::Lamb);
    const auto set = [&](const char* options, const Config& config, auto change) {
      add(sets, (name + options).c_str(), config, change);
    };
    // With both kinds of towers each optimizer has each kind of recomputation.
    const auto recompute = [&](bool of_shared, auto how) {
      return [=](Config& c) {
        if (shared == of_shared) how(c);
      };
    };
    set("dropout_adam", adam, recompute(true, selective));
    set("recomputed", adam, [&](Config& c) {
      remove_dropout(c);
      full(c);
      projected(c);
    });
    set("sgd", sgd, [&](Config& c) {
      remove_dropout(c);
      recompute(false, selective)(c);
    });
    set("dropout_sgd_recomputed", sgd, full);
    set("lamb_selective", lamb, [&](Config& c) {
      remove_dropout(c);
      selective(c);
      projected(c);
    });
    set("dropout_lamb", lamb, [&](Config& c) {
      projected(c);
      recompute(false, full)(c);
    });
  }
  return sets;
}

LayoutCase case_of(std::string_view layout, const Options& options) {
  Config many = options.config;
  many.parallel = parse_layout(layout);
  many = with_layers_for_all_stages(many);
  Config one = many;
  if (one.model.family == ModelFamily::Biencoder) one.train.micro_batch *= data_ranks(many);
  one.parallel = {};
  return {std::string(layout), layout_name(std::string(layout)) + "_on_" + options.name, one, many};
}

struct Candidate {
  LayoutCase layout_case;
  FactorValues values;
};

// Of the cases that are left, the one with the most pairs that are not covered yet goes over.
void move_best(std::vector<Candidate>& from, PairCoverage& covered, std::vector<LayoutCase>& to) {
  auto best = from.begin();
  size_t most = 0;
  for (auto candidate = from.begin(); candidate != from.end(); ++candidate) {
    const size_t gain = covered.gain(candidate->values);
    if (gain > most) std::tie(best, most) = std::pair(candidate, gain);
  }
  covered.add(best->values);
  to.push_back(std::move(best->layout_case));
  from.erase(best);
}

struct Tiers {
  std::vector<LayoutCase> quick, slow;
};

// Adds the cases of one model family. `every_layout`: the quick ones have each layout.
void add_family(const std::vector<Options>& option_sets, bool every_layout, Tiers& tiers) {
  PairCoverage covered, all;
  std::vector<Candidate> left;
  for (const std::string_view layout : layouts()) {
    std::vector<Candidate> of_layout;
    for (const Options& options : option_sets) {
      LayoutCase c = case_of(layout, options);
      FactorValues values = values_in(c.many);
      all.add(values);
      of_layout.push_back({std::move(c), std::move(values)});
    }
    if (every_layout) move_best(of_layout, covered, tiers.quick);
    std::ranges::move(of_layout, std::back_inserter(left));
  }
  while (!covered.missing(all).empty()) move_best(left, covered, tiers.quick);
  for (Candidate& candidate : left) tiers.slow.push_back(std::move(candidate.layout_case));
}

const Tiers& tiers() {
  static const Tiers all = [] {
    Tiers result;
    add_family(decoder_options(), true, result);
    add_family(bert_options(), false, result);
    add_family(t5_options(), false, result);
    add_family(biencoder_options(), false, result);
    return result;
  }();
  return all;
}

}  // namespace

Config divisible_gpt() { return divisible(tiny_gpt()); }

Config divisible_llama() { return divisible(tiny_llama()); }

Config divisible_bert() {
  Config c = divisible(tiny_bert());
  c.model.positions = c.train.sequence = 12;
  c.train.micro_batch = 2;
  c.train.global_batch = 16;
  return c;
}

Config divisible_t5() {
  Config c = divisible(tiny_t5());
  c.model.layers = 4;
  c.model.decoder_layers = 3;
  c.train.sequence = 8;
  c.train.decoder_sequence = 4;
  c.model.positions = 8;
  c.train.micro_batch = 2;
  c.train.global_batch = 16;
  return c;
}

Config divisible_biencoder(bool shared_towers) {
  Config c = divisible(tiny_biencoder());
  c.model.shared_towers = shared_towers;
  // Scores multiply two outputs, which amplifies roundings of weights, and a small eps
  // amplifies roundings of small gradients.
  c.optim.lr = 0.002;
  c.optim.eps = 1e-6;
  c.train.micro_batch = 2;
  c.train.global_batch = 16;
  return c;
}

Config divisible_huggingface_t5() {
  Config c = divisible_t5();
  const ModelConfig relative = tiny_huggingface_t5().model;
  c.model.head_dim = relative.head_dim;
  c.model.norm = relative.norm;
  c.model.activation = relative.activation;
  c.model.position = relative.position;
  c.model.relative_buckets = relative.relative_buckets;
  c.model.relative_distance = relative.relative_distance;
  c.model.bias = relative.bias;
  c.model.scale_attention = c.model.head_bias = false;
  return c;
}

Config with_layers_for_all_stages(Config config) {
  const int64_t stages = config.parallel.pipeline * config.parallel.chunks;
  const bool in_groups = config.recompute.method == RecomputeMethod::Uniform;
  const int64_t group = in_groups ? std::max<int64_t>(config.recompute.layers, 1) : 1;
  config.model.layers = std::max(config.model.layers, stages * group);
  if (config.model.family == ModelFamily::T5)
    config.model.decoder_layers = std::max(config.model.decoder_layers, stages * group - 1);
  return config;
}

// The gradient of the keys' bias is rounding noise, which a small eps would scale up to the size of
// other updates, and so into the norm of the whole bias. A constant rate would return a bias of two
// elements, whose clamped steps have one size, to rounding noise around 0.
Config with_optimizer(Config config, OptimizerKind kind) {
  config.optim.kind = kind;
  if (!is_lamb(kind)) return config;
  config.optim.eps = 1e-4;
  config.optim.decay = LrDecay::Linear;
  config.optim.decay_iterations = 10;
  if (kind == OptimizerKind::Lamb) config.optim.lamb_clip = 0.3;  // below optim.clip
  if (kind == OptimizerKind::LambTp) config.optim.lambtp_solution = 1;
  config.model.vocab = 128;  // the largest parameter, which the stages between the ends do not have
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

std::vector<LayoutCase> split_layout_cases() {
  const std::vector<Options> option_sets = t5_options();
  std::vector<LayoutCase> cases;
  size_t next = 0;
  for (const char* layout :
       {"pp4.split1", "pp4.split3", "pp4.split1.gpipe", "pp4.split3.zero-bubble",
        "pp2.chunks2.split1", "pp2.chunks2.split3", "pp4.chunks2.split2", "pp4.chunks2.split7",
        "tp2.pp4.split3", "tp2.sp.pp4.split1.zero-bubble", "dp2.pp4.split1.zero1",
        "dp2.pp4.split3.zero3", "dp2.pp2.chunks2.split3.zero2.overlap",
        "tp2.sp.dp2.pp4.split3.zero1", "tp2.dp2.pp2.chunks2.split1.zero3",
        "tp2.sp.dp2.pp2.chunks2.split3.zero3.overlap"})
    cases.push_back(case_of(layout, option_sets[next++ % option_sets.size()]));
  return cases;
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
  Config bert = on_gpu(tiny_bert(), precision);
  bert.train.micro_batch = 2;
  bert.train.global_batch = 16;
  Config post_norm = bert;
  post_norm.model.norm_placement = NormPlacement::Post;
  post_norm.recompute.granularity = Recompute::Full;
  if (precision == Precision::F32) post_norm = with_optimizer(post_norm, OptimizerKind::Lamb);
  std::vector<LayoutCase> cases;
  for (const char* layout :
       {"tp2", "tp4.sp", "dp2", "dp2.overlap", "dp2.zero1", "dp4.zero1.overlap", "dp2.zero2",
        "dp2.zero2.overlap", "dp2.zero3", "dp4.zero3.overlap", "pp2", "pp4.gpipe",
        "pp2.zero-bubble", "pp2.chunks2", "tp2.sp.dp2.pp2.zero1.overlap",
        "tp2.dp2.pp2.chunks2.zero3.overlap"}) {
    cases.push_back(case_of(layout, {"gpt_tied_dropout", on_gpu(tiny_gpt(), precision)}));
    cases.push_back(case_of(layout, {"llama_untied_recomputed", recomputed}));
    cases.push_back(case_of(layout, {"bert_dropout", bert}));
    cases.push_back(case_of(layout, {"bert_post_norm_recomputed", post_norm}));
  }
  for (LayoutCase& c : cases) c.name += precision == Precision::F32 ? "_f32" : "_bf16";
  return cases;
}

}  // namespace bev::test
