#include "infer/embedding/embedding_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "device/memory.h"
#include "ops/make_device.h"
#include "ops/matmul.h"
#include "ops/norm.h"

namespace bev {

namespace {

// On the cpu a tile and its normalized copy stay in the cache that cores share.
constexpr size_t kHostTileBytes = size_t{8} << 20;
constexpr size_t kCudaTileBytes = size_t{256} << 20;

// Rows of a smaller norm than about 1 / this are scored in float64 only: the eps of the norm
// changes their estimate by more than rounding does.
constexpr float kLargestInverseRms = 1e12f;
constexpr double kNormEps = 1e-30;

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double length_of(std::span<const float> a) { return std::sqrt(dot(a, a)); }

// The reference device computes in f64 only.
DType estimate_dtype(const Device& device) {
  return device.kind() == DeviceKind::Reference ? DType::f64 : DType::f32;
}

// Whether rows are copied from the file; the cpu device reads them where they are mapped.
bool copies_rows(const Device& device) { return device.kind() != DeviceKind::Cpu; }

// Estimates of cosines on a device: the GEMM of questions of length 1 with rows over their RMS.
class TileScorer {
 public:
  // `memory`: bytes on the device; on the null device, which plans for `target`, peak() counts
  // them.
  TileScorer(Device& device, const Device& target, size_t memory, int64_t width, int64_t tile_rows,
             int64_t questions)
      : device_(device),
        dtype_(estimate_dtype(target)),
        arena_(device, memory, "search"),
        questions_(arena_.allocate({questions, width}, dtype_, "questions")),
        ones_(arena_.allocate({width}, dtype_, "ones")),
        normed_(arena_.allocate({tile_rows, width}, dtype_, "normed rows")),
        inverse_rms_(arena_.allocate({tile_rows}, dtype_, "inverse RMS")),
        scores_(arena_.allocate({questions, tile_rows}, dtype_, "scores")) {
    if (copies_rows(target)) rows_ = arena_.allocate({tile_rows, width}, dtype_, "rows");
  }

  void set_questions(const std::vector<float>& unit_questions) {
    const std::vector<float> ones(static_cast<size_t>(ones_.rows()), 1.0f);
    upload(ones, ones_);
    upload(unit_questions, questions_);
  }

  // Fills inverse_rms [rows] and scores [questions, rows].
  void score(std::span<const float> rows, std::vector<float>& inverse_rms,
             std::vector<float>& scores) {
    const int64_t width = ones_.rows(), count = std::ssize(rows) / width;
    ConstTensor x =
        tensor_over(reinterpret_cast<const std::byte*>(rows.data()), DType::f32, {count, width});
    if (rows_.present()) {
      upload(rows, rows_);
      x = slice(ConstTensor(rows_), 0, 0, count);
    }
    Exec ex{device_, device_.compute_stream(), arena_, arena_, arena_};
    const Tensor normed = slice(normed_, 0, 0, count);
    const Tensor rms = slice(inverse_rms_, 0, 0, count);
    const Tensor out = tensor_over(scores_.data, dtype_, {questions_.rows(), count});
    ops::norm(ex, {.kind = NormKind::RmsNorm,
                   .x = x,
                   .weight = ones_,
                   .eps = kNormEps,
                   .y = normed,
                   .rstd = rms});
    ops::matmul(ex, {.a = questions_, .b = normed, .tb = ops::Transpose::Yes, .out = out});
    download(rms, inverse_rms);
    download(out, scores);
  }

  size_t peak() const { return arena_.peak(); }

 private:
  void upload(std::span<const float> values, const Tensor& to) {
    if (dtype_ == DType::f32) return device_.upload(values.data(), to.data, values.size_bytes());
    const std::vector<double> wide(values.begin(), values.end());
    device_.upload(wide.data(), to.data, wide.size() * sizeof(double));
  }

  void download(const Tensor& from, std::vector<float>& values) {
    values.resize(static_cast<size_t>(from.shape.elements()));
    if (dtype_ == DType::f32)
      return device_.download(from.data, values.data(), values.size() * sizeof(float));
    std::vector<double> wide(values.size());
    device_.download(from.data, wide.data(), wide.size() * sizeof(double));
    std::transform(wide.begin(), wide.end(), values.begin(),
                   [](double x) { return static_cast<float>(x); });
  }

  Device& device_;
  DType dtype_;
  Arena arena_;
  Tensor questions_, ones_, normed_, inverse_rms_, scores_, rows_;
};

bool is_better(const EmbeddingMatch& a, const EmbeddingMatch& b) {
  return a.score > b.score || (a.score == b.score && a.row < b.row);
}

// One question and its best matches so far.
class RankedRows {
 public:
  RankedRows(std::span<const float> question, const EmbeddingSearch& search)
      : question_(question), length_(length_of(question)), search_(search) {}

  // Whether a row may be a match: `estimate` is that of TileScorer, off by at most `error`.
  bool may_hold(double estimate, double error, double inverse_rms) const {
    if (std::ssize(heap_) < search_.top) return true;
    // The worst match in the unit of the estimate. Of a question of length 0 it is not a number,
    // and equal scores of later rows change nothing.
    const double unit = search_.similarity == Similarity::Dot
                            ? inverse_rms / length_
                            : std::sqrt(static_cast<double>(question_.size()));
    return estimate + error >= heap_.front().score * unit;
  }

