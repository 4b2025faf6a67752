// The native kernel, the loops over one block of elements: sums, extrema, zeros and bins.
//
// Part of pass.cpp, and compiled with it for every instruction set.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "pass.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr double INF = __builtin_inf();
constexpr int ZERO_BIN = 322, BINS = 2 * ZERO_BIN + 1;
static_assert(BINS == BIN_COUNT);

// Vectors of floats and of doubles, as gcc and clang have them for every architecture. They do not
// know the least of two, nor how to count, as well as the processors do.
#if defined(__AVX512F__)
#define BYTES 64
#define LEAST(type, a, b) _mm512_min_##type(a, b)
#define MOST(type, a, b) _mm512_max_##type(a, b)
#define ZEROS(type, x) __builtin_popcount(_mm512_cmpeq_##type##_mask(x, _mm512_setzero_##type()))
#elif defined(__AVX2__)
#define BYTES 32
#define LEAST(type, a, b) _mm256_min_##type(a, b)
#define MOST(type, a, b) _mm256_max_##type(a, b)
#define ZEROS(type, x) __builtin_popcount(_mm256_movemask_##type((decltype(x))(x == 0)))
#else
#define BYTES 16
#define LEAST(type, a, b) (a < b ? a : b)
#define MOST(type, a, b) (a > b ? a : b)
#define ZEROS(type, x) count_set(x == 0)
template <class Mask> inline int count_set(Mask m) {
  int n = 0;
  for (int i = 0; i < int(sizeof m / sizeof m[0]); ++i) n -= int(m[i]);
  return n;
}
#endif
typedef float F __attribute__((vector_size(BYTES)));
typedef double D __attribute__((vector_size(BYTES)));
typedef float Narrow __attribute__((vector_size(BYTES / 2)));
inline F least(F a, F b) { return LEAST(ps, a, b); }
inline D least(D a, D b) { return LEAST(pd, a, b); }
inline F most(F a, F b) { return MOST(ps, a, b); }
inline D most(D a, D b) { return MOST(pd, a, b); }
inline int zeros(F x) { return ZEROS(ps, x); }
inline int zeros(D x) { return ZEROS(pd, x); }
inline F vector_of(float x) { return F{} + x; }
inline D vector_of(double x) { return D{} + x; }
// Everything is copied out of memory: a tensor need not be aligned (torch.frombuffer).
template <class T> inline T load(const void* p) { T x; std::memcpy(&x, p, sizeof x); return x; }
inline D wide(const float* p) { return __builtin_convertvector(load<Narrow>(p), D); }
inline D wide(const double* p) { return load<D>(p); }

// Far enough ahead to cross the page at which the processor's own prefetching stops. A prefetch
// beyond the end of the tensor reads nothing.
inline void prefetch(const void* p) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + 8192));
}

struct Block {
  double sum = 0, squares = 0;  // of x - shift; not finite where an element is not
  double min = INF, max = -INF;
  int64_t zeros = 0;
};

