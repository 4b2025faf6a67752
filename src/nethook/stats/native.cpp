// The native kernel: one pass over a plain strided tensor in CPU memory, into one summary row.
//
// CMake compiles this file once for every instruction set (NETHOOK_SET is its name), which gives
// the pass for that set; binding.cpp has what Python calls, and the choice of the set.
//
// Reading order: job -> vectors -> loops over one block -> types of element -> walk.
// What fields and bins mean stands in fields.py; torched.py gives the same numbers, and tests hold
// them together.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "native.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Everything here has a name that no other file can see, and no container or algorithm of the
// standard library is used: code that two sets share by name could be linked for the wrong one.
namespace {

constexpr double INF = __builtin_inf();
constexpr int ZERO_BIN = 322, BINS = 2 * ZERO_BIN + 1;
static_assert(BINS == BIN_COUNT);
constexpr int BLOCK = 2048;  // elements measured at a time: they stay in the first cache
constexpr int DIRECT = 256;  // shorter runs are gathered into a block first

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

// ------------------------------------------------------------------------------ types of element

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

// --------------------------------------------------------------------------------------- the walk

// Merges neighbours that lie in memory like one dimension, and drops those of one element.
int collapse(Dim* dims, int n) {
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    const Dim d = dims[i];
    Dim* last = dims + kept - 1;
    if (d.size == 1) continue;
    if (kept && !last->unit && !d.unit && last->stride == d.stride * d.size)
      *last = {last->size * d.size, d.stride, false};
    else dims[kept++] = d;
  }
  return kept;
}

// Counts through elements with a fixed step, one digit a dimension: a division an element would be
// slower.
struct Milometer {
  const Dim* dims;
  int n;
  int64_t at[MAX_DIMS], add[MAX_DIMS], offset = 0, unit = 0;

  Milometer(const Dim* dims, int n, int64_t start, int64_t step) : dims(dims), n(n) {
    for (int i = n - 1; i >= 0; --i) {
      at[i] = start % dims[i].size;
      add[i] = step % dims[i].size;
      start /= dims[i].size;
      step /= dims[i].size;
      offset += at[i] * dims[i].stride;
    }
  }

  bool next() {  // false after the last
    bool carry = n == 0;
    for (int i = n - 1; i >= 0; --i) {
      int64_t digit = at[i] + add[i] + carry;
      carry = digit >= dims[i].size;
      digit -= carry ? dims[i].size : 0;
      offset += (digit - at[i]) * dims[i].stride;
      unit = dims[i].unit ? digit : unit;
      at[i] = digit;
    }
    return !carry;
  }
};

// Mean (as two floats) and sum of squared distances, merged as in fields.py.
struct Moments {
  double count, mean, low, m2;

  void merge(const Moments& b) {
    if (b.count == 0) return;
    const double total = count + b.count, share = b.count / total;
    const double delta = (b.mean - mean) + (b.low - low);
    m2 += b.m2 + delta * delta * (count * share);
    if (!std::isfinite(delta)) set_mean(mean * (count / total), b.mean * share);  // near the limit
    else if (b.count > count) set_mean(b.mean, b.low - (count / total) * delta);
    else set_mean(mean, low + share * delta);
    count = total;
  }

  void set_mean(double base, double step) {  // base + step, without loss
    mean = base + step;
    const double part = mean - base;
    low = (base - (mean - part)) + (step - part);
  }
};

template <class T>
class Pass {
  using V = typename T::V;
  static constexpr bool AS_IT_IS = std::is_same_v<T, Number<V, V>>;
  // Of whole numbers the sums are exact, and stay so.
  static constexpr bool QUICK = std::is_same_v<T, Number<float, float>> ||
                                std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

 public:
  explicit Pass(Job& job) : job_(job) {
    if (job.histogram) std::memset(tables_, 0, sizeof tables_);
  }

