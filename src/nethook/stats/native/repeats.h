// Tensors that show an element of memory more than once: expanded ones, and those whose dimensions
// overlap (`unfold`, `as_strided`). What they cost must depend on the memory, not on the sizes.
// repeats.py does the same for the torch kernel.
//
// A dimension of stride 0 multiplies every count, and is left out. Overlapping dimensions are
// counted: `multiplicities` tells how often each element of memory belongs to the tensor.
//
// Included once for each instruction set, inside a namespace without a name: see pass.cpp.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

#include "pass.h"

namespace {

// Dimensions in the order of memory, split in two: those that lie apart, outside, and inside them a
// group that overlaps, over `span` elements with a distance of `step` in memory.
struct Overlap {
  int outer = 0;          // how many dimensions lie apart
  int64_t step = 1, span = 0;  // of the group; a span of 0: there is none
};

inline int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// An overlap that shows its memory no more than twice is read as it is, which is quicker.
inline Overlap find_overlap(const Dim* dims, int n) {
  int64_t spans[MAX_DIMS + 1];  // of all dimensions from here on
  spans[n] = 1;
  for (int i = n - 1; i >= 0; --i) spans[i] = spans[i + 1] + (dims[i].size - 1) * dims[i].stride;
  Overlap found;
  while (found.outer < n && dims[found.outer].stride >= spans[found.outer + 1]) ++found.outer;
  if (found.outer == n) return found;
  int64_t elements = 1, step = 0;
  for (int i = found.outer; i < n; ++i) {
    elements *= dims[i].size;
    step = common_divisor(dims[i].stride, step);
  }
  const int64_t span = (spans[found.outer] - 1) / step + 1;
  if (elements / 2 < span) return found;
  found.step = step;
  found.span = span;
  return found;
}

// Memory for one number an element of a group.
class Counts {
 public:
  explicit Counts(int64_t size)
      : size_(size), held_(static_cast<int64_t*>(std::calloc(size_t(size), sizeof(int64_t)))) {
    if (!held_) throw std::bad_alloc();
  }
  ~Counts() { std::free(held_); }
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

  int64_t& operator[](int64_t at) { return held_[at]; }
  const int64_t* data() const { return held_; }

  // Each number becomes the sum of `count` numbers, `stride` apart, of which it is the last.
  void sum_before(int64_t count, int64_t stride) {
    for (int64_t i = stride; i < size_; ++i) held_[i] += held_[i - stride];
    const int64_t window = count * stride;
    for (int64_t i = size_ - 1; i >= window; --i) held_[i] -= held_[i - window];
  }

  // The same, of which it is the first.
  void sum_after(int64_t count, int64_t stride) {
    for (int64_t i = size_ - 1 - stride; i >= 0; --i) held_[i] += held_[i + stride];
    const int64_t window = count * stride;
    for (int64_t i = 0; i + window < size_; ++i) held_[i] -= held_[i + window];
  }

 private:
  int64_t size_;
  int64_t* held_;
};

// How often each element of a group belongs to the tensor: one at its start, then the sum of the
// copies that each dimension makes of that.
inline void multiplicities(const Dim* dims, int n, const Overlap& group, Counts& counts) {
  counts[0] = 1;
  for (int i = group.outer; i < n; ++i)
    counts.sum_before(dims[i].size, dims[i].stride / group.step);
}

}  // namespace
