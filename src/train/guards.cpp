#include "train/guards.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/format.h"
#include "comm/communicator.h"
#include "coordination/rank_text.h"
#include "device/memory.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace bev {

std::string describe_findings(int64_t iteration, const StepResult& r) {
  if ((r.findings & kLossNotFinite) != 0)
    return format("the loss of iteration {} is not finite", iteration);
  if ((r.findings & kNormNotFinite) != 0)
    return format("the gradient of iteration {} is not finite", iteration);
  std::string text;
  if ((r.findings & kLossSpike) != 0)
    text = format("the loss of iteration {} is a spike: {:.4f}, where up to {:.4f} is usual",
                  iteration, r.loss, r.loss_limit);
  if ((r.findings & kNormSpike) != 0)
    text += format("{} is a spike: {:.3f}, where up to {:.3f} is usual",
                   text.empty() ? format("the gradient norm of iteration {}", iteration)
                                : "; its gradient norm",
                   r.grad_norm, r.norm_limit);
  return text;
}

namespace {

// Whether all ranks pass the same number.
bool is_common(Communicator& ranks, int64_t here) {
  const int64_t most = ranks.all_reduce_max_host(here), least = -ranks.all_reduce_max_host(-here);
  return most == least;
}

}  // namespace

ReplicaCheck::ReplicaCheck(const ParamStore& store, const Optimizer& optimizer,
                           ProcessGroups& groups)
    : groups_(groups) {
  const ParallelLayout& layout = groups.layout();
  // Tensor `index` has a copy on every rank of the group.
  const auto add = [&](Communicator& group, size_t index) {
    if (group.size() == 1) return;
    const auto known = std::find_if(shared_.begin(), shared_.end(),
                                    [&](const Shared& s) { return s.ranks == &group; });
    Shared& shared = known != shared_.end() ? *known : shared_.emplace_back(Shared{&group, {}});
    shared.tensors.push_back(index);
  };
  // All ranks compare over groups of one kind before those of the next.
  const std::span<Param* const> params = store.all();
  if (!store.is_sharded()) {
    for (const Param* param : params) {
      add(groups.over(shard_group(param->spec.place.grid)), tensors_.size());
      tensors_.push_back({param->spec.name, param->value});
    }
    for (const OptimizerState& buffer : optimizer.states()) {
      if (layout.zero > 0) break;
      if (buffer.per_param) {
        add(groups.over(shard_group(GridKind::Dense)), tensors_.size());
        tensors_.push_back({std::string(buffer.name), buffer.flat});
        continue;
      }
      for (const FlatSection& section : store.sections()) {
        add(groups.over(section.group), tensors_.size());
        tensors_.push_back(
            {std::string(buffer.name), slice(buffer.flat, 0, section.begin, section.count)});
      }
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const Placement& place = params[i]->spec.place;
      if (!place.cut) add(groups.over(GroupKey{place.grid, {Axis::Tensor}}), i);
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const Placement& place = params[i]->spec.place;
      if (place.is_shared()) add(groups.of_stages(place.stages), i);
    }
  }
  memory_ = Buffer(store.device(), std::max<size_t>(1, tensors_.size()) * sizeof(int64_t),
                   "hashes of weights");
}

std::vector<int64_t> ReplicaCheck::hashes(Exec& ex) {
  // Parameter gathers may still be in flight.
  ex.device.comm_stream().synchronize();
  std::vector<int64_t> hashes(tensors_.size(), 0);
  const size_t bytes = hashes.size() * sizeof(int64_t);
  ex.device.upload(hashes.data(), memory_.data(), bytes);
  for (size_t i = 0; i < tensors_.size(); ++i)
    ops::hash_bits(ex, {.x = tensors_[i].tensor,
                        .out = tensor_over(memory_.data() + i * sizeof(int64_t), DType::i64, {1})});
  ex.stream.synchronize();
  ex.device.download(memory_.data(), hashes.data(), bytes);
  // Clear the sign bit: is_common() negates the hashes.
  for (int64_t& hash : hashes) hash &= INT64_MAX;
  return hashes;
}

std::string ReplicaCheck::find_difference(Exec& ex) {
  Communicator& world = groups_.world();
  if (world.size() == 1) return "";
  const std::vector<int64_t> hashed = hashes(ex);
  std::string text;
  // Every comparison is collective: continue after a difference was found.
  for (const Shared& shared : shared_) {
    const std::string found = compare(shared, hashed);
    if (text.empty()) text = found;
  }
  // The first rank that found a difference broadcasts it.
  const auto first = static_cast<int>(
      world.size() - 1 -
      world.all_reduce_max_host(text.empty() ? -1 : world.size() - 1 - world.rank()));
  if (first >= world.size()) return "";
  return broadcast_text(world, text, first);
}

