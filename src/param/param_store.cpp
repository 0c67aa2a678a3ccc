#include "param/param_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/philox.h"
#include "device/thread_pool.h"
#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// Elements [begin, begin + count) of a parameter in logical order. Element i is word i % 4 of block
// i / 4, whatever part of the parameter this rank holds.
template <class T>
void fill_run(T* values, uint64_t begin, int64_t count, float std, uint64_t key) {
  for (int64_t done = 0; done < count;) {
    const uint64_t index = begin + static_cast<uint64_t>(done);
    const std::array<float, 4> normals = normals_of(philox(key, 0, index / 4));
    for (size_t word = index % 4; word < 4 && done < count; ++word) {
      values[done++] = static_cast<T>(std * normals[word]);
    }
  }
}

// Local rows [row_begin, row_end) of a parameter seen as a matrix.
template <class T>
void fill_normal(const Param& param, T* first_value, uint64_t key, int64_t row_begin,
                 int64_t row_end) {
  const auto std = static_cast<float>(param.spec.init.std);
  const int64_t columns = param.value.shape.elements() / param.value.shape[0];
  const int64_t logical_columns = param.spec.shape.elements() / param.spec.shape[0];
  for (int64_t row = row_begin; row < row_end; ++row) {
    T* values = first_value + row * columns;
    for (const Piece& piece : param.pieces) {
      if (piece.dim == 0) {
        const int64_t inside = row - piece.local_begin;
        if (inside < 0 || inside >= piece.extent) continue;
        const int64_t first = (piece.logical_begin + inside) * logical_columns;
        fill_run(values, static_cast<uint64_t>(first), columns, std, key);
      } else {
        const int64_t first = row * logical_columns + piece.logical_begin;
        fill_run(values + piece.local_begin, static_cast<uint64_t>(first), piece.extent, std, key);
      }
    }
  }
}

// The kinds of the flat order.
int flat_kind(const ParamSpec& spec) {
  if (spec.is_matrix()) return 0;
  if (spec.cut) return 1;
  return sums_over(spec, Axis::Tensor) ? 3 : 2;
}

}  // namespace

std::string param_kind(const std::string& name) {
  std::string kind;
  for (size_t at = 0; at < name.size();) {
    const bool segment_start = at == 0 || name[at - 1] == '.';
    size_t end = at;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    if (segment_start && end > at && (end == name.size() || name[end] == '.')) {
      kind += '*';
      at = end;
    } else {
      kind += name[at++];
    }
  }
  return kind;
}

ParamStore::ParamStore(Device& device, const ParallelLayout& layout, int rank, DType dtype)
    : device_(device), layout_(layout), grid_(layout.grid()), rank_(rank), dtype_(dtype) {}

Param& ParamStore::declare(ParamSpec spec) {
  BEV_CHECK(find(spec.name) == nullptr, Internal, "parameter {} declared twice", spec.name);
  BEV_CHECK(flat_.empty(), Internal, "parameter {} declared after allocate()", spec.name);
  params_.push_back({.spec = std::move(spec)});
  Param& param = params_.back();
  param.pieces = pieces(param.spec, grid_, rank_);
  param.bucket = bucket_;
  if (param.spec.tied_to.empty()) {
    const Shape shape = local_shape(param.spec, grid_, rank_);
    param.value = tensor_over(static_cast<std::byte*>(nullptr), dtype_, shape);
    distinct_.push_back(&param);
  }
  return param;
}