  // REQUIRES: rows come in ascending order.
  void add(int64_t row, std::span<const float> values) {
    double score = dot(question_, values);
    if (search_.similarity == Similarity::Cosine) {
      const double lengths = length_ * length_of(values);
      score = lengths > 0 ? score / lengths : 0;
    }
    if (std::ssize(heap_) == search_.top) {
      if (score <= heap_.front().score) return;
      std::pop_heap(heap_.begin(), heap_.end(), is_better);
      heap_.pop_back();
    }
    heap_.push_back({.row = row, .score = score});
    std::push_heap(heap_.begin(), heap_.end(), is_better);
  }

  std::vector<EmbeddingMatch> take() {
    std::sort_heap(heap_.begin(), heap_.end(), is_better);
    return std::move(heap_);
  }

 private:
  std::span<const float> question_;
  double length_;
  const EmbeddingSearch& search_;
  std::vector<EmbeddingMatch> heap_;  // the worst match is the first
};

// Bounds the error of an estimate, by the usual bound of a sum of `width` products in any order,
// with room for the rounding of the operands. Rows over their RMS have the length sqrt(width).
double estimate_error(const Device& device, int64_t width) {
  const double rounding = device.policy().tf32 ? 0x1p-11 : 0x1p-24;
  const auto columns = static_cast<double>(width);
  return 3 * (columns + 16) * rounding * std::sqrt(columns);
}

std::vector<float> unit_questions(const std::vector<std::vector<float>>& questions) {
  std::vector<float> values;
  for (const std::vector<float>& question : questions) {
    const double length = length_of(question);
    for (const float x : question)
      values.push_back(length > 0 ? static_cast<float>(double{x} / length) : 0.0f);
  }
  return values;
}

void require_finite(std::span<const float> values, const EmbeddingFile& file, int64_t row) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  BEV_CHECK(bad == values.end(), Data,
            "{}: row {} is not finite: column {} is {}\n"
            "the file is damaged, or another program wrote it: embed the texts again",
            file.path().string(), row, bad - values.begin(), *bad);
}

int64_t tile_rows_of(const Device& device, const EmbeddingFile& file, int64_t questions,
                     const EmbeddingSearch& search) {
  size_t bytes = search.tile_bytes;
  if (bytes == 0) bytes = device.kind() == DeviceKind::Cuda ? kCudaTileBytes : kHostTileBytes;
  // A row, its normalized copy and its scores.
  const int64_t row_bytes = static_cast<int64_t>(sizeof(float)) * (2 * file.width() + questions);
  return std::clamp<int64_t>(static_cast<int64_t>(bytes) / row_bytes, 1, file.rows());
}

}  // namespace

std::vector<std::vector<EmbeddingMatch>> search_embeddings(
    Device& device, const EmbeddingFile& file, const std::vector<std::vector<float>>& questions,
    const EmbeddingSearch& search, FunctionRef<void(int64_t rows)> on_done) {
  const int64_t width = file.width(), count = std::ssize(questions);
  const int64_t tile_rows = tile_rows_of(device, file, count, search);
  const auto null = make_null_device(device.kind(), 1);
  std::vector<float> inverse_rms, scores;
  TileScorer planned(*null, device, 0, width, tile_rows, count);
  planned.score(file.read(0, tile_rows), inverse_rms, scores);
  TileScorer scorer(device, device, planned.peak(), width, tile_rows, count);
  scorer.set_questions(unit_questions(questions));

  std::vector<RankedRows> ranked;
  for (const std::vector<float>& question : questions) ranked.emplace_back(question, search);
  const double error = estimate_error(device, width);
  for (int64_t begin = 0; begin < file.rows(); begin += tile_rows) {
    const int64_t end = std::min(begin + tile_rows, file.rows());
    file.prefetch(end, std::min(end + tile_rows, file.rows()));
    scorer.score(file.read(begin, end), inverse_rms, scores);
    for (int64_t at = 0; at < end - begin; ++at) {
      const int64_t row = begin + at;
      const float rms = inverse_rms[static_cast<size_t>(at)];
      const bool has_estimate = rms > 0 && rms < kLargestInverseRms;  // not if a column is NaN
      if (!has_estimate) require_finite(file.read(row, row + 1), file, row);
      for (int64_t question = 0; question < count; ++question) {
        const double estimate = scores[static_cast<size_t>(question * (end - begin) + at)];
        RankedRows& rows = ranked[static_cast<size_t>(question)];
        if (!has_estimate || rows.may_hold(estimate, error, rms))
          rows.add(row, file.read(row, row + 1));
      }
    }
    file.release(begin, end);
    on_done(end);
  }
  std::vector<std::vector<EmbeddingMatch>> matches;
  matches.reserve(ranked.size());
  for (RankedRows& rows : ranked) matches.push_back(rows.take());
  return matches;
}

}  // namespace bev
