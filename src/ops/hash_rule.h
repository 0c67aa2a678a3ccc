// How the bits of a tensor become one number: a sum, so that the order does not matter, of each
// element mixed with its place, so that exchanged elements are noticed.
#pragma once

#include <cstdint>

#include "base/cuda_macros.h"

namespace bev {

// `bits`: the element's, zeros above them.
BEV_HOST_DEVICE inline uint64_t hash_of_element(uint64_t bits, uint64_t place) {
  uint64_t h = bits + (place + 1) * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
  h = (h ^ (h >> 29)) * 0xa0761d6478bd642fu;
  return h ^ (h >> 32);
}

}  // namespace bev
