// Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/float_types.h"

namespace bev {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8 };

size_t size_of(DType dtype);
std::string_view name_of(DType dtype);
bool is_floating(DType dtype);

// The dtype of statistics, gradients and moments that belong to values of `dtype`: f64 for f64,
// else f32.
DType accumulation_of(DType dtype);

// The DType of a C++ element type.
template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<bf16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<f16> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::u8; };
// clang-format on

}  // namespace bev
