#include "convert/checkpoint_weights.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"

namespace bev {

const StoredCheckpoint::Logical& CheckpointWeights::find(const ParamSpec& spec) {
  const StoredCheckpoint::Logical* found =
      prefers_masters_ ? stored_.find(spec.name + "/master") : nullptr;
  if (found == nullptr) found = stored_.find(spec.name);
  BEV_CHECK(found != nullptr, Data, "{}: there is no tensor {}", stored_.folder().string(),
            in_quotes(spec.name));
  Shape expected = spec.shape;
  if (has_row_per_token(spec.name) && found->shape.rank() == expected.rank() &&
      found->shape[0] >= vocab_)
    expected.set(0, found->shape[0]);
  BEV_CHECK(found->shape == expected, Data, "{}: {} is {}, the model has {}",
            stored_.folder().string(), in_quotes(spec.name), to_string(found->shape),
            to_string(spec.shape));
  used_.insert(spec.name);
  return *found;
}

DType CheckpointWeights::dtype_of(const ParamSpec& spec) { return find(spec).dtype; }

void CheckpointWeights::read(const ParamSpec& spec, const Rectangle& where, DType dtype,
                             std::byte* to) {
  const StoredCheckpoint::Logical& tensor = find(spec);
  const Rectangle there = intersection(where, whole_of(tensor.shape));
  if (there.rows > 0) stored_.read(tensor, there, dtype, to);
  // Rows come in order, so what is missing lies behind.
  const size_t size = size_of(dtype);
  std::fill(to + static_cast<size_t>(there.rows * where.columns) * size,
            to + static_cast<size_t>(where.elements()) * size, std::byte{0});
}

void CheckpointWeights::check_all_used() {
  for (const auto& [name, tensor] : stored_.tensors())
    BEV_CHECK(used_.contains(std::string(parameter_of(name))), Data,
              "{}: {} belongs to no parameter of the model", stored_.folder().string(),
              in_quotes(name));
}

}  // namespace bev
