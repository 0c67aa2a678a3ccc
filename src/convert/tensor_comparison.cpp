#include "convert/tensor_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/model_spec.h"
#include "tensor/rectangle.h"

namespace bev {

namespace {

constexpr int64_t kComparedElements = int64_t{4} << 20;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Equal in all but the number of rows.
bool differ_in_rows_only(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() < 1) return false;
  Shape other = b;
  other.set(0, a[0]);
  return other == a;
}

// A block of a tensor as it is stored and in float64.
class Block {
 public:
  Block(const TensorSource& source, const std::string& name, DType dtype)
      : source_(source), name_(name), dtype_(dtype) {}

  void read(const Rectangle& where) {
    raw_.resize(static_cast<size_t>(where.elements()) * size_of(dtype_));
    source_.read(name_, where, dtype_, raw_.data());
    values_.resize(static_cast<size_t>(where.elements()));
    convert_elements(raw_, dtype_, std::as_writable_bytes(std::span(values_)), DType::f64);
  }
  const std::byte* bits(size_t element) const { return raw_.data() + element * size_of(dtype_); }
  const std::vector<double>& values() const { return values_; }

 private:
  const TensorSource& source_;
  const std::string& name_;
  DType dtype_;
  std::vector<std::byte> raw_;
  std::vector<double> values_;
};

}  // namespace

bool is_vocabulary_table(std::string_view name) {
  constexpr std::array<std::string_view, 6> kTables{
      kTokenTable,  kHeadWeight,      "transformer.wte.weight",
      "wte.weight", "lm_head.weight", "model.embed_tokens.weight"};
  const std::string_view parameter = parameter_of(name);
  // Each encoder of a bi-encoder may have its table.
  return parameter.ends_with(std::string(".") + kTokenTable) ||
         std::find(kTables.begin(), kTables.end(), parameter) != kTables.end();
}

TensorNames match_tensors(const TensorSource& first, const TensorSource& second,
                          bool with_optimizer) {
  const auto is_wanted = [&](const std::string& name) {
    return with_optimizer || parameter_of(name) == name;
  };
  TensorNames names;
  for (const auto& [name, entry] : first.tensors())
    if (is_wanted(name))
      (second.tensors().contains(name) ? names.both : names.only_first).push_back(name);
  for (const auto& [name, entry] : second.tensors())
    if (is_wanted(name) && !first.tensors().contains(name)) names.only_second.push_back(name);
  return names;
}

TensorComparison compare_tensor(const TensorSource& first, const TensorSource& second,
                                const std::string& name, const ElementProgress& progress) {
  TensorComparison result{.name = name,
                          .entry = {first.tensors().at(name), second.tensors().at(name)}};
  const auto& [a, b] = result.entry;
  Rectangle common = whole_of(a.shape);
  if (a.shape != b.shape) {
    if (!is_vocabulary_table(name) || !differ_in_rows_only(a.shape, b.shape)) return result;
    common = intersection(common, whole_of(b.shape));
  }
  result.is_compared = true;
  result.rows = common.rows;
  const bool same_type = a.dtype == b.dtype;
  Block ours(first, name, a.dtype), theirs(second, name, b.dtype);
  double difference_squares = 0, squares = 0;
  for_each_block(common, kComparedElements, [&](const Rectangle& block) {
    ours.read(block);
    theirs.read(block);
    for (size_t i = 0; i < ours.values().size(); ++i) {
      const double x = ours.values()[i], y = theirs.values()[i];
      if (std::isfinite(y)) squares += y * y;
      if (same_type ? std::memcmp(ours.bits(i), theirs.bits(i), size_of(a.dtype)) == 0 : x == y)
        continue;
      if (result.differing++ == 0) {
        result.first_row = block.row + static_cast<int64_t>(i) / block.columns;
        result.first_column = block.column + static_cast<int64_t>(i) % block.columns;
      }
      const double plain = std::abs(x - y);
      const double apart = std::isfinite(plain) ? plain : kInfinite;
      result.largest = std::max(result.largest, apart);
      difference_squares += apart * apart;
    }
    if (progress) progress(block.elements());
  });
  // Bits may differ where values do not, as those of -0 and 0.
  if (difference_squares > 0)
    result.relative = squares > 0 ? std::sqrt(difference_squares / squares) : kInfinite;
  return result;
}

namespace {

constexpr int64_t kStatisticsElements = int64_t{4} << 20;

}  // namespace

TensorStatistics statistics_of(const TensorSource& source, const std::string& name,
                               const ElementProgress& progress) {
  TensorStatistics all;
  double squares = 0;
  int64_t finite = 0;
  std::vector<double> values;
  for_each_block(
      whole_of(source.tensors().at(name).shape), kStatisticsElements, [&](const Rectangle& block) {
        values.resize(static_cast<size_t>(block.elements()));
        source.read(name, block, DType::f64, std::as_writable_bytes(std::span(values)).data());
        for (const double value : values) {
          if (!std::isfinite(value)) continue;
          all.smallest = finite == 0 ? value : std::min(all.smallest, value);
          all.largest = finite == 0 ? value : std::max(all.largest, value);
          squares += value * value;
          ++finite;
        }
        all.elements += block.elements();
        if (progress) progress(block.elements());
      });
  all.norm = std::sqrt(squares);
  all.non_finite = all.elements - finite;
  return all;
}

}  // namespace bev
