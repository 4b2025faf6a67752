// The native kernel, the types of element: what each is measured as, and how it is read.
//
// Part of pass.cpp, and compiled with it for every instruction set.

#pragma once

#include "blocks.h"

namespace {

// By integers, of which the compiler makes vectors, and which no mode of the processor for small
// numbers changes.
inline float half(const char* p) {
  const uint32_t h = load<uint16_t>(p), size = h & 0x7fffu;
  const float subnormal = float(int32_t(size)) * 0x1p-24f;
  uint32_t bits = (size << 13) + (112u << 23);
  bits = size < 0x0400u ? load<uint32_t>(&subnormal) : bits;
  bits = size >= 0x7c00u ? (size << 13) | 0x7f800000u : bits;
  bits |= (h & 0x8000u) << 16;
  return load<float>(&bits);
}

// The magnitude of a complex number, by operations that IEEE 754 fixes to the last bit, so that
// the torch kernel gets the same. With float parts the squares are exact; with double parts the
// larger is taken out first, because its square might overflow.
inline double magnitude(float re, float im) {
  return std::sqrt(double(re) * double(re) + double(im) * double(im));
}
inline double magnitude(double re, double im) {
  const double a = std::fabs(re), b = std::fabs(im), large = a > b ? a : b, small = a > b ? b : a;
  if (a != a || b != b) return __builtin_nan("");
  if (large == 0 || large == INF) return large;
  const double ratio = small / large;
  return large * std::sqrt(1.0 + ratio * ratio);
}

// A type says what it is measured as (V, which loses nothing but integers beyond 2^53) and how.
template <class T, class As> struct Number {
  using V = As;
  static constexpr int size = sizeof(T);
  static V get(const char* p) { return V(load<T>(p)); }
};
struct Bool : Number<uint8_t, float> { static V get(const char* p) { return *p != 0; } };
struct Half : Number<uint16_t, float> { static V get(const char* p) { return half(p); } };
struct Bfloat : Number<uint16_t, float> {
  static V get(const char* p) {
    const uint32_t bits = uint32_t(load<uint16_t>(p)) << 16;
    return load<float>(&bits);
  }
};
struct ComplexHalf : Number<uint32_t, double> {
  static V get(const char* p) { return magnitude(half(p), half(p + 2)); }
};
template <class T> struct Complex {
  using V = double;
  static constexpr int size = 2 * sizeof(T);
  static V get(const char* p) { return magnitude(load<T>(p), load<T>(p + sizeof(T))); }
};

}  // namespace
