#include "bench/case_operands.h"

#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "model/lm_head.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

template <class T>
Tensor uploaded(Rig& rig, const std::vector<T>& host) {
  const Tensor tensor = rig.make({static_cast<int64_t>(host.size())}, DTypeOf<T>::value);
  rig.exec().device.upload(host.data(), tensor.data, bytes_of(tensor));
  return tensor;
}

}  // namespace

CaseOperands::CaseOperands(Rig& rig, const Config& from)
    : config(from),
      model(resolve_model(from)),
      batch(resolve_batch(from)),
      dtype(resolve_dtype(from)),
      sums(accumulation_of(dtype)),
      tokens(batch.tokens_per_micro()),
      loss_rows(std::min(tokens, head_chunk(from))),
      inner(is_gated(from.model.activation) ? 2 * model.ffn : model.ffn),
      rig_(rig) {}

Tensor CaseOperands::filled(Shape shape, DType of, double content) const {
  const Tensor tensor = rig_.make(shape, of);
  ops::fill(rig_.exec(), {.out = tensor, .value = content});
  return tensor;
}

Tensor CaseOperands::state(Shape shape, StatePrecision precision) const {
  return filled(shape, precision == StatePrecision::Bf16 ? DType::bf16 : sums, 0.5);
}

Tensor CaseOperands::numbers(const std::vector<double>& given) const {
  return uploaded(rig_, given);
}

Tensor CaseOperands::ids(int64_t count, int64_t below) const {
  std::vector<int32_t> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<int32_t>(philox(2, 0, i)[0] % static_cast<uint64_t>(below));
  return uploaded(rig_, drawn);
}

Tensor CaseOperands::positions() const {
  std::vector<int32_t> places(static_cast<size_t>(tokens));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<int32_t>(i % static_cast<size_t>(batch.sequence));
  return uploaded(rig_, places);
}

ops::Dropout CaseOperands::dropout(double probability) const {
  if (probability == 0) return {};
  std::vector<int64_t> rows(static_cast<size_t>(tokens));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return {.probability = probability, .key = 3, .rows = uploaded(rig_, rows)};
}

}  // namespace bev