  void run() {
    Dim dims[MAX_DIMS];
    int n = 0;
    // In the order of memory; a dimension that repeats its elements (stride 0) goes outside.
    for (; n < job_.dims; ++n) {
      int to = n;
      for (; to > 0 && uint64_t(dims[to - 1].stride) - 1 < uint64_t(job_.dim[n].stride) - 1; --to)
        dims[to] = dims[to - 1];
      dims[to] = job_.dim[n];
    }
    if (job_.bits) note_units(dims, n);
    for (int i = 0; i < n; ++i) dims[i].unit = false;
    n = collapse(dims, n);
    const Dim inner = n ? dims[n - 1] : Dim{1, 1, false};
    Milometer outer(dims, n ? n - 1 : 0, 0, 1);
    do walk(job_.data + outer.offset * T::size, inner);
    while (outer.next());
    measure(buffer_, filled_);
    if (job_.histogram && job_.step > 1) sample();
    finish();
  }

 private:
  // One run of elements with one stride.
  void walk(const char* p, const Dim& run) {
    const bool packed = run.stride == 1 && reinterpret_cast<uintptr_t>(p) % sizeof(V) == 0;
    int n;
    for (int64_t done = 0; done < run.size; done += n) {
      const int64_t left = run.size - done;
      const bool direct = AS_IT_IS && packed && left >= DIRECT && !changed();
      const int64_t room = direct ? BLOCK : BLOCK - filled_;
      n = int(left < room ? left : room);
      const char* from = p + done * run.stride * T::size;
      if (direct) {
        measure(reinterpret_cast<const V*>(from), n);
      } else if (AS_IT_IS && packed && job_.minus && job_.factor == 1) {
        subtract(reinterpret_cast<const V*>(from),
                 reinterpret_cast<const V*>(job_.minus + (from - job_.data)), n);
      } else {
        gather(from, run.stride, n);
        if (changed()) change(from, run.stride, n);
      }
      // A job with a copy is one run that lies in one piece: this part of it is still in the cache.
      if (job_.copy) std::memcpy(job_.copy + done * T::size, from, size_t(n) * T::size);
      if (filled_ == BLOCK) {
        measure(buffer_, BLOCK);
        filled_ = 0;
      }
    }
  }

  void subtract(const V* p, const V* minus, int n) {
    V* out = buffer_ + filled_;
    filled_ += n;
    for (int i = 0; i < n; ++i) out[i] = p[i] - minus[i];
  }

  bool changed() const { return job_.minus || job_.factor != 1; }

  // What was gathered last from `from`, as it is to be measured.
  void change(const char* from, int64_t stride, int n) {
    V* out = buffer_ + filled_ - n;
    const V factor = V(job_.factor);
    if (factor != 1) for (int i = 0; i < n; ++i) out[i] *= factor;
    if (!job_.minus) return;
    const char* other = job_.minus + (from - job_.data);
    if (stride == 1) for (int i = 0; i < n; ++i) out[i] -= T::get(other + i * T::size);
    else for (int i = 0; i < n; ++i) out[i] -= T::get(other + i * stride * T::size);
  }

  // Which units are active. One element is enough, so this looks no further than it must.
  void note_units(const Dim* all, int n) {
    int64_t silent = job_.units;
    for (int64_t i = 0; i < job_.units; ++i) silent -= job_.bits[i] != 0;
    Dim dims[MAX_DIMS];
    for (int i = 0; i < n; ++i) dims[i] = all[i];
    n = collapse(dims, n);
    const Dim inner = n ? dims[n - 1] : Dim{1, 1, false};
    Milometer outer(dims, n ? n - 1 : 0, 0, 1);
    if (silent) do {
      const char* p = job_.data + outer.offset * T::size;
      uint8_t* bits = job_.bits + (inner.unit ? 0 : outer.unit);
      if (inner.unit) {
        for (int64_t i = 0; i < inner.size; ++i) {
          const bool fresh = !bits[i] && T::get(p + i * inner.stride * T::size) != 0;
          bits[i] |= uint8_t(fresh);
          silent -= fresh;
        }
      } else {
        for (int64_t i = 0; !*bits && i < inner.size; ++i) {
          *bits = T::get(p + i * inner.stride * T::size) != 0;
          silent -= *bits;
        }
      }
    } while (silent && outer.next());
  }

