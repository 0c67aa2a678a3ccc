#include "param/store.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
#include "base/philox.h"
#include "device/thread_pool.h"
#include "tensor/visit.h"

namespace bev {

namespace {

// The logical index of local element (row, column) of a parameter seen as a matrix.
class LogicalIndex {
 public:
  LogicalIndex(const ParamSpec& spec, const Grid& grid, int rank)
      : pieces_(pieces(spec, grid, rank)),
        columns_(spec.shape.rank() > 1 ? spec.shape.elements() / spec.shape[0] : 1) {}

  int64_t row(int64_t local) const { return along(0, local); }
  int64_t column(int64_t local) const { return along(1, local); }
  int64_t columns() const { return columns_; }

 private:
  int64_t along(int dim, int64_t local) const {
    if (pieces_.front().dim != dim) return local;
    for (const Piece& piece : pieces_) {
      if (local < piece.local_begin + piece.extent) {
        return local - piece.local_begin + piece.logical_begin;
      }
    }
    return local;
  }

  std::vector<Piece> pieces_;
  int64_t columns_;
};

// Element i is word i % 4 of block i / 4, whatever part of the parameter this rank holds.
template <class T>
void fill_normal(const Param& param, const LogicalIndex& logical, uint64_t key, int64_t row_begin,
                 int64_t row_end) {
  const int64_t columns = param.value.shape.elements() / param.value.shape[0];
  const auto std = static_cast<float>(param.spec.init.std);
  auto* values = reinterpret_cast<T*>(param.value.data);
  uint64_t block = ~uint64_t{0};
  std::array<float, 4> normals{};
  for (int64_t r = row_begin; r < row_end; ++r) {
    const int64_t first = logical.row(r) * logical.columns();
    for (int64_t c = 0; c < columns; ++c) {
      const auto index = static_cast<uint64_t>(first + logical.column(c));
      if (index / 4 != block) {
        block = index / 4;
        normals = normals_of(philox(key, 0, block));
      }
      values[r * columns + c] = static_cast<T>(std * normals[index % 4]);
    }
  }
}

}  // namespace

std::string kind_of(const std::string& name) {
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
    : device_(device), grid_(layout.grid()), rank_(rank), dtype_(dtype) {}

Param& ParamStore::declare(ParamSpec spec) {
  BEV_CHECK(find(spec.name) == nullptr, Internal, "parameter {} declared twice", spec.name);
  BEV_CHECK(values_.bytes() == 0, Internal, "parameter {} declared after allocate()", spec.name);
  params_.push_back({.spec = std::move(spec)});
  Param& param = params_.back();
  for (const Piece& piece : pieces(param.spec, grid_, rank_)) {
    param.part_extents.push_back(piece.extent);
  }
  if (param.spec.tied_to.empty()) {
    const Shape shape = local_shape(param.spec, grid_, rank_);
    param.value = tensor_over(static_cast<std::byte*>(nullptr), dtype_, shape);
    distinct_.push_back(&param);
    offsets_.push_back(flat_elements_);
    flat_elements_ += round_up(shape.elements(), kFlatAlignment);
  }
  return param;
}

void ParamStore::allocate() {
  values_ = Buffer(device_, static_cast<size_t>(flat_elements_) * size_of(dtype_), "parameters");
  for (size_t i = 0; i < distinct_.size(); ++i) {
    if (values_.data() == nullptr) break;
    distinct_[i]->value.data = values_.data() + static_cast<size_t>(offsets_[i]) * size_of(dtype_);
  }
  for (Param& param : params_) {
    if (param.spec.tied_to.empty()) continue;
    Param* original = find(param.spec.tied_to);
    BEV_CHECK(original != nullptr, Internal, "{} is tied to {}, which nobody declared",
              param.spec.name, param.spec.tied_to);
    param.value = original->value;
  }
}

void ParamStore::initialize(uint64_t seed) {
  if (values_.data() == nullptr) return;
  ThreadPool& pool = static_cast<HostDevice&>(device_).threads();
  for (Param* param : distinct_) {
    const uint64_t key = mix_key(mix_key(0, seed), param->spec.name);
    const LogicalIndex logical(param->spec, grid_, rank_);
    const int64_t columns = param->value.shape.elements() / param->value.shape[0];
    visit_floating(dtype_, "initialize", [&]<class T>() {
      pool.split(param->value.shape[0], 1, [&](int64_t begin, int64_t end) {
        T* values = reinterpret_cast<T*>(param->value.data) + begin * columns;
        const int64_t count = (end - begin) * columns;
        switch (param->spec.init.kind) {
          case Init::Kind::Normal: fill_normal<T>(*param, logical, key, begin, end); break;
          case Init::Kind::Ones: std::fill_n(values, count, static_cast<T>(1.0f)); break;
          case Init::Kind::Zeros: std::fill_n(values, count, static_cast<T>(0.0f)); break;
        }
      });
    });
  }
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

int64_t ParamStore::flat_offset(const Param& param) const {
  const auto found = std::find(distinct_.begin(), distinct_.end(), &param);
  BEV_CHECK(found != distinct_.end(), Internal, "{} has no place of its own", param.spec.name);
  return offsets_[static_cast<size_t>(found - distinct_.begin())];
}

}  // namespace bev