std::string ReplicaCheck::compare(const Shared& shared, const std::vector<int64_t>& hashes) {
  uint64_t all = 0;
  for (const size_t i : shared.tensors) all = all * 31 + static_cast<uint64_t>(hashes[i]);
  if (is_common(*shared.ranks, static_cast<int64_t>(all >> 1))) return "";
  for (const size_t i : shared.tensors)
    if (!is_common(*shared.ranks, hashes[i]))
      return name_ranks(*shared.ranks, tensors_[i], hashes[i]);
  return "";
}

std::string ReplicaCheck::name_ranks(Communicator& ranks, const Hashed& hashed, int64_t hash) {
  std::map<int64_t, std::vector<int>> holders;  // world ranks by hash
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const bool is_own = rank == ranks.rank();
    const int64_t of_rank = ranks.all_reduce_max_host(is_own ? hash : -1);
    const int64_t number = ranks.all_reduce_max_host(is_own ? groups_.world().rank() : -1);
    holders[of_rank].push_back(static_cast<int>(number));
  }
  const auto most = std::max_element(
      holders.begin(), holders.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<int> others;
  for (const auto& [value, numbers] : holders)
    if (value != most->first) others.insert(others.end(), numbers.begin(), numbers.end());
  std::sort(others.begin(), others.end());
  if (most->second.size() > others.size())
    return format("{} of {} differs from that of {}", hashed.name, ranks_text(others),
                  ranks_text(most->second));
  std::vector<int> all = others;
  all.insert(all.end(), most->second.begin(), most->second.end());
  std::sort(all.begin(), all.end());
  return format("{} is not the same on {}, and there is no majority that tells which is right",
                hashed.name, ranks_text(all));
}

namespace {

constexpr size_t kMostNamed = 3;
constexpr int64_t kMostJudged = 32;

// The samples of one step, counted from 0.
class StepSamples final : public Dataset {
 public:
  StepSamples(const Dataset& all, int64_t position, const SampleRanges& skipped)
      : all_(all), position_(position), skipped_(skipped) {}

  int64_t number_of(int64_t index) const { return skipped_.outside(position_, index); }
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    all_.read(number_of(index), batch, at);
  }
  std::string describe(int64_t index) const override { return all_.describe(number_of(index)); }

 private:
  const Dataset& all_;
  int64_t position_;
  const SampleRanges& skipped_;
};

// Values that are not finite compare as larger than all others.
double comparable(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

}  // namespace

StepDiagnosis::StepDiagnosis(TrainingState& state, StepRunner& stepper,
                             std::shared_ptr<const Dataset> samples)
    : state_(state), stepper_(stepper), samples_(std::move(samples)) {}

std::string StepDiagnosis::explain(const SubmittedStep& step, const SampleRanges& skipped,
                                   const StepResult& result) {
  const bool was_finite = (result.findings & (kLossNotFinite | kNormNotFinite)) == 0;
  const std::string samples = worst_samples(step, skipped, result);
  return samples + worst_tensor(step, skipped, was_finite);
}

int StepDiagnosis::rank_of(int64_t number) const {
  const ParallelLayout& layout = state_.groups.layout();
  const int64_t share = number / state_.config.train.micro_batch % layout.data;
  for (int rank = 0; rank < layout.world(); ++rank)
    if (layout.grid().coordinate(rank, Axis::Data) == share) return rank;
  return 0;
}