// Floats are summed as floats, 24 in a lane at most before the sums are taken on in double: within
// 1e-6 of the truth, at half the cost. Where squares would leave the range of a float (the sum is
// not finite, or next to nothing) the caller takes `block`, which sums in double. Three chains:
// more do not fit into the registers of AVX2, and then one of them waits for memory.
inline Block quick_block(const float* p, int n, float shift) {
  constexpr int W = sizeof(F) / sizeof(float), CHAINS = 3, PART = 24 * CHAINS * W;
  typedef int32_t I __attribute__((vector_size(BYTES)));
  F low = vector_of(float(INF)), high = vector_of(float(-INF));
  const F at = vector_of(shift);
  I none{};
  D sum{}, squares{};
  Block b;
  int i = 0;
  while (i + CHAINS * W <= n) {
    F s[CHAINS] = {}, q[CHAINS] = {};
    const int end = n - i < PART ? n : i + PART;
    for (; i + CHAINS * W <= end; i += CHAINS * W) {
      prefetch(p + i);
      prefetch(p + i + 2 * W);
#pragma GCC unroll 3
      for (int k = 0; k < CHAINS; ++k) {
        const F x = load<F>(p + i + k * W), d = x - at;
        low = least(x, low);
        high = most(x, high);
        none -= I(x == 0);
        s[k] += d;
        q[k] += d * d;
      }
    }
    float all[2 * W];
    const F s3 = (s[0] + s[1]) + s[2], q3 = (q[0] + q[1]) + q[2];
    std::memcpy(all, &s3, sizeof s3);
    std::memcpy(all + W, &q3, sizeof q3);
    for (int k = 0; k < W; k += int(sizeof(D) / sizeof(double))) {
      sum += wide(all + k);
      squares += wide(all + W + k);
    }
  }
  for (int k = 0; k < W; ++k) b.min = low[k] < b.min ? low[k] : b.min;
  for (int k = 0; k < W; ++k) b.max = high[k] > b.max ? high[k] : b.max;
  for (int k = 0; k < W; ++k) b.zeros += none[k];
  for (int k = 0; k < int(sizeof(D) / sizeof(double)); ++k) b.sum += sum[k];
  for (int k = 0; k < int(sizeof(D) / sizeof(double)); ++k) b.squares += squares[k];
  for (; i < n; ++i) {
    const double x = p[i], d = x - double(shift);
    b.sum += d;
    b.squares += d * d;
    b.zeros += x == 0;
    b.min = x < b.min ? x : b.min;
    b.max = x > b.max ? x : b.max;
  }
  return b;
}

// Sums are in double whatever the type, in two chains of vectors to hide the latency of adding.
template <class T>
inline Block block(const T* p, int n, double shift) {
  using X = decltype(vector_of(T()));
  constexpr int W = sizeof(X) / sizeof(T), H = sizeof(D) / sizeof(double);  // H is W or half of it
  X low = vector_of(T(INF)), high = vector_of(T(-INF));
  D s0{}, s1{}, q0{}, q1{};
  const D at = vector_of(shift);
  Block b;
  int i = 0;
  for (; i + 2 * H <= n; i += 2 * H) {
    prefetch(p + i);
    for (int j = i; j < i + 2 * H; j += W) {
      const X x = load<X>(p + j);
      low = least(x, low);
      high = most(x, high);
      b.zeros += zeros(x);
    }
    const D a = wide(p + i) - at, c = wide(p + i + H) - at;
    s0 += a;
    s1 += c;
    q0 += a * a;
    q1 += c * c;
  }
  s0 += s1;
  q0 += q1;
  for (int k = 0; k < W; ++k) b.min = low[k] < b.min ? low[k] : b.min;
  for (int k = 0; k < W; ++k) b.max = high[k] > b.max ? high[k] : b.max;
  for (int k = 0; k < H; ++k) b.sum += s0[k];
  for (int k = 0; k < H; ++k) b.squares += q0[k];
  for (; i < n; ++i) {
    const double x = p[i], d = x - shift;
    b.sum += d;
    b.squares += d * d;
    b.zeros += x == 0;
    b.min = x < b.min ? x : b.min;
    b.max = x > b.max ? x : b.max;
  }
  return b;
}

// Bins, from the exponent and the top 7 bits of the mantissa; -1 for NaN.
template <class T>
inline void bins(const T* p, int n, int32_t* out) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int TOP = sizeof(T) == 4 ? 16 : 45;     // shifts to these bits
  constexpr int ONE = sizeof(T) == 4 ? 127 : 1023;  // the exponent of 1.0
  constexpr U INFINITE = U(2 * ONE + 1) << (TOP + 7);
  for (int i = 0; i < n; ++i) {
    U bits;
    std::memcpy(&bits, p + i, sizeof bits);
    const U size = bits & ~(U(1) << (8 * sizeof(U) - 1));
    const int32_t top = int32_t(size >> TOP), part = top & 127;
    // Without branches, which no vector has. Below 2^-40 and from 2^40 the ends of the scale hold.
    int32_t place = 2 + 4 * ((top >> 7) - ONE + 40) + (part >= 24) + (part >= 53) + (part >= 87);
    place = place < 1 ? 1 : place;
    place = place > ZERO_BIN ? ZERO_BIN : place;
    place *= size != 0;
    const int32_t negative = -int32_t(bits != size);
    out[i] = (ZERO_BIN + ((place ^ negative) - negative)) | -int32_t(size > INFINITE);
  }
}

}  // namespace