void ParamStore::place_flat() {
  std::vector<Param*> ordered = distinct_;
  // Where gradients are summed all at once, all buckets are as one.
  const auto bucket_of = [&](const Param* param) {
    return layout_.buckets_gradients() ? param->bucket : 0;
  };
  std::stable_sort(ordered.begin(), ordered.end(), [&](const Param* a, const Param* b) {
    return std::pair(bucket_of(a), flat_kind(a->spec)) <
           std::pair(bucket_of(b), flat_kind(b->spec));
  });
  int64_t begin = 0;
  for (size_t i = 0; i < ordered.size(); ++i) {
    const bool ends = i + 1 == ordered.size() ||
                      ordered[i]->spec.is_matrix() != ordered[i + 1]->spec.is_matrix() ||
                      bucket_of(ordered[i]) != bucket_of(ordered[i + 1]);
    const int64_t elements = ordered[i]->value.shape.elements();
    const int64_t end =
        round_up(begin + elements, ends ? kFlatAlignment * layout_.data : kFlatAlignment);
    flat_.push_back({ordered[i], begin, end - begin});
    begin = end;
    if (!ends) continue;
    const int64_t first = sections_.empty() ? 0 : sections_.back().end();
    sections_.push_back({{first, end - first}, bucket_of(ordered[i])});
  }
}

ParamStore::StagingLayout ParamStore::plan_staging(bool double_buffers,
                                                   FunctionRef<size_t(size_t)> bytes_of) const {
  StagingLayout passing;
  size_t at = 0;
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (i > 0 && sections_[i - 1].bucket != sections_[i].bucket) at = 0;
    passing.begins.push_back(at);
    at += bytes_of(i);
    size_t& memory = passing.bytes[staging_slot(sections_[i].bucket, double_buffers)];
    memory = std::max(memory, at);
  }
  return passing;
}

void ParamStore::place_shares() {
  int64_t shares = 0;
  for (const FlatSection& section : sections_) {
    share_begins_.push_back(shares);
    shares += shard_of(section).count;
  }
  values_ = Buffer(device_, static_cast<size_t>(shares) * size_of(dtype_), "parameters");
  passing_ = plan_staging(layout_.overlaps_param_gather, [&](size_t section) {
    return static_cast<size_t>(sections_[section].count) * size_of(dtype_);
  });
  for (size_t i = 0; i < passing_memory_.size(); ++i) {
    if (passing_.bytes[i] > 0)
      passing_memory_[i] = Buffer(device_, passing_.bytes[i], "parameter bucket");
  }
}

size_t ParamStore::section_at(int64_t begin) const {
  const auto after =
      std::upper_bound(sections_.begin(), sections_.end(), begin,
                       [](int64_t at, const FlatSection& section) { return at < section.begin; });
  BEV_CHECK(after != sections_.begin(), Internal, "no section has element {}", begin);
  return static_cast<size_t>(after - sections_.begin() - 1);
}

Tensor ParamStore::staging(const FlatSection& section) const {
  const size_t at = passing_.begins[section_at(section.begin)];
  std::byte* data =
      passing_memory_[staging_slot(section.bucket, layout_.overlaps_param_gather)].data();
  return tensor_over(data != nullptr ? data + at : nullptr, dtype_, {section.count});
}

Tensor ParamStore::value_range(int64_t begin, int64_t count) const {
  int64_t at = begin;
  if (is_sharded()) {
    const size_t section = section_at(begin);
    at = share_begins_[section] + begin - shard_of(sections_[section]).begin;
  }
  std::byte* data = values_.data();
  if (data != nullptr) data += static_cast<size_t>(at) * size_of(dtype_);
  return tensor_over(data, dtype_, {count});
}

void ParamStore::allocate() {
  BEV_CHECK(flat_.empty(), Internal, "parameters allocated twice");
  place_flat();
  if (is_sharded()) {
    place_shares();
  } else {
    values_ = Buffer(device_, static_cast<size_t>(flat_elements()) * size_of(dtype_), "parameters");
  }
  for (const FlatParam& place : flat_) {
    if (values_.data() == nullptr) break;
    const int64_t elements = place.param->value.shape.elements();
    if (is_sharded()) {
      const FlatSection& section = sections_[section_at(place.begin)];
      place.param->value.data =
          slice(staging(section), 0, place.begin - section.begin, elements).data;
    } else {
      place.param->value.data = value_range(place.begin, elements).data;
    }
  }
  for (Param& param : params_) {
    if (param.spec.tied_to.empty()) continue;
    Param* original = find(param.spec.tied_to);
    BEV_CHECK(original != nullptr, Internal, "{} is tied to {}, which nobody declared",
              param.spec.name, param.spec.tied_to);
    param.value = original->value;
  }
}

