// Paged KV cache of the layers that a rank holds, and attention that uses it.
#pragma once

#include "device/exec.h"
#include "device/memory.h"
#include "ops/attention.h"
#include "parallel/attention_core.h"

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

// Attention that remembers: what a prompt's tokens see is among themselves, and is kept for the
// tokens that follow one by one. An encoder's text is a prompt of which nothing is kept.

class KvCacheAttention final : public AttentionCore {
 public:
  // `first_layer`: of the model, the first one that the cache is for. The cache must outlive this.
  KvCacheAttention(KvCache& cache, int64_t first_layer)
      : cache_(cache), first_layer_(first_layer) {}

  // From now on whole prompts pass. places i32 [tokens], as KvCacheWrite has them; absent: nothing
  // is kept.
  void begin_prefill(ConstTensor places) {
    is_prompt_ = true;
    places_ = places;
  }
  // From now on one token of each sequence passes; as DecodeAttention has them.
  void begin_decode(ConstTensor lengths, ConstTensor pages) {
    is_prompt_ = false;
    lengths_ = lengths;
    pages_ = pages;
  }

  void forward(Exec& ex, int64_t layer, const ops::AttentionInput& in, Tensor out,
               Tensor lse) override;
  void backward(Exec& ex, const ops::AttentionInput& in, ConstTensor dout, ConstTensor out,
                ConstTensor lse, const Gradients& gradients) override;

 private:
  KvCache& cache_;
  int64_t first_layer_;
  bool is_prompt_ = true;
  ConstTensor places_{}, lengths_{}, pages_{};
  LocalAttention local_;
};

// Cross attention of a decoder. The keys and values of the encoder's output have separate pages of
// the same cache.

class CachedCrossAttention {
 public:
  // `first_layer`: of the model, the first one that the cache is for. The cache must outlive this.
  CachedCrossAttention(KvCache& cache, int64_t first_layer)
      : cache_(cache), first_layer_(first_layer) {}

  // From now on encoder outputs pass. places i32 [tokens], as KvCacheWrite has them.
  void begin_encode(ConstTensor places) { places_ = places; }
  void write(Exec& ex, int64_t layer, ConstTensor k, ConstTensor v) const;

  // From now on one token of each sequence passes; lengths and pages of the sources, as
  // DecodeAttention has them. last i32 [sequences]: the place of each source's last token; -1: no
  // source.
  void begin_decode(ConstTensor lengths, ConstTensor pages, ConstTensor last) {
    lengths_ = lengths;
    pages_ = pages;
    last_ = last;
  }
  // q, out [sequences, heads, head_dim]. REQUIRES: no two sequences share the page of a last token,
  // because its keys and values are written again.
  void attend(Exec& ex, int64_t layer, ConstTensor q, double scale, Tensor out) const;

 private:
  KvCache& cache_;
  int64_t first_layer_;
  ConstTensor places_{}, lengths_{}, pages_{}, last_{};
};

}  // namespace bev
