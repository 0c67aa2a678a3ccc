#include "infer/kv_cache.h"

#include "ops/elementwise.h"

namespace bev {

KvCache::KvCache(Device& device, int64_t layers, const KvShape& shape)
    : layers_(layers),
      shape_(shape),
      buffer_(device, 2 * static_cast<size_t>(layers) * shape.layer_bytes(), "keys and values") {}

Tensor KvCache::part(int64_t index) const {
  std::byte* data = buffer_.data();
  if (data != nullptr) data += static_cast<size_t>(index) * shape_.layer_bytes();
  return tensor_over(data, shape_.dtype, shape_.layer());
}

void KvCache::copy_page(Exec& ex, int64_t from, int64_t to) const {
  for (int64_t i = 0; i < 2 * layers_; ++i) {
    const Tensor all = part(i);
    ops::copy(ex, {.in = slice(all, 0, from * shape_.page, shape_.page),
                   .out = slice(all, 0, to * shape_.page, shape_.page)});
  }
}

}  // namespace bev
