#include "optim/grad_buffer.h"

#include <algorithm>

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

DType GradBuffer::dtype_of(const Param& param) const {
  const bool is_short = precision_ == StatePrecision::Bf16 && param.spec.is_matrix();
  return is_short ? DType::bf16 : accumulation_of(params_.dtype());
}

GradBuffer::GradBuffer(ParamStore& params, StatePrecision precision)
    : params_(params), precision_(precision) {
  if (is_sharded()) {
    keep_shards();
  } else {
    keep_all();
  }
}

// Extends the last run if the range follows it; memory is laid out in the order of the calls.
void GradBuffer::append_run(FlatRange range, DType dtype, std::byte* data) {
  if (range.count == 0) return;
  if (!runs_.empty() && runs_.back().dtype == dtype &&
      begins_.back() + runs_.back().shape[0] == range.begin) {
    runs_.back().shape.set(0, runs_.back().shape[0] + range.count);
  } else {
    runs_.push_back(tensor_over(data, dtype, {range.count}));
    begins_.push_back(range.begin);
  }
}

void GradBuffer::keep_all() {
  size_t bytes = 0;
  for (const FlatParam& place : params_.flat()) {
    const DType dtype = dtype_of(*place.param);
    bytes += static_cast<size_t>(place.count) * size_of(dtype);
    append_run({place.begin, place.count}, dtype, nullptr);
  }
  buffer_ = Buffer(params_.device(), bytes, "gradients");
  std::byte* data = buffer_.data();
  for (Tensor& part : runs_) {
    part.data = data;
    if (data != nullptr) data += bytes_of(part);
  }
  for (const FlatParam& place : params_.flat()) {
    const Shape& shape = place.param->value.shape;
    const Tensor flat = range(place.begin, shape.elements());
    place.param->grad = tensor_over(flat.data, flat.dtype, shape);
  }
  int64_t begin = 0;
  for (size_t i = 0; i < params_.flat().size(); ++i) {
    const FlatParam& place = params_.flat()[i];
    const bool is_last =
        i + 1 == params_.flat().size() || params_.flat()[i + 1].param->spec.is_matrix();
    const int64_t end = place.begin + place.count;
    if (place.param->spec.is_matrix()) {
      begin = end;
    } else if (is_last) {
      vectors_.push_back(range(begin, end - begin));
    }
  }
}

void GradBuffer::keep_shards() {
  // The parameters of a section have one dtype.
  std::vector<const Param*> first;
  for (const FlatParam& place : params_.flat()) {
    if (place.begin == params_.sections()[first.size()].begin) first.push_back(place.param);
    if (first.size() == params_.sections().size()) break;
  }
  const auto offset = [](std::byte* data, size_t bytes) {
    return data != nullptr ? data + bytes : nullptr;
  };
  const auto bytes_in = [&](size_t section, int64_t elements) {
    return static_cast<size_t>(elements) * size_of(dtype_of(*first[section]));
  };
  size_t bytes = 0;
  std::vector<size_t> shard_at;
  for (size_t i = 0; i < params_.sections().size(); ++i) {
    shard_at.push_back(bytes);
    bytes += bytes_in(i, params_.sections()[i].shard().count);
  }
  buffer_ = Buffer(params_.device(), bytes, "gradients");
  const ParamStore::StagingLayout layout = params_.plan_staging(
      double_buffers(), [&](size_t i) { return bytes_in(i, params_.sections()[i].count); });
  for (size_t i = 0; i < staging_memory_.size(); ++i) {
    if (layout.bytes[i] > 0)
      staging_memory_[i] = Buffer(params_.device(), layout.bytes[i], "gradient bucket");
  }
  size_t at = 0;
  for (size_t i = 0; i < params_.sections().size(); ++i) {
    const FlatSection& section = params_.sections()[i];
    const FlatRange shard = section.shard();
    const DType dtype = dtype_of(*first[i]);
    append_run(shard, dtype, offset(buffer_.data(), shard_at[i]));
    max_shard_bytes_ = std::max(max_shard_bytes_, bytes_in(i, shard.count));
    std::byte* memory =
        staging_memory_[ParamStore::staging_slot(section.bucket, double_buffers())].data();
    staging_.push_back(tensor_over(offset(memory, layout.begins[i]), dtype, {section.count}));
    for (; at < params_.flat().size() && params_.flat()[at].begin < section.end(); ++at) {
      const FlatParam& place = params_.flat()[at];
      const Tensor flat = slice(staging_.back(), 0, place.begin - section.begin,
                                place.param->value.shape.elements());
      place.param->grad = tensor_over(flat.data, flat.dtype, place.param->value.shape);
    }
  }
}

Tensor GradBuffer::staging(const FlatSection& section) const {
  for (size_t i = 0; i < staging_.size(); ++i) {
    if (params_.sections()[i].begin == section.begin) return staging_[i];
  }
  throw Error(ErrorKind::Internal, "no bucket has this section");
}

Tensor GradBuffer::range(int64_t begin, int64_t count) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
  BEV_CHECK(after != begins_.begin(), Internal, "no gradient at {}", begin);
  const auto part = static_cast<size_t>(after - begins_.begin() - 1);
  return slice(runs_[part], 0, begin - begins_[part], count);
}

void GradBuffer::begin_step(Exec& ex) {
  params_.begin_gradients();
  if (is_sharded()) {
    for (const Tensor& shard : runs_) ops::fill(ex, {.out = shard, .value = 0});
  }
  for (const Tensor& vectors : vectors_) ops::fill(ex, {.out = vectors, .value = 0});
}

}  // namespace bev
