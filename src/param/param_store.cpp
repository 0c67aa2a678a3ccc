#include "param/param_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>

#include "base/check.h"
#include "base/philox.h"
#include "device/thread_pool.h"
#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// Elements [begin, begin + count) of a parameter in logical order. Element i is word i % 4 of block
// i / 4, independent of the layout.
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
      const int64_t inside = row - piece.local_row;
      if (inside < 0 || inside >= piece.logical.rows) continue;
      const int64_t first = (piece.logical.row + inside) * logical_columns + piece.logical.column;
      fill_run(values + piece.local_column, static_cast<uint64_t>(first), piece.logical.columns,
               std, key);
    }
  }
}

uint64_t key_of(const ParamSpec& spec, uint64_t seed) {
  return mix_key(mix_key(0, seed), spec.name);
}

// The order of kinds within a section.
int flat_kind(const ParamSpec& spec) {
  if (spec.is_matrix() || spec.place.cut) return 0;
  return spec.place.sums_over_tensor() ? 2 : 1;
}

}  // namespace

void initial_values(const ParamSpec& spec, uint64_t seed, const Rectangle& where, DType dtype,
                    std::byte* to) {
  const int64_t columns = whole_of(spec.shape).columns;
  visit_floating(dtype, "initialize", [&]<class T>() {
    T* values = reinterpret_cast<T*>(to);
    if (spec.init.kind != Init::Kind::Normal) {
      std::fill_n(values, where.elements(),
                  static_cast<T>(spec.init.kind == Init::Kind::Ones ? 1.0f : 0.0f));
      return;
    }
    for (int64_t row = 0; row < where.rows; ++row)
      fill_run(values + row * where.columns,
               static_cast<uint64_t>((where.row + row) * columns + where.column), where.columns,
               static_cast<float>(spec.init.std), key_of(spec, seed));
  });
}

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

ParamStore::ParamStore(Device& device, const ParallelLayout& layout, int rank, DType dtype,
                       ShardRuleOf rule)
    : device_(device), layout_(layout), rank_(rank), dtype_(dtype), rule_(rule) {}

Param& ParamStore::declare(ParamSpec spec) {
  BEV_CHECK(find(spec.name) == nullptr, Internal, "parameter {} declared twice", spec.name);
  BEV_CHECK(flat_.empty(), Internal, "parameter {} declared after allocate()", spec.name);
  if (const auto found = holders_.find(spec.name); found != holders_.end())
    spec.place.stages = found->second;
  params_.push_back({.spec = std::move(spec)});
  Param& param = params_.back();
  param.pieces = local_pieces(param.spec, layout_, rank_);
  param.bucket = bucket_;
  param.value = tensor_over(static_cast<std::byte*>(nullptr), dtype_,
                            local_shape(param.spec, layout_, rank_));
  all_.push_back(&param);
  return param;
}

Param& ParamStore::declare_in_own_bucket(ParamSpec spec) {
  if (Param* here = find(spec.name)) return *here;
  begin_bucket();
  return declare(std::move(spec));
}

size_t ParamStore::shard_index(GridKind grid) const {
  const std::vector<int> peers = layout_.grid(grid).peers(rank_, shard_group(grid).axes);
  return static_cast<size_t>(std::find(peers.begin(), peers.end(), rank_) - peers.begin());
}

ShardRule ParamStore::rule_of(const Param& param) const {
  if (rule_ == nullptr || param.spec.place.is_shared()) return ShardRule::Equal;
  return rule_(param.spec.role);
}

// The shards of parameters that are not divided: the largest first, each to the shard with the
// fewest elements of its group so far.
std::map<const Param*, size_t> ParamStore::whole_param_owners() const {
  std::vector<const Param*> largest_first;
  for (const Param* param : all_)
    if (rule_of(*param) == ShardRule::WholeParams) largest_first.push_back(param);
  const auto elements = [](const Param* param) { return param->value.shape.elements(); };
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](const Param* a, const Param* b) { return elements(a) > elements(b); });
  std::map<GridKind, std::vector<int64_t>> loads;
  std::map<const Param*, size_t> owners;
  for (const Param* param : largest_first) {
    const GridKind grid = param->spec.place.grid;
    std::vector<int64_t>& load = loads[grid];
    load.resize(static_cast<size_t>(layout_.shards(grid)));
    const auto least = std::min_element(load.begin(), load.end());
    *least += elements(param);
    owners[param] = static_cast<size_t>(least - load.begin());
  }
  return owners;
}

