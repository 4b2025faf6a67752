// The native kernel: one pass over a plain strided tensor in CPU memory, into one summary row.
//
// CMake compiles this file once for every instruction set (NETHOOK_SET is its name), which gives
// the pass for that set; binding.cpp has what Python calls, and the choice of the set.
//
// Reading order: pass.h (what to fold where), blocks.h (loops over one block), elements.h (types
// of element), repeats.h (elements that are shown many times), and here the walk through a tensor.
// What fields and bins mean stands in fields.py; torched.py gives the same numbers, and tests hold
// them together.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "blocks.h"
#include "elements.h"
#include "pass.h"
#include "repeats.h"

// Everything here has a name that no other file can see, and no container or algorithm of the
// standard library is used: code that two sets share by name could be linked for the wrong one.
namespace {

constexpr int BLOCK = 2048;  // elements measured at a time: they stay in the first cache
constexpr int DIRECT = 256;  // shorter runs are gathered into a block first

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
    // In the order of memory. A dimension of stride 0 shows the same elements again.
    for (int i = 0; i < job_.dims; ++i) {
      const Dim d = job_.dim[i];
      if (d.size == 1 && !d.unit) continue;
      if (d.stride == 0) times_ *= d.size;
      if (d.stride == 0 && !d.unit) continue;
      int to = n++;
      for (; to > 0 && uint64_t(dims[to - 1].stride) - 1 < uint64_t(d.stride) - 1; --to)
        dims[to] = dims[to - 1];
      dims[to] = d;
    }
    // The elements of an expanded unit are those of its neighbours: all units are one.
    const bool one_unit = job_.bits && n && dims[0].unit && dims[0].stride == 0;
    if (one_unit) {
      --n;
      for (int i = 0; i < n; ++i) dims[i] = dims[i + 1];
    }
    if (job_.step == 1) bin_times_ = times_;
    const Overlap group = find_overlap(dims, n);
    if (group.span) {
      count_overlap(dims, n, group, one_unit);
    } else {
      if (one_unit) note_one_unit(dims, n);
      else if (job_.bits) note_units(dims, n);
      for (int i = 0; i < n; ++i) dims[i].unit = false;
      n = collapse(dims, n);
      const Dim inner = n ? dims[n - 1] : Dim{1, 1, false};
      Milometer outer(dims, n ? n - 1 : 0, 0, 1);
      do walk(job_.data + outer.offset * T::size, inner);
      while (outer.next());
      measure(buffer_, filled_);
    }
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

  // Which units are active, as kinds/modules.py has it: not zero. One element is enough, so this
  // looks no further than it must.
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

  // The same where the elements of all units are one and the same.
  void note_one_unit(const Dim* all, int n) {
    Dim dims[MAX_DIMS];
    for (int i = 0; i < n; ++i) dims[i] = all[i];
    n = collapse(dims, n);
    Milometer at(dims, n, 0, 1);
    bool active;
    do active = T::get(job_.data + at.offset * T::size) != 0;
    while (!active && at.next());
    if (active) std::memset(job_.bits, 1, size_t(job_.units));
  }

  // A tensor whose inner dimensions overlap: each element of memory once, with its count.
  void count_overlap(const Dim* dims, int n, const Overlap& group, bool one_unit) {
    Counts counts(group.span), active(job_.bits ? group.span : 1);
    multiplicities(dims, n, group, counts);
    Milometer outer(dims, group.outer, 0, 1);
    do {
      const char* p = job_.data + outer.offset * T::size;
      for (int64_t at = 0; at < group.span;) {
        int filled = 0;
        for (; at < group.span && filled < BLOCK; ++at) {
          if (!counts[at]) continue;
          many_[filled] = counts[at];
          buffer_[filled++] = T::get(p + at * group.step * T::size) * V(job_.factor);
        }
        measure_many(filled);
      }
      if (!job_.bits) continue;
      for (int64_t at = 0; at < group.span; ++at)
        active[at] = counts[at] && T::get(p + at * group.step * T::size) != 0;
      int unit = group.outer;
      while (unit < n && !dims[unit].unit) ++unit;
      if (unit < n) {  // a unit has what every other dimension reaches from where it begins
        for (int i = group.outer; i < n; ++i)
          if (i != unit) active.sum_after(dims[i].size, dims[i].stride / group.step);
        const int64_t stride = dims[unit].stride / group.step;
        for (int64_t i = 0; i < job_.units; ++i) job_.bits[i] |= uint8_t(active[i * stride] > 0);
      } else {
        bool any = false;
        for (int64_t at = 0; at < group.span && !any; ++at) any = active[at] != 0;
        if (any && one_unit) std::memset(job_.bits, 1, size_t(job_.units));
        else if (any) job_.bits[outer.unit] = 1;
      }
    } while (outer.next());
  }

