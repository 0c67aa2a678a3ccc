#include "train/step_diagnosis.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "comm/shared_text.h"
#include "device/buffer.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

constexpr size_t kMostNamed = 3;
constexpr int64_t kMostJudged = 32;

// The samples of one step, counted from 0.
class StepSamples final : public Samples {
 public:
  StepSamples(const Samples& all, int64_t position, const SampleRanges& skipped)
      : all_(all), position_(position), skipped_(skipped) {}

  int64_t number_of(int64_t index) const { return skipped_.outside(position_, index); }
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    all_.read(number_of(index), batch, at);
  }
  std::string describe(int64_t index) const override { return all_.describe(number_of(index)); }

 private:
  const Samples& all_;
  int64_t position_;
  const SampleRanges& skipped_;
};

// What cannot be compared counts as larger than all else.
double comparable(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

}  // namespace

Diagnosis::Diagnosis(Assembly& assembly, Stepper& stepper, std::shared_ptr<const Samples> samples)
    : assembly_(assembly), stepper_(stepper), samples_(std::move(samples)) {}

std::string Diagnosis::explain(const IssuedStep& step, const SampleRanges& skipped,
                               const StepResult& result) {
  const bool was_finite = (result.findings & (kLossNotFinite | kNormNotFinite)) == 0;
  const std::string samples = worst_samples(step, skipped, result);
  return samples + worst_tensor(step, skipped, was_finite);
}

int Diagnosis::rank_of(int64_t number) const {
  const ParallelLayout& layout = assembly_.groups.layout();
  const int64_t share = number / assembly_.config.train.micro_batch % layout.data;
  for (int rank = 0; rank < layout.world(); ++rank)
    if (layout.grid().coordinate(rank, Axis::Data) == share) return rank;
  return 0;
}

std::string Diagnosis::worst_samples(const IssuedStep& step, const SampleRanges& skipped,
                                     const StepResult& result) {
  struct Judged {
    int64_t number, sample;  // in the step, in the data
    double loss;
  };
  const BatchShape batch = resolve_batch(assembly_.config);
  Groups& groups = assembly_.groups;
  Evaluation evaluation(
      assembly_.executor, {batch.sequence, batch.micro_batch, batch.micro_batch, 1},
      assembly_.config.data.is_packed(), groups.coordinate(Axis::Data), groups.layout().data);
  const StepSamples samples(*samples_, step.begin.position, skipped);
  const auto mean_loss = [&](int64_t first, int64_t count) {
    const LossSum sum = evaluation.run(samples, first, count);
    return sum.loss / std::max(sum.weight, 1.0);
  };
  // One by one would take longer than the step where many ranks share a large batch: first the half
  // that is worse, and of that again.
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

std::string Diagnosis::worst_tensor(const IssuedStep& step, const SampleRanges& skipped,
                                    bool was_finite) {
  Communicator& world = assembly_.groups.world();
  {
    Loader again(samples_,
                 Loader::shape_of(assembly_.config, assembly_.groups.coordinate(Axis::Data)),
                 step.begin, skipped);
    stepper_.recompute(again.next());
  }
  // Each rank looks at what it counts in the norm.
  Exec ex = assembly_.executor.exec();
  const std::span<const FlatPlace> places = assembly_.params.flat();
  const Buffer memory(assembly_.device, places.size() * sizeof(double), "norms of gradients");
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor out = tensor_over(memory.data() + i * sizeof(double), DType::f64, {1});
    ops::fill(ex, {.out = out, .value = 0});
    assembly_.reducer.squared_norm_here(ex, {places[i].begin, places[i].count}, out);
  }
  std::vector<double> squares(places.size());
  ex.stream.synchronize();
  assembly_.device.download(memory.data(), reinterpret_cast<std::byte*>(squares.data()),
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
  // Doubles that are not negative are in the order of their bits.
  const auto bits = worst < 0 ? int64_t{-1} : std::bit_cast<int64_t>(worst);
  const int64_t largest = world.largest(bits);
  if (largest < 0) return "";
  const int culprit =
      world.size() - 1 -
      static_cast<int>(world.largest(bits == largest ? world.size() - 1 - world.rank() : -1));
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
  return shared_text(world, text, culprit);
}

}  // namespace bev
