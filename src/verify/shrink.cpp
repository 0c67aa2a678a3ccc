#include "verify/shrink.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/integer.h"
#include "config/resolve.h"
#include "config/rules/config_check.h"

namespace bev {

namespace {

// Sizes of which no part of a step needs more.
constexpr int64_t kLayers = 2, kKvHeads = 2, kGroup = 8, kVocab = 61, kShrunkSequence = 16,
                  kMicroBatch = 2, kLossChunk = 5, kEndLayers = 2;
constexpr double kEps = 1e-4;

// `value` as it would be if `from` were `to`.
int64_t scaled(int64_t value, int64_t from, int64_t to) {
  return std::max<int64_t>(1, value * to / from);
}

struct Heads {
  int64_t heads, kv_heads;
};

// Few heads that divide as those of the model do: whole heads per rank where it has them, shared
// ones where it shares.
Heads few_heads(const ModelShape& m, const std::array<int64_t, 2>& ranks) {
  const int64_t group = m.heads / m.kv_heads;
  for (int64_t kv = std::min(kKvHeads, m.kv_heads); kv < m.kv_heads; ++kv) {
    for (int64_t g = std::min(group, kGroup); g <= group; ++g) {
      const auto divides = [&](int64_t t) {
        const bool is_whole = kv % t == 0;
        return g * kv % t == 0 && (is_whole || t % kv == 0) && is_whole == (m.kv_heads % t == 0);
      };
      if (divides(ranks[0]) && divides(ranks[1])) return {g * kv, kv};
    }
  }
  return {m.heads, m.kv_heads};
}

// The smallest size of which the rotated part is a whole number of pairs.
int64_t small_head(const ModelConfig& m, int64_t size) {
  for (const int64_t candidate : {8, 16, 32, 64}) {
    const auto rotated = static_cast<int64_t>(static_cast<double>(candidate) * m.rope_fraction);
    const bool turns = m.position != PositionKind::Rope || (rotated > 0 && rotated % 2 == 0);
    if (candidate < size && turns) return candidate;
  }
  return size;
}

void shrink_model(Config& c, const std::array<int64_t, 2>& tensor) {
  const ModelShape whole = resolve_model(c);
  ModelConfig& m = c.model;
  const auto [heads, kv_heads] = few_heads(whole, tensor);
  const int64_t head = small_head(m, whole.head_dim);
  const int64_t inner = heads * head, whole_inner = whole.heads * whole.head_dim;
  m.width = scaled(inner, whole_inner, whole.width);
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = head;
  m.ffn = round_up(scaled(whole.ffn, whole.width, m.width), std::lcm(tensor[0], tensor[1]));
  m.vocab = std::min(m.vocab, kVocab);
  m.vocab_multiple = 1;
  // As large a signal as in the whole model.
  m.init_std *= std::sqrt(static_cast<double>(whole.width) / static_cast<double>(m.width));
}

// Also what depends on the length of a sequence.
void shrink_batch(Config& c, const std::array<int64_t, 2>& tensor) {
  TrainConfig& t = c.train;
  const bool has_spare_positions = c.model.positions > std::max(t.sequence, t.decoder_sequence);
  t.sequence = round_up(std::min(t.sequence, kShrunkSequence), std::lcm(tensor[0], tensor[1]));
  t.micro_batch = std::min(t.micro_batch, kMicroBatch);
  t.ramp_start = t.ramp_increment = t.ramp_samples = 0;
  if (t.decoder_sequence > 0)
    t.decoder_sequence =
        round_up(std::min(t.decoder_sequence, kShrunkSequence), std::lcm(tensor[0], tensor[1]));
  const int64_t longest = std::max(t.sequence, t.decoder_sequence);
  if (c.model.positions > 0) c.model.positions = longest + (has_spare_positions ? 1 : 0);
  c.model.window = std::min(c.model.window, t.sequence / 3);
  c.loss.chunk = std::min(c.loss.chunk, kLossChunk);
}

void shrink_training(Config& c, int64_t steps) {
  OptimConfig& o = c.optim;
  // Adam divides small gradients by themselves, and what is left of them is rounding.
  o.eps = std::max(o.eps, kEps);
  c.train.iterations = steps;
  c.train.samples = 0;
  o.decay = LrDecay::Linear;
  o.decay_iterations = o.decay_samples = 0;
  o.warmup_iterations = o.warmup_samples = 0;
  o.warmup_fraction = 0;
  o.wsd_iterations = o.wsd_samples = 0;
}

void shrink_ends(ParallelConfig& p) {
  p.first_layers = std::min(p.first_layers, kEndLayers);
  p.last_layers = std::min(p.last_layers, kEndLayers);
}

// The fewest with which every stage has one.
int64_t layers_for(const ParallelConfig& p) {
  const auto of_end = [](int64_t given) { return std::max<int64_t>(given, 1); };
  const int64_t stages = p.pipeline * p.chunks;
  return stages == 1 ? 1 : stages - 2 + of_end(p.first_layers) + of_end(p.last_layers);
}

// Two where groups of blocks, or blocks of both kinds, are to be found in a stage.
int64_t layers_of_each_stage(const RecomputeConfig& r) {
  return r.granularity == Recompute::Full && r.layers > 0 ? 2 : 1;
}

void shrink_recompute(RecomputeConfig& r) {
  r.layers = std::min<int64_t>(r.layers, r.method == RecomputeMethod::Uniform ? 2 : 1);
}

// Where both ends are given and nothing lies between them, they hold all layers.
void fill_ends(ParallelConfig& p, int64_t layers) {
  const bool are_all = p.pipeline * p.chunks == 2 && p.first_layers > 0 && p.last_layers > 0;
  if (are_all) p.last_layers = layers - p.first_layers;
}

// Both layouts get the same batch: at least two micro-batches for every pipeline rank.
int64_t small_batch(const LayoutPair& pair) {
  const std::array<int64_t, 2> data{data_ranks(pair.first), data_ranks(pair.second)};
  const int64_t together = std::lcm(data[0], data[1]);
  const int64_t times = std::max(div_ceil(2 * pair.first.parallel.pipeline * data[0], together),
                                 div_ceil(2 * pair.second.parallel.pipeline * data[1], together));
  return pair.first.train.micro_batch * together * times;
}

void require_legal(const Config& config) {
  const std::vector<Problem> problems = check_config(config);
  BEV_CHECK(problems.empty(), Internal, "{}", report(problems, "the shrunk configuration"));
}

std::string recompute_text(const RecomputeConfig& r) {
  std::string text = format("recomputation {}", name_of_choice(r.granularity));
  if (r.granularity != Recompute::Full) return text;
  if (r.layers > 0) text += format(" {}", name_of_choice(r.method));
  return r.distribute ? text + " distributed" : text;
}

}  // namespace

Config comparable(Config c, const Arithmetic& arithmetic, int64_t steps) {
  c.device.kind = arithmetic.device;
  c.device.precision = arithmetic.precision;
  c.device.cache = "off";
  c.optim.gradients = c.optim.first_moment = c.optim.second_moment = StatePrecision::F32;
  const bool is_packed = c.data.is_packed();
  c.data = {};
  c.data.mock = true;
  c.data.separate_sequences = is_packed;
  c.eval = {};
  c.log = {};
  c.train.output.clear();
  if (c.train.iterations == 0 && c.train.samples == 0) c.train.iterations = steps;
  constexpr double kRate = 1e-3;
  if (c.optim.lr == 0) c.optim.lr = kRate;
  return c;
}

LayoutPair under_layouts(const Config& config, const ParallelConfig& first,
                         const ParallelConfig& second) {
  LayoutPair pair{config, config};
  pair.first.parallel = first;
  pair.second.parallel = second;
  const int64_t tensor = std::lcm(first.tensor, second.tensor);
  const int64_t data = std::lcm(data_ranks(pair.first), data_ranks(pair.second));
  for (Config* c : {&pair.first, &pair.second}) {
    c->model.vocab_multiple = config.model.vocab_multiple * (tensor / c->parallel.tensor);
    if (config.train.global_batch == 0) c->train.global_batch = config.train.micro_batch * data;
    // A bi-encoder compares the pairs of a micro-batch on all data-parallel ranks.
    if (config.model.family == ModelFamily::Biencoder)
      c->train.micro_batch = config.train.micro_batch * (data / data_ranks(*c));
  }
  return pair;
}

LayoutPair shrink(const LayoutPair& pair, int64_t steps) {
  Config small = pair.first;
  ParallelConfig first = pair.first.parallel, second = pair.second.parallel;
  const std::array tensor{first.tensor, second.tensor};
  shrink_model(small, tensor);
  shrink_batch(small, tensor);
  shrink_training(small, steps);
  shrink_ends(first);
  shrink_ends(second);
  small.model.layers =
      std::min(small.model.layers, layers_of_each_stage(small.recompute) *
                                       std::max({kLayers, layers_for(first), layers_for(second)}));
  shrink_recompute(small.recompute);
  fill_ends(first, pipeline_blocks(small.model));
  fill_ends(second, pipeline_blocks(small.model));
  LayoutPair shrunk = under_layouts(small, first, second);
  shrunk.first.train.global_batch = shrunk.second.train.global_batch = small_batch(shrunk);
  require_legal(shrunk.first);
  require_legal(shrunk.second);
  return shrunk;
}

std::string shrunk_text(const Config& before, const Config& after) {
  const ModelShape m = resolve_model(before), n = resolve_model(after);
  const BatchShape b = resolve_batch(before), s = resolve_batch(after);
  std::vector<std::string> changes;
  const auto add = [&](std::string_view what, int64_t from, int64_t to) {
    if (from != to) changes.push_back(format("{} {} -> {}", what, from, to));
  };
  add("layers", m.layers, n.layers);
  add("width", m.width, n.width);
  add("heads", m.heads, n.heads);
  if (m.kv_heads != m.heads) add("kv heads", m.kv_heads, n.kv_heads);
  add("head size", m.head_dim, n.head_dim);
  add("ffn", m.ffn, n.ffn);
  add("vocabulary", m.vocab, n.vocab);
  add("window", before.model.window, after.model.window);
  add("sequence", b.sequence, s.sequence);
  add("micro-batch", b.micro_batch, s.micro_batch);
  add("global batch", b.global_batch, s.global_batch);
  return format("{}", fmt::join(changes, ", "));
}

std::string options_text(const Config& c) {
  const ModelConfig& m = c.model;
  std::vector<std::string> words;
  const auto add = [&](bool holds, std::string word) {
    if (holds) words.push_back(std::move(word));
  };
  add(true, std::string(name_of_choice(m.activation)));
  add(true, std::string(name_of_choice(m.norm)));
  add(true, format("{} positions", name_of_choice(m.position)));
  add(true, format("bias {}", name_of_choice(m.bias)));
  add(true, m.tied ? "tied" : "untied");
  add(m.qk_norm, "QK norm");
  add(m.window > 0, "window");
  add(c.data.is_packed(), "documents apart");
  add(m.hidden_dropout > 0 || m.attention_dropout > 0,
      format("dropout {} and {}", m.hidden_dropout, m.attention_dropout));
  add(c.loss.label_smoothing > 0, format("label smoothing {}", c.loss.label_smoothing));
  add(c.loss.z_loss > 0, format("z-loss {}", c.loss.z_loss));
  add(c.recompute.granularity != Recompute::None, recompute_text(c.recompute));
  add(true, std::string(name_of_choice(c.optim.kind)));
  add(c.optim.clip > 0, format("clip {}", c.optim.clip));
  return format("{}", fmt::join(words, ", "));
}

}  // namespace bev