  void gather(const char* p, int64_t stride, int n) {
    V* out = buffer_ + filled_;
    filled_ += n;
    int i = 0;
#if defined(__F16C__)
    if constexpr (std::is_same_v<T, Half>) {
      for (; stride == 1 && i + 8 <= n; i += 8) {
        const __m256 x = _mm256_cvtph_ps(load<__m128i>(p + i * T::size));
        std::memcpy(out + i, &x, sizeof x);
      }
    }
#endif
    if (stride == 1) {  // a loop of its own, of which the compiler makes vectors
      for (; i < n; ++i) out[i] = T::get(p + i * T::size);
    }
    for (; i < n; ++i) out[i] = T::get(p + i * stride * T::size);
  }

  void measure(const V* p, int n) {
    if (n == 0) return;
    counts_[COUNT] += n;
    if (job_.histogram && job_.step == 1) count_bins(p, n);
    double centre = moments_.count ? moments_.mean : middle(p, n);
    Block b = measured(p, n, centre);
    if (!std::isfinite(b.squares)) {
      n = keep_finite(p, n);
      p = finite_;
      if (n == 0) return;
      centre = moments_.count ? moments_.mean : middle(p, n);
      b = measured(p, n, centre);
    }
    counts_[ZEROS] += b.zeros;
    min_ = b.min < min_ ? b.min : min_;
    max_ = b.max > max_ ? b.max : max_;
    if (job_.bounded) {
      int low = 0, high = 0;
      for (int i = 0; i < n; ++i) low += double(p[i]) <= job_.low;
      for (int i = 0; i < n; ++i) high += double(p[i]) >= job_.high;
      counts_[NEAR_LOW] += low;
      counts_[NEAR_HIGH] += high;
      counts_[BOUNDED] += n;
    }
    if (!std::isfinite(b.sum)) {  // float64 near its limit: the mean is still a number
      b.sum = centre = 0;
      b.squares = INF;
      for (int i = 0; i < n; ++i) centre += p[i] / n;
    }
    const double step = b.sum / n, m2 = b.squares - b.sum * step;
    Moments m{double(n), 0, 0, m2 > 0 ? m2 : 0};
    m.set_mean(centre, step);
    moments_.merge(m);
  }

  static Block measured(const V* p, int n, double& centre) {
    if constexpr (QUICK) {
      const float near = float(centre);
      const Block b = quick_block(p, n, near);
      if (b.squares > 1e-25 * n && b.squares < 1e37) {
        centre = double(near);
        return b;
      }
    }
    return block(p, n, centre);
  }

  // A value amid the finite elements, so that the sums lose no digits to a common offset.
  static double middle(const V* p, int n) {
    double first = 0, sum = 0;
    int seen = 0;
    for (int i = 0; i < n; i += n < 8 ? 1 : n / 8) {
      if (!std::isfinite(p[i])) continue;
      if (seen++ == 0) first = p[i];
      sum += p[i] - first;
    }
    return seen && std::isfinite(sum) ? first + sum / seen : first;
  }

  int keep_finite(const V* p, int n) {
    int kept = 0;
    for (int i = 0; i < n; ++i) {
      const V x = p[i];
      finite_[kept] = x;
      kept += std::isfinite(x);
      counts_[NANS] += x != x;
      counts_[POSINF] += x == V(INF);
      counts_[NEGINF] += x == -V(INF);
    }
    return kept;
  }

  void count_bins(const V* p, int n) {
    bins(p, n, places_);
    if (tabled_ + n > 0xffff) spill();
    tabled_ += n;
    int i = 0;
    for (; i + 4 <= n; i += 4)
      for (int k = 0; k < 4; ++k) ++tables_[k][places_[i + k] + 1];
    for (; i < n; ++i) ++tables_[0][places_[i] + 1];
  }