// Fills `data`, host memory of the size of the value.
void ParamStore::fill(Param& param, std::byte* data, uint64_t seed, ThreadPool& pool) const {
  const uint64_t key = mix_key(mix_key(0, seed), param.spec.name);
  const int64_t columns = param.value.shape.elements() / param.value.shape[0];
  visit_floating(dtype_, "initialize", [&]<class T>() {
    pool.split(param.value.shape[0], 1, [&](int64_t begin, int64_t end) {
      T* values = reinterpret_cast<T*>(data) + begin * columns;
      const int64_t count = (end - begin) * columns;
      switch (param.spec.init.kind) {
        case Init::Kind::Normal:
          fill_normal(param, reinterpret_cast<T*>(data), key, begin, end);
          break;
        case Init::Kind::Ones: std::fill_n(values, count, static_cast<T>(1.0f)); break;
        case Init::Kind::Zeros: std::fill_n(values, count, static_cast<T>(0.0f)); break;
      }
    });
  });
}

// This rank's share of a parameter whose values are given.
void ParamStore::put_share(const FlatParam& place, const std::byte* data) {
  const FlatRange share = shard_of(sections_[section_at(place.begin)]);
  const int64_t begin = std::max(share.begin, place.begin);
  const int64_t end = std::min(share.end(), place.begin + place.param->value.shape.elements());
  if (begin >= end) return;
  const Tensor to = value_range(begin, end - begin);
  device_.upload(data + static_cast<size_t>(begin - place.begin) * size_of(dtype_), to.data,
                 bytes_of(to));
}

void ParamStore::initialize(uint64_t seed) {
  if (values_.data() == nullptr) return;
  // Drawn on the host, so that a seed means the same weights on every device.
  const bool on_host = device_.kind() != DeviceKind::Cuda;
  std::optional<ThreadPool> own;
  if (!on_host) own.emplace(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  ThreadPool& pool = own ? *own : static_cast<HostDevice&>(device_).threads();
  std::vector<std::byte> staged;
  for (const FlatParam& place : flat_) {
    Param& param = *place.param;
    if (on_host && !is_sharded()) {
      fill(param, param.value.data, seed, pool);
      continue;
    }
    staged.resize(bytes_of(param.value));
    fill(param, staged.data(), seed, pool);
    if (is_sharded()) {
      put_share(place, staged.data());
    } else {
      device_.upload(staged.data(), param.value.data, staged.size());
    }
  }
}

void ParamStore::begin_gradients() {
  // Divided gradients pass through memory that is zero whenever a bucket begins.
  for (Param* param : distinct_)
    param->grad_started = layout_.zero >= 2 || !param->spec.is_matrix();
}

Param* ParamStore::find(const std::string& name) {
  const auto found = std::find_if(params_.begin(), params_.end(),
                                  [&](const Param& p) { return p.spec.name == name; });
  return found == params_.end() ? nullptr : &*found;
}

int64_t ParamStore::elements() const {
  int64_t total = 0;
  for (const Param* param : distinct_) total += param->value.shape.elements();
  return total;
}

int64_t ParamStore::flat_elements() const {
  return flat_.empty() ? 0 : flat_.back().begin + flat_.back().count;
}

FlatRange ParamStore::shard_of(const FlatRange& section) const {
  const int64_t count = div_exact(section.count, layout_.data);
  return {section.begin + grid_.coordinate(rank_, Axis::Data) * count, count};
}

}  // namespace bev