  // Measures the first elements of the buffer, each as often as `many_` says.
  void measure_many(int n) {
    if (job_.histogram && job_.step == 1) {
      bins(buffer_, n, places_);
      for (int i = 0; i < n; ++i) {
        if (places_[i] < 0) continue;
        add_to_bin(places_[i], many_[i] * bin_times_);
        binned_ += many_[i] * bin_times_;
      }
    }
    int kept = 0;
    for (int i = 0; i < n; ++i) {
      const V x = buffer_[i];
      const int64_t many = many_[i];
      counts_[COUNT] += many;
      counts_[NANS] += x != x ? many : 0;
      counts_[POSINF] += x == V(INF) ? many : 0;
      counts_[NEGINF] += x == -V(INF) ? many : 0;
      if (!std::isfinite(x)) continue;
      counts_[ZEROS] += x == 0 ? many : 0;
      min_ = x < min_ ? x : min_;
      max_ = x > max_ ? x : max_;
      if (job_.bounded) {
        counts_[NEAR_LOW] += double(x) <= job_.low ? many : 0;
        counts_[NEAR_HIGH] += double(x) >= job_.high ? many : 0;
        counts_[BOUNDED] += many;
      }
      many_[kept] = many;
      finite_[kept++] = x;
    }
    if (kept == 0) return;
    double centre = moments_.count ? moments_.mean : middle(finite_, kept);
    double total = 0, sum = 0, squares = 0;
    for (int i = 0; i < kept; ++i) {
      const double many = double(many_[i]), d = finite_[i] - centre;
      total += many;
      sum += many * d;
      squares += many * (d * d);
    }
    if (!std::isfinite(sum)) {  // float64 near its limit, as in `measure`
      sum = centre = 0;
      squares = INF;
      for (int i = 0; i < kept; ++i) centre += finite_[i] * (double(many_[i]) / total);
    }
    const double step = sum / total, m2 = squares - sum * step;
    Moments m{total, 0, 0, m2 > 0 ? m2 : 0};
    m.set_mean(centre, step);
    moments_.merge(m);
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
    if (bin_times_ == 1) {
      for (int i = 0; i < BINS; ++i) job_.histogram[i] += all[i];
    } else {
      for (int i = 0; i < BINS; ++i) add_to_bin(i, all[i] * bin_times_);
    }
    binned_ += binned * bin_times_;
    std::memset(tables_, 0, sizeof tables_);
    tabled_ = 0;
  }

  // Two tensors of 2^62 elements are more than a bin can count: it stays at the most it can.
  void add_to_bin(int place, int64_t count) {
    if (__builtin_add_overflow(job_.histogram[place], count, &job_.histogram[place]))
      job_.histogram[place] = INT64_MAX;
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
    Moments all{finite > 0 ? finite : 0, row[MEAN], row[MEAN_LOW], row[M2]};
    moments_.count *= double(times_);
    moments_.m2 *= double(times_);
    for (int i = 0; i < WIDTH; ++i) counts_[i] *= times_;
    all.merge(moments_);
    row[MEAN] = all.mean;
    row[MEAN_LOW] = all.low;
    row[M2] = all.m2;
    row[MIN] = min_ < row[MIN] ? min_ : row[MIN];
    row[MAX] = max_ > row[MAX] ? max_ : row[MAX];
    if (job_.histogram) spill();
    row[BINNED] += double(binned_);
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
  int64_t many_[BLOCK];  // how often each element of a block that overlaps is in the tensor
  int64_t times_ = 1;      // how often the tensor repeats everything
  int64_t bin_times_ = 1;  // the same for what goes into the histogram: a sample has repeats in it
  int64_t binned_ = 0;
  Moments moments_{0, 0, 0, 0};
  double min_ = INF, max_ = -INF;
  int64_t counts_[WIDTH] = {};  // what is added to the fields of the row, without repeats
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
