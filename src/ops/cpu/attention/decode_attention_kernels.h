// Attention of one new token to cached keys and values. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/attention/attention_tile.h"
#include "ops/cpu/simd/lane_sums.h"

namespace bev::cpu {

// The softmax of a row that is seen block by block: after Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018.
template <class V, class T>
class DecodeHeads {
 public:
  DecodeHeads(const DecodeProblem<T>& problem, TileMemory memory)
      : d_(problem), padded_(padded_to<V>(problem.head_dim)) {
    q_ = take<V>(memory, kDecodeHeads * padded_);
    out_ = take<V>(memory, kDecodeHeads * padded_);
    weights_ = take<V>(memory, kDecodeHeads * kDecodePlaces);
    pack_rows<V>(d_.q, d_.q_head_stride, d_.heads, d_.head_dim, d_.scale, q_);
    for (int64_t i = 0; i < d_.heads * padded_; i += V::kWidth) V::zero().store(out_ + i);
    for (int64_t h = 0; h < d_.heads; ++h) {
      max_[h] = -__builtin_inff();
      sum_[h] = 0;
    }
  }

  void compute() {
    for (int64_t begin = d_.first; begin < d_.length; begin += kDecodePlaces) {
      const int64_t rest = d_.length - begin;
      const int64_t count = rest < kDecodePlaces ? rest : kDecodePlaces;
      locate(begin, count);
      score(count);
      if (d_.bias != nullptr) add_bias(begin, count);
      for (int64_t h = 0; h < d_.heads; ++h) {
        const float kept = weigh(h, count);
        add_values(h, count, kept);
      }
    }
    for (int64_t h = 0; h < d_.heads; ++h) {
      // No place at all: zeros.
      const V factor = V::broadcast(d_.first < d_.length ? 1 / sum_[h] : 0.0f);
      each_vector<V>(d_.head_dim, [&](int64_t i, auto lanes) {
        lanes.store(V::load(out_ + h * padded_ + i) * factor, d_.out + h * d_.out_head_stride + i);
      });
    }
  }

 private:
  static constexpr int64_t kAhead = 8;  // places whose keys are on their way

  // The rows of places [begin, begin + count). The last one is repeated until a four is full.
  void locate(int64_t begin, int64_t count) {
    int64_t page = begin / d_.page, in_page = begin % d_.page;
    for (int64_t i = 0; i < count; ++i) {
      offset_[i] = (d_.pages[page] * d_.page + in_page) * d_.place_stride;
      if (++in_page == d_.page) {
        in_page = 0;
        ++page;
      }
    }
    for (int64_t i = count; i % 4 != 0; ++i) offset_[i] = offset_[count - 1];
  }

  void score(int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
      for (int64_t n = i; n < i + 4; ++n) {
        prefetch_rows<V>(d_.values + offset_[n], 0, 0, 1, d_.head_dim);
        if (n + kAhead < count)
          prefetch_rows<V>(d_.keys + offset_[n + kAhead], 0, 0, 1, d_.head_dim);
      }
      const T *k0 = d_.keys + offset_[i], *k1 = d_.keys + offset_[i + 1];
      const T *k2 = d_.keys + offset_[i + 2], *k3 = d_.keys + offset_[i + 3];
      for (int64_t h = 0; h < d_.heads; ++h) {
        const float* q = q_ + h * padded_;
        V s0 = V::zero(), s1 = V::zero(), s2 = V::zero(), s3 = V::zero();
        each_vector<V>(d_.head_dim, [&](int64_t at, auto lanes) {
          const V x = V::load(q + at);
          s0 = fma(x, lanes.load(k0 + at), s0);
          s1 = fma(x, lanes.load(k1 + at), s1);
          s2 = fma(x, lanes.load(k2 + at), s2);
          s3 = fma(x, lanes.load(k3 + at), s3);
        });
        store_lane_sums(s0, s1, s2, s3, weights_ + h * kDecodePlaces + i);
      }
    }
  }

  void add_bias(int64_t begin, int64_t count) {
    for (int64_t h = 0; h < d_.heads; ++h) {
      float* weights = weights_ + h * kDecodePlaces;
      const T* bias = d_.bias + h * d_.bias_head_stride + begin;
      each_vector<V>(count, [&](int64_t i, auto lanes) {
        lanes.store(lanes.load(weights + i) + lanes.load(bias + i), weights + i);
      });
    }
  }

  // Scores to weights relative to the largest score so far. Returns what weights of earlier blocks
  // are to be multiplied by.
  float weigh(int64_t h, int64_t count) {
    float* weights = weights_ + h * kDecodePlaces;
    V largest = V::broadcast(max_[h]);
    each_vector<V>(count, [&](int64_t i, auto lanes) {
      largest = max(lanes.live_or(lanes.load(weights + i), -__builtin_inff()), largest);
    });
    const float max = max_lane(largest);
    alignas(64) float kept[V::kWidth];
    exp(V::broadcast(max_[h] - max)).store(kept);
    max_[h] = max;
    const V shift = V::broadcast(max);
    V total = V::zero();
    each_vector<V>(count, [&](int64_t i, auto lanes) {
      const V w = exp(lanes.load(weights + i) - shift);
      total = total + lanes.live_or(w, 0.0f);
      lanes.store(w, weights + i);
    });
    sum_[h] = sum_[h] * kept[0] + sum(total);
    return kept[0];
  }

  void add_values(int64_t h, int64_t count, float kept) {
    constexpr int64_t kWide = 4 * V::kWidth;
    const float* weights = weights_ + h * kDecodePlaces;
    float* out = out_ + h * padded_;
    const V factor = V::broadcast(kept);
    int64_t at = 0;
    for (; at + kWide <= d_.head_dim; at += kWide) {
      V s[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) s[v] = V::load(out + at + v * V::kWidth) * factor;
      for (int64_t i = 0; i < count; ++i) {
        const V w = V::broadcast(weights[i]);
        const T* value = d_.values + offset_[i] + at;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) s[v] = fma(w, V::load(value + v * V::kWidth), s[v]);
      }
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) s[v].store(out + at + v * V::kWidth);
    }
    each_vector<V>(d_.head_dim - at, [&](int64_t rest, auto lanes) {
      V s = V::load(out + at + rest) * factor;
      for (int64_t i = 0; i < count; ++i) {
        s = fma(V::broadcast(weights[i]), lanes.load(d_.values + offset_[i] + at + rest), s);
      }
      s.store(out + at + rest);
    });
  }

  const DecodeProblem<T>& d_;
  const int64_t padded_;
  float *q_, *out_, *weights_;  // [heads, padded], [heads, padded], [heads, kDecodePlaces]
  float max_[kDecodeHeads], sum_[kDecodeHeads];
  int64_t offset_[kDecodePlaces];
};

template <class V, class T>
void decode_attention(const DecodeProblem<T>& problem, TileMemory memory) {
  DecodeHeads<V, T>(problem, memory).compute();
}

}  // namespace bev::cpu