std::string StepDiagnosis::worst_samples(const SubmittedStep& step, const SampleRanges& skipped,
                                         const StepResult& result) {
  struct Judged {
    int64_t number, sample;  // in the step, in the data
    double loss;
  };
  const BatchShape batch = resolve_batch(state_.config);
  ProcessGroups& groups = state_.groups;
  Evaluation evaluation(state_.executor, {batch.sequence, batch.micro_batch, batch.micro_batch, 1},
                        state_.spec.batch, groups.coordinate(Axis::Data), groups.layout().data);
  const StepSamples samples(*samples_, step.begin.position, skipped);
  const auto mean_loss = [&](int64_t first, int64_t count) {
    return total_loss(state_.spec.losses, evaluation.run(samples, first, count));
  };
  // Evaluating every sample of a large batch would take longer than the step: bisect first, towards
  // the half with the larger loss.
  int64_t first = 0, count = step.samples();
  while (count > kMostJudged) {
    const int64_t half = count / 2;
    const bool is_later =
        comparable(mean_loss(first + half, count - half)) > comparable(mean_loss(first, half));
    first += is_later ? half : 0;
    count = is_later ? count - half : half;
  }
  std::vector<Judged> judged;
  int64_t bad = 0;
  for (int64_t number = first; number < first + count; ++number) {
    const double loss = mean_loss(number, 1);
    bad += std::isfinite(loss) ? 0 : 1;
    judged.push_back({number, samples.number_of(number), loss});
  }
  std::stable_sort(judged.begin(), judged.end(), [](const Judged& a, const Judged& b) {
    return comparable(a.loss) > comparable(b.loss);
  });
  const bool loss_was_bad = (result.findings & kLossNotFinite) != 0;
  std::string text;
  if (bad > 0) {
    text = format("\n  {}{} of its {} samples have a loss that is not finite:",
                  count < step.samples() ? "at least " : "", bad, step.samples());
  } else if (loss_was_bad) {
    return format("\n  computed again, the loss of each of its {} samples is finite",
                  step.samples());
  } else {
    text = format("\n  its samples with the largest loss, computed again without dropout:");
  }
  const size_t named = bad > 0 ? std::min<size_t>(static_cast<size_t>(bad), kMostNamed)
                               : std::min(judged.size(), kMostNamed);
  for (size_t i = 0; i < named; ++i) {
    const Judged& j = judged[i];
    const std::string rank = groups.layout().data > 1 ? format("rank {}, ", rank_of(j.number)) : "";
    text += format("\n    {}{}{}", rank, bad > 0 ? "" : format("{:.3f}: ", j.loss),
                   samples_->describe(j.sample));
  }
  if (bad > static_cast<int64_t>(kMostNamed)) text += "\n    ...";
  return text;
}

std::string StepDiagnosis::worst_tensor(const SubmittedStep& step, const SampleRanges& skipped,
                                        bool was_finite) {
  Communicator& world = state_.groups.world();
  {
    DataLoader again(samples_,
                     DataLoader::shape_of(state_.config, state_.spec.batch,
                                          state_.groups.coordinate(Axis::Data)),
                     step.begin, skipped);
    stepper_.recompute(again.next());
  }
  // Each rank checks the gradients that it contributes to the norm.
  Exec ex = state_.executor.exec();
  const std::span<const FlatParam> places = state_.params.flat();
  const Buffer memory(state_.device, places.size() * sizeof(double), "norms of gradients");
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor out = tensor_over(memory.data() + i * sizeof(double), DType::f64, {1});
    ops::fill(ex, {.out = out, .value = 0});
    state_.reducer.local_squared_norm(ex, {places[i].begin, places[i].count}, out);
  }
  std::vector<double> squares(places.size());
  ex.stream.synchronize();
  state_.device.download(memory.data(), reinterpret_cast<std::byte*>(squares.data()),
                         squares.size() * sizeof(double));
  double own = 0, worst = -1;
  size_t which = 0;
  int64_t broken = 0;
  for (size_t i = 0; i < squares.size(); ++i) {
    own += squares[i];
    broken += std::isfinite(squares[i]) ? 0 : 1;
    if (comparable(squares[i]) <= worst) continue;
    worst = comparable(squares[i]);
    which = i;
  }
  // Non-negative doubles have the order of their bits.
  const auto bits = worst < 0 ? int64_t{-1} : std::bit_cast<int64_t>(worst);
  const int64_t largest = world.all_reduce_max_host(bits);
  if (largest < 0) return "";
  const int culprit = world.size() - 1 -
                      static_cast<int>(world.all_reduce_max_host(
                          bits == largest ? world.size() - 1 - world.rank() : -1));
  std::string text;
  if (world.rank() == culprit) {
    const std::string name = places[which].param->spec.name;
    const std::string where = world.size() > 1 ? format(" (rank {})", culprit) : "";
    if (broken > 0) {
      text = format("\n  gradients that are not finite: {} of {} tensors{}, the first {}", broken,
                    squares.size(), where, name);
    } else if (!was_finite) {
      text = "\n  computed again, all gradients are finite: this may be a fault of the hardware";
    } else {
      text = format("\n  the largest part of the gradient: {}, {:.0f} % of {}", name,
                    100 * std::sqrt(worst / std::max(own, 1e-300)),
                    world.size() > 1 ? format("what rank {} holds", culprit) : "its norm");
    }
  }
  return broadcast_text(world, text, culprit);
}

}  // namespace bev
