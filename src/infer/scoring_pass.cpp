#include "infer/scoring_pass.h"

#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

// What the environment of a model says while a batch is scored.
class ScoringEnv {
 public:
  ScoringEnv(PlacedModel& model, Tensor loss, Tensor stats)
      : env_(model.env), loss_before_(env_.loss), was_training_(env_.training) {
    env_.training = false;
    env_.loss = loss;
    env_.token_stats = stats;
    env_.classes = model.blueprint.shape.vocab;
  }
  ~ScoringEnv() {
    env_.training = was_training_;
    env_.loss = loss_before_;
    env_.token_stats = {};
    env_.classes = 0;
  }
  ScoringEnv(const ScoringEnv&) = delete;
  ScoringEnv& operator=(const ScoringEnv&) = delete;

 private:
  ModelEnv& env_;
  Tensor loss_before_;
  bool was_training_;
};

template <class T>
std::vector<double> downloaded(Device& device, const Tensor& t) {
  std::vector<T> values(static_cast<size_t>(t.shape.elements()));
  device.download(t.data, values.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

}  // namespace

ScoringPass::ScoringPass(PlacedModel& model, int64_t tokens, const ArenaSizes& sizes)
    : model_(model),
      pipeline_(model.groups.pipeline()),
      before_(pipeline_.rank() - 1),
      next_(pipeline_.rank() + 1 < pipeline_.size() ? pipeline_.rank() + 1 : -1),
      feed_(model.device, sizes.batch, 1),
      keep_(model.device, sizes.keep, "activations"),
      scratch_(model.device, sizes.scratch, "scratch"),
      recompute_(model.device, sizes.recompute, "recomputation"),
      loss_(model.device, 2 * sizeof(double), "scalars") {
  if (has_head()) return;
  for (Outgoing& each : outgoing_)
    each.hidden = keep_.allocate({tokens, model.blueprint.shape.width}, model.params.dtype(),
                                 "scoring.output");
}

Exec ScoringPass::exec() {
  return {model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
}

std::vector<TokenScore> ScoringPass::run(const HostBatch& batch) {
  const MicroBatch micro = feed_.load(batch, 0);
  const ArenaScope scope(keep_);
  Exec ex = exec();
  const int64_t tokens = micro.tokens_count();
  const DType dtype = model_.params.dtype();
  Tensor input, output, stats;
  if (before_ >= 0) {
    input = keep_.allocate({tokens, model_.blueprint.shape.width}, dtype, "scoring.input");
    pipeline_.recv(ex, input, before_, Channel::Forward);
  }
  Outgoing& outgoing = outgoing_[turn_];
  if (has_head()) {
    stats = keep_.allocate({tokens, ops::kSoftmaxStats}, accumulation_of(dtype), "scoring.stats");
  } else {
    turn_ = 1 - turn_;
    pipeline_.await(ex, outgoing.sent);
    output = slice(outgoing.hidden, 0, 0, tokens);
  }
  const Tensor loss = tensor_over(loss_.data(), DType::f64, {2});
  const ScoringEnv env(model_, loss, stats);
  ops::fill(ex, {.out = loss, .value = 0});
  model_.stages.front().infer(ex, model_.env, micro, input, output, {.losses = has_head()});
  if (has_head()) return scores_of(stats);
  outgoing.sent = pipeline_.send(ex, output, next_, Channel::Forward);
  return {};
}

void ScoringPass::finish() {
  Exec ex = exec();
  for (Outgoing& each : outgoing_) {
    pipeline_.await(ex, each.sent);
    each.sent = {};
  }
}

std::vector<TokenScore> ScoringPass::scores_of(const Tensor& stats) {
  const std::vector<double> values = stats.dtype == DType::f64
                                         ? downloaded<double>(model_.device, stats)
                                         : downloaded<float>(model_.device, stats);
  std::vector<TokenScore> scores(static_cast<size_t>(stats.rows()));
  for (size_t i = 0; i < scores.size(); ++i) {
    const double* of = values.data() + i * ops::kSoftmaxStats;
    scores[i] = {.loss = of[ops::kStatMax] - of[ops::kStatTarget] + std::log(of[ops::kStatSumExp]),
                 .is_likeliest = of[ops::kStatTarget] >= of[ops::kStatMax]};
  }
  return scores;
}

ArenaSizes ScoringPass::peaks() const {
  return {.keep = keep_.peak(),
          .batch = feed_.peak(),
          .scratch = scratch_.peak(),
          .recompute = recompute_.peak()};
}

}  // namespace bev
