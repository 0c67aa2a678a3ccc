#include "infer/kv_cache_attention.h"

#include "base/check.h"

namespace bev {

void CachedAttention::forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) {
  const int64_t layer = in.layer - first_layer_;
  const Tensor keys = cache_.keys(layer), values = cache_.values(layer);
  if (!is_prompt_) {
    ops::decode_attention(ex, {.q = in.q,
                               .k = in.k,
                               .v = in.v,
                               .lengths = lengths_,
                               .pages = pages_,
                               .page = cache_.shape().page,
                               .scale = in.scale,
                               .window = in.mask.window,
                               .keys = keys,
                               .values = values,
                               .out = out,
                               .cache_is_settled = true});  // uploads part the steps
    return;
  }
  if (places_.present())
    ops::cache_write(ex, {.k = in.k, .v = in.v, .places = places_, .keys = keys, .values = values});
  local_.forward(ex, in, out, lse);
}

void CachedAttention::backward(Exec&, const AttentionInput&, ConstTensor, ConstTensor, ConstTensor,
                               const Gradients&) {
  throw Error(ErrorKind::Internal, "attention with a cache has no backward");
}

}  // namespace bev