// `places`: of all its parameters, in the flat order.
void ParamStore::add_section(std::span<const FlatParam> places,
                             const std::map<const Param*, size_t>& owners) {
  const Param& last = *places.back().param;
  const GridKind grid = last.spec.place.grid;
  FlatSection section{
      {places.front().begin, 0}, layout_.buckets_gradients() ? last.bucket : 0, shard_group(grid)};
  section.count = places.back().begin + places.back().count - section.begin;
  section.index = shard_index(grid);
  const int shards = layout_.shards(grid);
  if (rule_of(last) == ShardRule::Equal) {
    const int64_t count = div_exact(section.count, shards);
    for (int r = 0; r <= shards; ++r) section.bounds.push_back(r * count);
  } else {
    section.bounds.resize(static_cast<size_t>(shards) + 1);
    for (const FlatParam& place : places) section.bounds[owners.at(place.param) + 1] += place.count;
    std::partial_sum(section.bounds.begin(), section.bounds.end(), section.bounds.begin());
  }
  sections_.push_back(std::move(section));
}

void ParamStore::place_flat() {
  std::vector<Param*> ordered = all_;
  // Without separate sums per bucket, all buckets count as one.
  const auto bucket_of = [&](const Param* param) {
    return layout_.buckets_gradients() ? param->bucket : 0;
  };
  const auto section_key = [&](const Param* param) {
    return std::tuple(bucket_of(param), param->spec.place.grid, rule_of(*param),
                      !param->spec.is_matrix());
  };
  const std::map<const Param*, size_t> owners = whole_param_owners();
  const auto key_in_section = [&](const Param* param) {
    const auto owner = owners.find(param);
    return std::pair(owner == owners.end() ? 0 : owner->second, flat_kind(param->spec));
  };
  std::stable_sort(ordered.begin(), ordered.end(), [&](const Param* a, const Param* b) {
    return std::pair(section_key(a), key_in_section(a)) <
           std::pair(section_key(b), key_in_section(b));
  });
  int64_t begin = 0;
  size_t first = 0;  // of the section
  for (size_t i = 0; i < ordered.size(); ++i) {
    const bool ends =
        i + 1 == ordered.size() || section_key(ordered[i]) != section_key(ordered[i + 1]);
    const int64_t elements = ordered[i]->value.shape.elements();
    const int64_t shards = layout_.shards(ordered[i]->spec.place.grid);
    const bool fills_shards = ends && rule_of(*ordered[i]) == ShardRule::Equal;
    // Sections before this one may have another number of shards.
    const int64_t section = first < i ? flat_[first].begin : begin;
    const int64_t end = section + round_up(begin - section + elements,
                                           kFlatAlignment * (fills_shards ? shards : 1));
    flat_.push_back({ordered[i], begin, end - begin});
    begin = end;
    if (!ends) continue;
    add_section(std::span(flat_).subspan(first), owners);
    first = i + 1;
  }
  // The holders of a shared parameter sum their shards of it: their bounds must be equal.
  for (const Param* param : all_) {
    if (!param->spec.place.is_shared()) continue;
    const auto users = std::count_if(all_.begin(), all_.end(),
                                     [&](const Param* p) { return p->bucket == param->bucket; });
    BEV_CHECK(users == 1, Internal, "{} is on several stages and not alone in its bucket",
              param->spec.name);
  }
}

ParamStore::StagingLayout ParamStore::plan_staging(bool double_buffers,
                                                   FunctionRef<size_t(size_t)> bytes_of) const {
  StagingLayout staging;
  size_t at = 0;
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (i > 0 && sections_[i - 1].bucket != sections_[i].bucket) at = 0;
    staging.begins.push_back(at);
    at += bytes_of(i);
    size_t& memory = staging.bytes[staging_slot(sections_[i].bucket, double_buffers)];
    memory = std::max(memory, at);
  }
  return staging;
}