  // Takes the counts of the tables on.
  void spill() {
    uint16_t all[BINS];
    const auto& [a, b, c, d] = tables_;
    for (int i = 0; i < BINS; ++i) all[i] = uint16_t(a[i + 1] + b[i + 1] + c[i + 1] + d[i + 1]);
    int64_t binned = 0;
    for (int i = 0; i < BINS; ++i) binned += all[i];
    for (int i = 0; i < BINS; ++i) job_.histogram[i] += all[i];
    counts_[BINNED] += binned;
    std::memset(tables_, 0, sizeof tables_);
    tabled_ = 0;
  }

  // Every step-th element, in the tensor's order, which the torch kernel has too.
  void sample() {
    Dim dims[MAX_DIMS];
    int64_t left = 1;
    for (int i = 0; i < job_.dims; ++i) {
      dims[i] = {job_.dim[i].size, job_.dim[i].stride, false};
      left *= dims[i].size;
    }
    Milometer at(dims, collapse(dims, job_.dims), job_.phase, job_.step);
    left /= job_.step;
    for (int64_t done = 0; left > 0; left -= filled_, done += filled_) {
      const int n = int(left < BLOCK ? left : BLOCK);
      filled_ = 0;
      if (at.n == 1) {
        const int64_t stride = job_.step * dims[0].stride;
        const char* from = job_.data + (at.offset + done * stride) * T::size;
        gather(from, stride, n);
        if (changed()) change(from, stride, n);
      } else {
        for (; filled_ < n; at.next())
          buffer_[filled_++] = T::get(job_.data + at.offset * T::size) * V(job_.factor);
      }
      count_bins(buffer_, filled_);
    }
  }

  void finish() {
    double* row = job_.row;
    const double finite = row[COUNT] - row[NANS] - row[POSINF] - row[NEGINF];
    Moments all{finite, row[MEAN], row[MEAN_LOW], row[M2]};
    all.merge(moments_);
    row[MEAN] = all.mean;
    row[MEAN_LOW] = all.low;
    row[M2] = all.m2;
    row[MIN] = min_ < row[MIN] ? min_ : row[MIN];
    row[MAX] = max_ > row[MAX] ? max_ : row[MAX];
    if (job_.histogram) spill();
    for (int i = 0; i < WIDTH; ++i) row[i] += double(counts_[i]);
    job_.odd = counts_[NANS] + counts_[POSINF] + counts_[NEGINF];
    job_.square = moments_.m2 + moments_.count * moments_.mean * moments_.mean;
  }

  Job& job_;
  V buffer_[BLOCK];        // elements on their way to a block
  V finite_[BLOCK];        // the finite ones of a block that has others
  int32_t places_[BLOCK];  // the bins of a block
  // Their counts; the first is that of NaN. Four in turn: equal neighbours need not wait in line.
  uint16_t tables_[4][BINS + 3];
  int tabled_ = 0;  // how many elements are in them
  int filled_ = 0;
  Moments moments_{0, 0, 0, 0};
  double min_ = INF, max_ = -INF;
  int64_t counts_[WIDTH] = {};  // what is added to the fields of the row
};

template <class T> void pass(Job& job) { Pass<T>(job).run(); }

}  // namespace

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
void JOIN(nethook_pass_, NETHOOK_SET)(Job& job, int type) {
  static void (*const passes[TYPES])(Job&) = {
      pass<Bool>, pass<Number<uint8_t, float>>, pass<Number<int8_t, float>>,
      pass<Number<int16_t, float>>, pass<Number<uint16_t, float>>, pass<Number<int32_t, double>>,
      pass<Number<uint32_t, double>>, pass<Number<int64_t, double>>, pass<Number<uint64_t, double>>,
      pass<Half>, pass<Bfloat>, pass<Number<float, float>>, pass<Number<double, double>>,
      pass<ComplexHalf>, pass<Complex<float>>, pass<Complex<double>>};
  passes[type](job);
}
