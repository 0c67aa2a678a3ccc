#include "infer/kv_cache.h"

#include "base/check.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

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

void KvCacheAttention::forward(Exec& ex, int64_t layer, const ops::AttentionInput& in, Tensor out,
                               Tensor lse) {
  const int64_t place = layer - first_layer_;
  if (!is_prompt_) {
    ops::decode_attention(ex, {.q = in.q,
                               .k = in.k,
                               .v = in.v,
                               .lengths = lengths_,
                               .pages = pages_,
                               .page = cache_.shape().page,
                               .scale = in.scale,
                               .window = in.mask.window,
                               .keys = cache_.keys(place),
                               .values = cache_.values(place),
                               .out = out,
                               .bias = in.bias,
                               .cache_is_constant = true});  // uploads part the steps
    return;
  }
  if (places_.present())
    ops::kv_cache_write(ex, {.k = in.k,
                             .v = in.v,
                             .places = places_,
                             .keys = cache_.keys(place),
                             .values = cache_.values(place)});
  local_.forward(ex, layer, in, out, lse);
}

void KvCacheAttention::backward(Exec&, const ops::AttentionInput&, ConstTensor, ConstTensor,
                                ConstTensor, const Gradients&) {
  throw Error(ErrorKind::Internal, "attention with a cache has no backward");
}

void CachedCrossAttention::write(Exec& ex, int64_t layer, ConstTensor k, ConstTensor v) const {
  ops::kv_cache_write(ex, {.k = k,
                           .v = v,
                           .places = places_,
                           .keys = cache_.keys(layer - first_layer_),
                           .values = cache_.values(layer - first_layer_)});
}

void CachedCrossAttention::attend(Exec& ex, int64_t layer, ConstTensor q, double scale,
                                  Tensor out) const {
  ArenaScope scope(ex.scratch);
  const KvShape& shape = cache_.shape();
  const int64_t row = shape.kv_heads * shape.head_dim;
  // DecodeAttention writes a newest token; here it is the last of the encoder's text.
  const auto last_of = [&](const Tensor& cached) {
    const Tensor rows = ex.scratch.allocate({q.rows(), row}, q.dtype, "cross.last");
    ops::embedding(ex, {.table = reshape(cached, {cached.rows(), row}), .ids = last_, .out = rows});
    return split_last(rows, shape.head_dim);
  };
  const int64_t place = layer - first_layer_;
  const Tensor keys = cache_.keys(place), values = cache_.values(place);
  ops::decode_attention(ex, {.q = q,
                             .k = last_of(keys),
                             .v = last_of(values),
                             .lengths = lengths_,
                             .pages = pages_,
                             .page = shape.page,
                             .scale = scale,
                             .keys = keys,
                             .values = values,
                             .out = out,
                             .cache_is_constant = true});  // uploads part the steps
}

}  // namespace bev