void ParamStore::place_shards() {
  int64_t shards = 0;
  for (const FlatSection& section : sections_) {
    shard_begins_.push_back(shards);
    shards += section.shard().count;
  }
  values_ = Buffer(device_, static_cast<size_t>(shards) * size_of(dtype_), "parameters");
  staging_ = plan_staging(layout_.overlaps_param_gather, [&](size_t section) {
    return static_cast<size_t>(sections_[section].count) * size_of(dtype_);
  });
  for (size_t i = 0; i < staging_memory_.size(); ++i) {
    if (staging_.bytes[i] > 0)
      staging_memory_[i] = Buffer(device_, staging_.bytes[i], "parameter bucket");
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
  const size_t at = staging_.begins[section_at(section.begin)];
  std::byte* data =
      staging_memory_[staging_slot(section.bucket, layout_.overlaps_param_gather)].data();
  return tensor_over(data != nullptr ? data + at : nullptr, dtype_, {section.count});
}

Tensor ParamStore::value_range(int64_t begin, int64_t count) const {
  if (count == 0) return tensor_over(values_.data(), dtype_, {0});  // an empty shard
  int64_t at = begin;
  if (is_sharded()) {
    const size_t section = section_at(begin);
    at = shard_begins_[section] + begin - sections_[section].shard().begin;
  }
  std::byte* data = values_.data();
  if (data != nullptr) data += static_cast<size_t>(at) * size_of(dtype_);
  return tensor_over(data, dtype_, {count});
}

void ParamStore::allocate() {
  BEV_CHECK(flat_.empty(), Internal, "parameters allocated twice");
  place_flat();
  if (is_sharded()) {
    place_shards();
  } else {
    values_ = Buffer(device_, static_cast<size_t>(flat_elements()) * size_of(dtype_), "parameters");
  }
  for (const FlatParam& place : flat_) {
    const int64_t elements = place.param->value.shape.elements();
    if (is_sharded()) {
      const FlatSection& section = sections_[section_at(place.begin)];
      place.param->value.data =
          slice(staging(section), 0, place.begin - section.begin, elements).data;
    } else {
      place.param->value.data = value_range(place.begin, elements).data;
    }
  }
}

// Fills `data`, host memory of the size of the value.
void ParamStore::fill(Param& param, std::byte* data, uint64_t seed, ThreadPool& pool) const {
  const uint64_t key = key_of(param.spec, seed);
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

// Uploads this rank's shard of a parameter whose values are in host memory.
void ParamStore::put_shard(const FlatParam& place, const std::byte* data) {
  const FlatRange mine = intersection(section_of(place.begin).shard(),
                                      {place.begin, place.param->value.shape.elements()});
  if (mine.count == 0) return;
  const Tensor to = value_range(mine.begin, mine.count);
  device_.upload(data + static_cast<size_t>(mine.begin - place.begin) * size_of(dtype_), to.data,
                 bytes_of(to));
}

void ParamStore::initialize(uint64_t seed) {
  if (values_.data() == nullptr) return;
  // The host draws them, so that a seed gives the same weights on every device.
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
      put_shard(place, staged.data());
    } else {
      device_.upload(staged.data(), param.value.data, staged.size());
    }
  }
}

void ParamStore::begin_gradients() {
  // Sharded gradients pass through staging memory that is zero whenever a bucket begins.
  for (Param* param : all_) param->grad_started = layout_.zero >= 2 || !param->spec.is_matrix();
}

Param* ParamStore::find(std::string_view name) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Param* p) { return p->spec.name == name; });
  return found == all_.end() ? nullptr : *found;
}

FlatRange rows_of(const FlatParam& place, const Piece& piece) {
  const int64_t columns = whole_of(place.param->value.shape).columns;
  return {place.begin + piece.local_row * columns, piece.logical.rows * columns};
}

std::vector<FlatRange> owned_ranges(const ParamStore& params, const FlatParam& place) {
  const std::vector<Piece> owned = owned_pieces(place.param->spec, params.layout(), params.rank());
  if (owned.size() == place.param->pieces.size()) return {{place.begin, place.count}};
  std::vector<FlatRange> ranges;
  for (const Piece& piece : owned) ranges.push_back(rows_of(place, piece));
  return ranges;
}

std::vector<const FlatParam*> shared_params(const ParamStore& params) {
  std::vector<const FlatParam*> shared;
  for (const FlatParam& place : params.flat())
    if (place.param->spec.place.is_shared()) shared.push_back(&place);
  std::sort(shared.begin(), shared.end(), [](const FlatParam* a, const FlatParam* b) {
    return a->param->spec.name < b->param->spec.name;
  });
  return shared;
}

int64_t ParamStore::elements() const {
  int64_t total = 0;
  for (const Param* param : all_) total += param->value.shape.elements();
  return total;
}

int64_t ParamStore::flat_elements() const {
  return flat_.empty() ? 0 : flat_.back().begin + flat_.back().count;
}

}  // namespace bev
