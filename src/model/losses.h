// Losses of a model: their list, the tensors that modules add them to, and their means by name.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "data/batch.h"
#include "ops/update_rule.h"

namespace bev {

// The values of which a loss is the mean.
enum class LossUnit : uint8_t { Token, Sequence, MicroBatch };

struct LossSpec {
  std::string name;  // "lm": reports call it "lm loss"
  LossUnit unit = LossUnit::Token;
  double weight = 1;  // in the sum that is minimised; 0: only reported
};

// Values that are only reported, in percent, are losses whose name ends with this.
inline constexpr std::string_view kAccuracyEnding = "_accuracy";
inline bool is_accuracy(std::string_view name) { return name.ends_with(kAccuracyEnding); }
// "lm loss", "top1_accuracy".
inline std::string label_of_loss(std::string_view name) {
  return std::string(name) + (is_accuracy(name) ? "" : " loss");
}

// Values of a loss that a batch contributes.
double loss_count(LossUnit unit, const HostBatch& batch);

// The weights of all losses.
LossWeights loss_weights(std::span<const LossSpec> losses);

// Tensors of the losses in one pass.
struct Losses {
  // f64 [losses], optional: multiply the gradient of a loss. weight * loss scale / count over the
  // whole batch; if micro-batches are averaged, weight * loss scale * share / their number.
  ConstTensor factors{};
  // f64 [losses], optional: factor of the values of a loss, and of their number, in its sums.
  ConstTensor shares{};
  Tensor sums{};  // f64 [2 losses]: the sum of each loss and the number of its values; added to

  // Of one loss.
  ConstTensor factor(int loss) const { return entry(factors, loss); }
  ConstTensor share(int loss) const { return entry(shares, loss); }
  Tensor sum(int loss) const { return slice(sums, 0, 2 * loss, 2); }

 private:
  static ConstTensor entry(const ConstTensor& all, int loss) {
    return all.present() ? slice(all, 0, loss, 1) : ConstTensor{};
  }
};

struct LossSum {
  double sum = 0, count = 0;

  double mean() const { return sum / std::max(count, 1.0); }
};
// By the index of the loss; the first entries have the layout of Losses::sums.
using LossSums = std::array<LossSum, kMostLosses>;

struct LossMean {
  std::string_view name;
  double value = 0;
};

// The mean of each loss. Names are those of the specifications, which must outlive this.
class LossMeans {
 public:
  LossMeans() = default;
  LossMeans(std::initializer_list<LossMean> means);
  LossMeans(std::span<const LossSpec> losses, const LossSums& sums);

  const LossMean* begin() const { return means_.data(); }
  const LossMean* end() const { return means_.data() + count_; }

 private:
  std::array<LossMean, kMostLosses> means_{};
  size_t count_ = 0;
};

// The weighted sum of the means: the number that training minimises.
double total_loss(std::span<const LossSpec> losses, const LossSums& sums);

}  // namespace bev
