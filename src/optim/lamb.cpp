#include <algorithm>

#include "ops/elementwise.h"
#include "ops/lamb_update.h"
#include "optim/optimizer.h"
#include "optim/param_norms.h"

namespace bev {

namespace {

LambRule lamb_rule(const OptimConfig& c) {
  LambRule rule{.beta1 = c.beta1, .beta2 = c.beta2, .eps = c.eps};
  switch (c.kind) {
    case OptimizerKind::Lamb:
      rule.max_norm = c.lamb_clip;
      rule.averages = c.lamb_grad_averaging;
      rule.corrects_first = rule.corrects_second = c.lamb_bias_correction;
      rule.decoupled = c.lamb_decoupled;
      break;
    case OptimizerKind::LambPreprint: rule.corrects_first = rule.corrects_second = false; break;
    case OptimizerKind::MyLamb2: rule.has_noise = true; break;
    case OptimizerKind::MyLamb3: rule.corrects_first = false; break;
    default: break;
  }
  return rule;
}

TrustRatio trust_ratio_kind(const OptimConfig& c) {
  switch (c.kind) {
    case OptimizerKind::Lamb: return c.nvlamb ? TrustRatio::Norms : TrustRatio::DecayedNorms;
    case OptimizerKind::LambPaper: return TrustRatio::Norms;
    case OptimizerKind::LambPreprint: return TrustRatio::BoundedNorms;
    case OptimizerKind::LambTp: break;
    default: return TrustRatio::Clamped;
  }
  constexpr TrustRatio kSolutions[] = {TrustRatio::Shard, TrustRatio::Whole, TrustRatio::Mixed,
                                       TrustRatio::Previous};
  return kSolutions[c.lambtp_solution];
}

NormScope norm_scope(const OptimConfig& c) {
  return c.kind == OptimizerKind::LambTp ? NormScope::TensorShard : c.lamb_norms;
}

class Lamb final : public UpdateMethod {
 public:
  Lamb(const OptimConfig& config, const ParamStore& params, UpdateBuffers& buffers,
       ProcessGroups& groups)
      : rule_(lamb_rule(config)),
        ratio_(trust_ratio_kind(config)),
        device_(params.device()),
        buffers_(buffers),
        tensor_(groups.over({Axis::Tensor})),
        norms_(params, groups, norm_scope(config)),
        m_(buffers.make_state(StatePrecision::F32, "optimizer")),
        v_(buffers.make_state(StatePrecision::F32, "optimizer")) {
    if (rule_.has_noise) q_ = buffers.make_state(StatePrecision::F32, "optimizer");
    const auto count = static_cast<int64_t>(params.all().size());
    const int64_t norms = rule_.has_noise ? kMostLambNorms : 2;
    make_chunks(params);
    chunk_squares_ = norm_table(DType::f64, {chunks_.shape[0], norms});
    squares_ = norm_table(DType::f64, {count, norms});
    ratios_ = norm_table(DType::f64, {count, 2});
    if (ratio_ > TrustRatio::Shard) whole_squares_ = norm_table(DType::f64, {count, norms});
    if (ratio_ == TrustRatio::Previous) previous_ = norm_table(DType::f64, {count});
    describe_params(config, params, groups.world());
  }

  void step(Exec& ex, ConstTensor decision) override {
    each_run([&](const UpdateRange& r, FlatRange chunks) {
      ops::lamb_moments(ex, {.weights = weights(r),
                             .m = UpdateBuffers::state(m_, r),
                             .v = UpdateBuffers::state(v_, r),
                             .q = noise(r),
                             .grad = buffers_.grad(r),
                             .decision = decision,
                             .chunks = slice(chunks_, 0, chunks.begin, chunks.count),
                             .rule = rule_,
                             .decays = r.spec().decays(),
                             .squares = slice(chunk_squares_, 0, chunks.begin, chunks.count)});
    });
    ops::sum_segments(ex, {.x = chunk_squares_, .segments = segments_, .out = squares_});
    norms_.all_reduce(ex, squares_);
    if (whole_squares_.present()) {
      ops::copy(ex, {.in = squares_, .out = whole_squares_});
      if (tensor_.size() > 1) tensor_.all_reduce(ex, whole_squares_);
    }
    ops::lamb_ratios(ex, {.squares = squares_,
                          .whole = whole_squares_,
                          .params = params_,
                          .decision = decision,
                          .previous = previous_,
                          .kind = ratio_,
                          .tensor_ranks = tensor_.size(),
                          .out = ratios_});
    each_run([&](const UpdateRange& r, FlatRange chunks) {
      ops::lamb_update(ex, {.param = buffers_.param(r),
                            .master = buffers_.master(r),
                            .m = UpdateBuffers::state(m_, r),
                            .v = UpdateBuffers::state(v_, r),
                            .q = noise(r),
                            .grad = rule_.has_noise ? buffers_.grad(r) : ConstTensor{},
                            .decision = decision,
                            .chunks = slice(chunks_, 0, chunks.begin, chunks.count),
                            .ratios = ratios_,
                            .rule = rule_,
                            .decays = r.spec().decays()});
    });
  }

