#include "support/same_checkpoint.h"

#include <algorithm>

namespace bev::test {

bool same_bits(const CheckpointReader& a, const CheckpointReader& b) {
  if (a.tensors().size() != b.tensors().size()) return false;
  const auto bytes_of = [](const CheckpointReader& stored, const CheckpointReader::Tensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    stored.read(tensor, whole_of(tensor.shape), tensor.dtype, bytes.data());
    return bytes;
  };
  return std::all_of(a.tensors().begin(), a.tensors().end(), [&](const auto& entry) {
    const CheckpointReader::Tensor* other = b.find(entry.first);
    return other != nullptr && other->shape == entry.second.shape &&
           other->dtype == entry.second.dtype && bytes_of(a, entry.second) == bytes_of(b, *other);
  });
}

bool same_position(const Manifest& a, const Manifest& b) {
  return a.iteration == b.iteration && a.consumed_samples == b.consumed_samples &&
         a.scheduled_samples == b.scheduled_samples && a.data_position == b.data_position &&
         a.update == b.update && a.seed == b.seed && a.loss == b.loss;
}

}  // namespace bev::test
