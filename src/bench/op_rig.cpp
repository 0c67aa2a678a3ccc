#include "bench/op_rig.h"

#include <algorithm>
#include <vector>

#include "base/integer.h"
#include "base/philox.h"
#include "ops/make_device.h"
#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// Enough that nothing repeats within the tiles of a kernel; no multiple of a row.
constexpr int64_t kDrawn = (int64_t{1} << 20) + 4;

// `count`: a multiple of 4.
template <class T>
std::vector<T> normals(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); i += 4) {
    const std::array<float, 4> four = normals_of(philox(1, 0, i));
    for (size_t j = 0; j < 4; ++j) values[i + j] = static_cast<T>(four[j]);
  }
  return values;
}

}  // namespace

Rig::Rig(Device& device, const RigSizes& sizes)
    : slab_(device, sizes.operands, "benchmark"),
      scratch_(device, sizes.scratch, "benchmark scratch"),
      none_(device, 0, "none"),
      exec_{device, device.compute_stream(), slab_, scratch_, none_, nullptr} {}

Tensor Rig::make_varied(Shape shape, DType dtype) {
  const Tensor tensor = make(shape, dtype);
  if (tensor.data == nullptr) return tensor;
  visit_floating(dtype, "benchmark", [&]<class T>() {
    const int64_t elements = shape.elements();
    const std::vector<T> values = normals<T>(std::min(kDrawn, round_up(elements, 4)));
    for (int64_t begin = 0; begin < elements; begin += kDrawn) {
      const auto count = static_cast<size_t>(std::min(kDrawn, elements - begin));
      exec_.device.upload(values.data(), tensor.data + static_cast<size_t>(begin) * sizeof(T),
                          count * sizeof(T));
    }
  });
  return tensor;
}

RigSizes rig_sizes(const Device& device, const std::function<void(Rig&)>& work) {
  DeviceConfig config;
  config.kind = device.kind();
  config.threads = 1;
  config.deterministic = device.policy().deterministic;
  config.tf32 = device.policy().tf32;
  const std::unique_ptr<Device> imitation = make_null_device(config);
  Rig rig(*imitation, {});
  work(rig);
  return rig.peaks();
}

}  // namespace bev
