#include <algorithm>

#include "ops/attention.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

template <class T>
T* cache_entry(const Tensor& t, int64_t first, int64_t second) {
  return reinterpret_cast<T*>(t.data) + first * t.stride[0] + second * t.stride[1];
}
template <class T>
const T* cache_entry(const ConstTensor& t, int64_t first, int64_t second) {
  return reinterpret_cast<const T*>(t.data) + first * t.stride[0] + second * t.stride[1];
}

// The sequences of one call. A kv head of a sequence is a task of its own: it writes the places no
// other task reads or writes.
template <class T>
class Decoding {
 public:
  explicit Decoding(const ops::DecodeAttention& a)
      : a_(a), kv_heads_(a.k.shape[1]), head_dim_(a.q.shape[2]) {
    BEV_CHECK(head_dim_ <= kMaxHeadDim, Usage,
              "decode_attention: the cpu device has head_dim up to {}, not {}", kMaxHeadDim,
              head_dim_);
  }

  int64_t tasks() const { return a_.q.rows() * kv_heads_; }

  // Elements read from the cache.
  int64_t elements() const {
    int64_t places = 0;
    for (int64_t i = 0; i < a_.q.rows(); ++i) places += length(i) - first(i);
    return 2 * places * kv_heads_ * head_dim_;
  }

  void compute(int64_t task, TileMemory memory) const {
    const int64_t sequence = task / kv_heads_, kv_head = task % kv_heads_;
    const auto* pages =
        reinterpret_cast<const int32_t*>(a_.pages.data) + sequence * a_.pages.shape[1];
    if (length(sequence) > 0) {
      const int64_t t = length(sequence) - 1;
      const int64_t place = pages[t / a_.page] * a_.page + t % a_.page;
      std::copy_n(cache_entry<T>(a_.k, sequence, kv_head), head_dim_,
                  cache_entry<T>(a_.keys, place, kv_head));
      std::copy_n(cache_entry<T>(a_.v, sequence, kv_head), head_dim_,
                  cache_entry<T>(a_.values, place, kv_head));
    }
    const int64_t group = a_.q.shape[1] / kv_heads_, last_head = (kv_head + 1) * group;
    for (int64_t head = kv_head * group; head < last_head; head += kDecodeHeads) {
      kernels_of<T>().decode_attention({.heads = std::min(kDecodeHeads, last_head - head),
                                        .head_dim = head_dim_,
                                        .scale = static_cast<float>(a_.scale),
                                        .q = cache_entry<T>(a_.q, sequence, head),
                                        .q_head_stride = a_.q.stride[1],
                                        .keys = cache_entry<T>(a_.keys, 0, kv_head),
                                        .values = cache_entry<T>(a_.values, 0, kv_head),
                                        .place_stride = a_.keys.stride[0],
                                        .pages = pages,
                                        .page = a_.page,
                                        .first = first(sequence),
                                        .length = length(sequence),
                                        .bias = bias(sequence, head),
                                        .bias_head_stride = a_.bias.stride[0],
                                        .out = cache_entry<T>(a_.out, sequence, head),
                                        .out_head_stride = a_.out.stride[1]},
                                       memory);
    }
  }

 private:
  int64_t length(int64_t sequence) const {
    return reinterpret_cast<const int32_t*>(a_.lengths.data)[sequence];
  }
  int64_t first(int64_t sequence) const {
    return a_.window > 0 ? std::max<int64_t>(0, length(sequence) - a_.window) : 0;
  }

  const T* bias(int64_t sequence, int64_t head) const {
    if (!a_.bias.present()) return nullptr;
    return cache_entry<T>(a_.bias, head, a_.bias.shape[1] - length(sequence));
  }

  const ops::DecodeAttention& a_;
  int64_t kv_heads_, head_dim_;
};

}  // namespace

void kv_cache_write(Exec& ex, const ops::KvCacheWrite& c) {
  visit_cpu(c.k.dtype, "kv_cache_write", [&]<class T>() {
    const int64_t heads = c.k.shape[1], width = c.k.shape[2];
    const auto* places = reinterpret_cast<const int32_t*>(c.places.data);
    const auto write = [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (places[t] < 0) continue;
        for (int64_t h = 0; h < heads; ++h) {
          std::copy_n(cache_entry<T>(c.k, t, h), width, cache_entry<T>(c.keys, places[t], h));
          std::copy_n(cache_entry<T>(c.v, t, h), width, cache_entry<T>(c.values, places[t], h));
        }
      }
    };
    threads_of(ex).split(c.k.rows(), grain_rows(2 * heads * width), write);
  });
}

void decode_attention(Exec& ex, const ops::DecodeAttention& a) {
  visit_cpu(a.q.dtype, "decode_attention", [&]<class T>() {
    const Decoding<T> decoding(a);
    HostDevice& host = host_of(ex);
    const auto compute = [&](int64_t task, int thread) {
      decoding.compute(task, {reinterpret_cast<float*>(host.workspace(thread))});
    };
    if (decoding.elements() < 2 * kGrain) {
      for (int64_t task = 0; task < decoding.tasks(); ++task) compute(task, 0);
    } else {
      host.threads().each(decoding.tasks(), compute);
    }
  });
}

}  // namespace bev::cpu
