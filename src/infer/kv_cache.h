// The keys and values of all layers that a rank holds, in memory that is allocated once.
#pragma once

#include "device/buffer.h"
#include "device/exec.h"
#include "ops/decode_attention.h"

namespace bev {

// Of each layer.
struct KvShape {
  int64_t pages = 0, page = 0;  // page: tokens of one
  int64_t kv_heads = 0, head_dim = 0;
  DType dtype{};

  Shape layer() const { return {pages * page, kv_heads, head_dim}; }
  size_t layer_bytes() const { return static_cast<size_t>(layer().elements()) * size_of(dtype); }
};

class KvCache {
 public:
  KvCache(Device& device, int64_t layers, const KvShape& shape);

  const KvShape& shape() const { return shape_; }
  size_t bytes() const { return buffer_.bytes(); }
  Tensor keys(int64_t layer) const { return part(2 * layer); }
  Tensor values(int64_t layer) const { return part(2 * layer + 1); }

  // All layers.
  void copy_page(Exec& ex, int64_t from, int64_t to) const;

 private:
  Tensor part(int64_t index) const;

  int64_t layers_;
  KvShape shape_;
  Buffer buffer_;
};

}  // namespace bev
