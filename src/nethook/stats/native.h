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

constexpr int BIN_COUNT = 645;  // see fields.py
constexpr int TYPES = 16;  // of element, in the order of CODES in native.py
constexpr int FLOAT32 = 11, FLOAT64 = 12;
constexpr int SIZES[TYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 4, 8, 16};  // in bytes
