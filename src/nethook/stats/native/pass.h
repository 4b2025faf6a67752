// What the files of the native kernel share: the fields of a row, and what to fold where.

#pragma once

#include <cstdint>

// The order of FIELDS in fields.py.
enum Field {
  TENSORS, SKIPPED, COUNT, NANS, POSINF, NEGINF, ZEROS, MEAN, MEAN_LOW, M2, MIN, MAX,
  NEAR_LOW, NEAR_HIGH, BOUNDED, BINNED, UNITS, ACTIVE, WIDTH
};

constexpr int MAX_DIMS = 64;  // torch's own limit

struct Dim {
  int64_t size, stride;  // of elements
  bool unit;             // this dimension counts the units, and there are unit bits
};

// What to fold where.
struct Job {
  const char* data = nullptr;
  int dims = 0;
  Dim dim[MAX_DIMS];    // in the tensor's order
  double* row;
  int64_t* histogram;   // null: none
  int64_t step, phase;  // it counts elements phase, phase + step, ... in the tensor's order
  uint8_t* bits;        // null: no units
  int64_t units;
  bool bounded;
  double low, high;     // near the ends of the bounds: x <= low, x >= high
  // Of tensors that lie in one piece: measured is x * factor - minus, and x is copied to `copy`.
  const char* minus = nullptr;
  char* copy = nullptr;
  double factor = 1;
  int64_t odd = 0;      // out: elements that are not finite
  double square = 0;    // out: the sum of the squares of the finite ones
};

constexpr int64_t EVERY = int64_t(1) << 62;      // as a limit: every element; see rows.py
constexpr int64_t MOST_UNITS = int64_t(1) << 24;  // a tensor with more has none; see rows.py
constexpr int64_t FEW = int64_t(1) << 16;  // so many elements are read without a second thought

// The step with which a histogram reads a tensor, so that it reads about `limit` elements: an odd
// one, so that it does not keep pace with a power of two among the sizes. A tensor that shows its
// memory many times is not read more often than the memory has elements, if they are not few.
static inline int64_t histogram_step(const Job& job, int64_t elements, int64_t limit) {
  if (elements <= limit || limit >= EVERY) return 1;
  if (limit > FEW) {
    int64_t last = 0;
    for (int i = 0; i < job.dims; ++i) last += (job.dim[i].size - 1) * job.dim[i].stride;
    if (last < limit) return 1;
  }
  return ((elements - 1) / limit + 1) | 1;
}

constexpr int BIN_COUNT = 645;  // see fields.py
constexpr int TYPES = 16;  // of element, in the order of CODES in native.py
constexpr int FLOAT32 = 11, FLOAT64 = 12;
constexpr int SIZES[TYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 4, 8, 16};  // in bytes