  std::vector<OptimizerState> states() const override {
    std::vector<OptimizerState> all{{"adam.m", m_}, {"adam.v", v_}};
    if (q_.present()) all.push_back({"lamb.q", q_});
    if (previous_.present()) all.push_back({"lamb.update_norm", previous_, true});
    return all;
  }

 private:
  Tensor norm_table(DType dtype, Shape shape) {
    tables_.emplace_back(device_, static_cast<size_t>(shape.elements()) * size_of(dtype),
                         "optimizer norms");
    return tensor_over(tables_.back().data(), dtype, shape);
  }
  template <class T>
  Tensor norm_table(const std::vector<T>& values, int64_t columns) {
    const Tensor table = norm_table(DTypeOf<T>::value, {std::ssize(values) / columns, columns});
    device_.upload(values.data(), table.data, bytes_of(table));
    return table;
  }

  // Calls body(run, its range of chunks).
  template <class Body>
  void each_run(const Body& body) const {
    for (size_t i = 0; i < buffers_.runs().size(); ++i) body(buffers_.runs()[i], run_chunks_[i]);
  }
  ConstTensor weights(const UpdateRange& r) const {
    return buffers_.master().present() ? buffers_.master(r) : buffers_.param(r);
  }
  Tensor noise(const UpdateRange& r) const {
    return q_.present() ? UpdateBuffers::state(q_, r) : Tensor{};
  }

  // Cuts the runs into chunks of one parameter each, which count in norms as a whole or not at all.
  void make_chunks(const ParamStore& params) {
    std::vector<int64_t> table, segments(2 * params.all().size());
    const auto chunks = [&] { return std::ssize(table) / ops::kChunkFields; };
    const auto add = [&](const UpdateRange& run, FlatRange range, int64_t row, bool counts) {
      for (int64_t begin = range.begin; begin < range.end(); begin += ops::kLambChunk) {
        const int64_t count = std::min(ops::kLambChunk, range.end() - begin);
        table.insert(table.end(), {begin - run.begin, count, row, counts ? 1 : 0});
      }
    };
    for (const UpdateRange& run : buffers_.runs()) {
      const int64_t first = chunks();
      for (const UpdateRange& range : buffers_.ranges()) {
        const FlatParam& place = *range.place;
        const FlatRange here = intersection(intersection(range, run),
                                            {place.begin, place.param->value.shape.elements()});
        if (here.count == 0) continue;
        const auto row =
            std::find(params.all().begin(), params.all().end(), place.param) - params.all().begin();
        segments[static_cast<size_t>(2 * row)] = chunks();
        int64_t at = here.begin;
        for (const ParamNorms::Counted& counted : norms_.counted()) {
          const FlatRange both = intersection(counted.range, here);
          if (counted.row != row || both.count == 0) continue;
          add(run, {at, both.begin - at}, row, false);
          add(run, both, row, true);
          at = both.end();
        }
        add(run, {at, here.end() - at}, row, false);
        segments[static_cast<size_t>(2 * row + 1)] = chunks();
      }
      run_chunks_.push_back({first, chunks() - first});
    }
    chunks_ = norm_table(table, ops::kChunkFields);
    segments_ = norm_table(segments, 2);
  }

  void describe_params(const OptimConfig& config, const ParamStore& params, Communicator& world) {
    std::vector<double> table;
    int64_t largest = 0;
    for (const Param* param : params.all()) {
      const int64_t whole = param->spec.shape.elements(), local = param->value.shape.elements();
      const int64_t elements = norm_scope(config) == NormScope::Whole ? whole : local;
      largest = std::max(largest, elements);
      table.insert(table.end(), {static_cast<double>(elements), static_cast<double>(whole), 1.0,
                                 param->spec.decays() ? 1.0 : 0.0});
    }
    // The largest of the model may lie on another pipeline rank.
    largest = world.all_reduce_max_host(largest);
    if (config.kind == OptimizerKind::MyLamb3) {
      for (size_t row = 0; row < table.size(); row += kLambParams)
        table[row + kLambBoost] =
            1 + config.alpha * table[row + kLambElements] / static_cast<double>(largest);
    }
    params_ = norm_table(table, kLambParams);
  }

  LambRule rule_;
  TrustRatio ratio_;
  Device& device_;
  UpdateBuffers& buffers_;
  Communicator& tensor_;
  ParamNorms norms_;
  Tensor m_, v_, q_;  // moments of the gradient and of its deviation from the first
  std::vector<Buffer> tables_;
  std::vector<FlatRange> run_chunks_;  // by run
  Tensor chunks_, segments_;           // segments: the chunks of each parameter
  Tensor params_;
  Tensor chunk_squares_, squares_, whole_squares_;
  Tensor ratios_, previous_;
};

}  // namespace

std::unique_ptr<UpdateMethod> make_lamb(const OptimConfig& config, const ParamStore& params,
                                        UpdateBuffers& buffers, ProcessGroups& groups) {
  return std::make_unique<Lamb>(config, params, buffers, groups);
}

}  // namespace bev
