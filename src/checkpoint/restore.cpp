#include "checkpoint/restore.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "checkpoint/local_pieces.h"

namespace bev {

namespace {

constexpr std::string_view kMaster = "/master";
// Host memory through which a piece comes.
constexpr size_t kRestoreBytes = size_t{64} << 20;

class Restorer {
 public:
  Restorer(const CheckpointReader& stored, Device& device, int64_t vocab)
      : stored_(stored), device_(device), vocab_(vocab) {}

  // Fills a piece from the tensor `name`.
  void fill(const LocalPiece& held, const std::string& name) {
    const CheckpointReader::Tensor* tensor = stored_.find(name);
    BEV_CHECK(tensor != nullptr, Data, "{}: there is no tensor {}", stored_.folder().string(),
              in_quotes(name));
    check_shape(held, name, tensor->shape);
    if (held.data == nullptr) return;  // planning
    const Rectangle& where = held.piece.where;
    const size_t row_bytes = static_cast<size_t>(where.columns) * size_of(held.piece.dtype);
    const auto step = static_cast<int64_t>(std::max<size_t>(1, kRestoreBytes / row_bytes));
    for (int64_t row = 0; row < where.rows; row += step) {
      const int64_t rows = std::min(step, where.rows - row);
      buffer_.assign(static_cast<size_t>(rows) * row_bytes, std::byte{});
      const Rectangle wanted{where.row + row, where.column, rows, where.columns};
      const Rectangle there = intersection(wanted, whole_of(tensor->shape));
      if (there.elements() > 0) stored_.read(*tensor, there, held.piece.dtype, buffer_.data());
      device_.upload(buffer_.data(), held.data + static_cast<size_t>(row) * row_bytes,
                     buffer_.size());
    }
  }

  // Where the values of a parameter come from.
  std::string source_of_weights(const std::string& parameter, DType wanted) const {
    const CheckpointReader::Tensor* weights = stored_.find(parameter);
    const bool has_master = stored_.find(parameter + std::string(kMaster)) != nullptr;
    return has_master && weights != nullptr && weights->dtype != wanted
               ? parameter + std::string(kMaster)
               : parameter;
  }
  std::string source_of_master(const std::string& parameter) const {
    const std::string master = parameter + std::string(kMaster);
    return stored_.find(master) != nullptr ? master : parameter;
  }

 private:
  void check_shape(const LocalPiece& held, const std::string& name, const Shape& there) const {
    const Shape& here = held.piece.shape;
    const Rectangle a = whole_of(there), b = whole_of(here);
    const bool is_padded = is_vocab_table(held.param->spec.role) && there.rank() == here.rank() &&
                           a.columns == b.columns && a.rows >= vocab_ && b.rows >= vocab_;
    BEV_CHECK(there == here || is_padded, Data, "{}: {} is {}, the model has {}",
              stored_.folder().string(), in_quotes(name), to_string(there), to_string(here));
  }

  const CheckpointReader& stored_;
  Device& device_;
  int64_t vocab_;
  std::vector<std::byte> buffer_;
};

using StoredName = FunctionRef<std::string(const std::string&)>;

constexpr auto kSameName = [](const std::string& parameter) { return parameter; };

void fill_weights(Restorer& restorer, const ParamStore& params, StoredName stored_name) {
  for (const LocalPiece& held : local_weights(params)) {
    const std::string name = stored_name(held.piece.tensor);
    if (!name.empty()) restorer.fill(held, restorer.source_of_weights(name, held.piece.dtype));
  }
}

}  // namespace

void restore_weights(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                     int64_t vocab) {
  restore_weights(stored, params, optimizer, vocab, kSameName);
}

void restore_weights(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                     int64_t vocab, StoredName stored_name) {
  Restorer restorer(stored, params.device(), vocab);
  fill_weights(restorer, params, stored_name);
  for (const LocalPiece& held : held_states(params, optimizer)) {
    if (!held.piece.tensor.ends_with(kMaster)) continue;
    const std::string name = stored_name(std::string(parameter_of(held.piece.tensor)));
    if (!name.empty()) restorer.fill(held, restorer.source_of_master(name));
  }
}

void restore_state(const CheckpointReader& stored, ParamStore& params, const Optimizer& optimizer,
                   int64_t vocab) {
  Restorer restorer(stored, params.device(), vocab);
  fill_weights(restorer, params, kSameName);
  for (const LocalPiece& held : held_states(params, optimizer)) {
    const std::string& name = held.piece.tensor;
    const bool is_master = name.ends_with(kMaster);
    restorer.fill(held,
                  is_master ? restorer.source_of_master(std::string(parameter_of(name))) : name);
  }
}

}  // namespace bev
