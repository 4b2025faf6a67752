// The native kernel, for many tensors in one call: tables of tensors that lie in one piece, and
// single numbers. flat.py tells what they are for, and does the same without this file.

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstring>

#include "native.h"

namespace nb = nanobind;

extern void (*nethook_run)(Job&, int);  // the pass for the instruction set that was chosen

namespace {

// One line of a table of tensors that lie in one piece; see flat.py.
struct Line {
  int64_t address, elements, type, row, minus, copy;
  double factor;
  int64_t odd;    // out: elements that are not finite
  double square;  // out: the sum of the squares of the finite ones
};

// Folds the tensors of a table, each into its row; a line without an address is left out. Returns
// how many elements are not finite.
int64_t fold_flat(uintptr_t table, int64_t lines, uintptr_t rows, uintptr_t histograms,
                  uintptr_t turns, int64_t limit) {
  nb::gil_scoped_release release;
  Line* line = reinterpret_cast<Line*>(table);
  int64_t odd = 0;
  for (Line* end = line + lines; line < end; ++line) {
    line->odd = 0;
    line->square = 0;
    if (!line->address || line->type < 0 || line->type >= TYPES || limit < 1) continue;
    Job job;
    job.dims = 1;
    job.dim[0] = {line->elements, 1, false};
    job.data = reinterpret_cast<const char*>(line->address);
    job.row = reinterpret_cast<double*>(rows) + line->row * WIDTH;
    job.histogram = histograms ? reinterpret_cast<int64_t*>(histograms) + line->row * BIN_COUNT
                               : nullptr;
    job.step = line->elements <= limit ? 1 : ((line->elements + limit - 1) / limit) | 1;
    job.phase = histograms ? reinterpret_cast<int64_t*>(turns)[line->row]++ % job.step : 0;
    job.bits = nullptr;
    job.units = 0;
    job.bounded = false;
    job.low = job.high = 0;
    job.minus = reinterpret_cast<const char*>(line->minus);
    job.copy = reinterpret_cast<char*>(line->copy);
    job.factor = line->factor;
    if (line->elements) nethook_run(job, int(line->type));
    job.row[TENSORS] += 1;
    line->odd = job.odd;
    line->square = job.square;
    odd += job.odd;
  }
  return odd;
}

// How many tensors of a table have an element that is not finite (of floats and doubles alone),
// without measuring anything.
int64_t count_odd(uintptr_t table, int64_t lines) {
  nb::gil_scoped_release release;
  Line* line = reinterpret_cast<Line*>(table);
  int64_t found = 0;
  for (Line* end = line + lines; line < end; ++line) {
    line->odd = 0;
    if (!line->address) continue;
    // x * 0 is 0 for every finite x, and NaN for all else.
    if (line->type == 11) {
      const float* p = reinterpret_cast<const float*>(line->address);
      float sums[16] = {};
      int64_t i = 0;
      for (; i + 16 <= line->elements; i += 16)
        for (int k = 0; k < 16; ++k) sums[k] += p[i + k] * 0.0f;
      for (; i < line->elements; ++i) sums[0] += p[i] * 0.0f;
      for (const float sum : sums) line->odd |= sum != 0;
    } else if (line->type == 12) {
      const double* p = reinterpret_cast<const double*>(line->address);
      for (int64_t i = 0; i < line->elements; ++i) line->odd |= p[i] * 0.0 != 0;
    }
    found += line->odd;
  }
  return found;
}

// Folds one number into each row of a list; a NaN is a number that was not there.
void fold_numbers(uintptr_t numbers, uintptr_t places, int64_t count, uintptr_t rows) {
  const double* number = reinterpret_cast<const double*>(numbers);
  const int64_t* place = reinterpret_cast<const int64_t*>(places);
  for (int64_t i = 0; i < count; ++i) {
    const double x = number[i];
    if (x != x) continue;
    double* row = reinterpret_cast<double*>(rows) + place[i] * WIDTH;
    const double before = row[COUNT] - row[NANS] - row[POSINF] - row[NEGINF];
    row[TENSORS] += 1;
    row[COUNT] += 1;
    row[POSINF] += x == HUGE_VAL;
    row[NEGINF] += x == -HUGE_VAL;
    row[ZEROS] += x == 0;
    if (!std::isfinite(x)) continue;
    const double total = before + 1, delta = (x - row[MEAN]) - row[MEAN_LOW];
    const double mean = row[MEAN], step = row[MEAN_LOW] + delta / total, sum = mean + step;
    const double part = sum - mean;
    if (before == 0) {
      row[MEAN] = x;
      row[MEAN_LOW] = 0;
    } else {
      row[M2] += delta * delta * (before / total);
      row[MEAN] = sum;
      row[MEAN_LOW] = (mean - (sum - part)) + (step - part);
    }
    row[MIN] = x < row[MIN] ? x : row[MIN];
    row[MAX] = x > row[MAX] ? x : row[MAX];
  }
}

// The elements at every step-th place of each tensor of a table (float32 and float64 alone), and
// how they moved: `now` holds (lines, width) numbers of the last time and is overwritten, so does
// `moves` with the differences; `cosines` gets that of the last two moves, NaN where there is none.
void follow(uintptr_t table, int64_t lines, int64_t width, uintptr_t now, uintptr_t moves,
            uintptr_t cosines) {
  const Line* line = reinterpret_cast<const Line*>(table);
  double* at = reinterpret_cast<double*>(now);
  double* move = reinterpret_cast<double*>(moves);
  double* cosine = reinterpret_cast<double*>(cosines);
  for (int64_t i = 0; i < lines; ++i, ++line, at += width, move += width) {
    cosine[i] = __builtin_nan("");
    if (!line->address || (line->type != 11 && line->type != 12)) continue;
    const int64_t step = line->elements <= width ? 1 : line->elements / width;
    double dot = 0, old_square = 0, new_square = 0;
    for (int64_t k = 0; k < width && k * step < line->elements; ++k) {
      const double x = line->type == 11 ? reinterpret_cast<const float*>(line->address)[k * step]
                                        : reinterpret_cast<const double*>(line->address)[k * step];
      const double moved = x - at[k];
      dot += moved * move[k];
      old_square += move[k] * move[k];
      new_square += moved * moved;
      at[k] = x;
      move[k] = moved;
    }
    if (old_square > 0 && new_square > 0) cosine[i] = dot / std::sqrt(old_square * new_square);
  }
}

// A number of 52 bits that tensors with the same bytes share, from up to 512 words of 8 bytes.
double fingerprint(uintptr_t address, int64_t bytes) {
  const char* p = reinterpret_cast<const char*>(address);
  const int64_t words = bytes / 8, step = words <= 512 ? 1 : words / 512;
  uint64_t hash = 1469598103934665603ull ^ uint64_t(bytes);
  for (int64_t i = 0; i < words; i += step) {
    uint64_t word;
    std::memcpy(&word, p + i * 8, 8);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  for (int64_t i = words * 8; i < bytes; ++i) hash = (hash ^ uint8_t(p[i])) * 1099511628211ull;
  hash ^= hash >> 32;
  return double(hash & ((uint64_t(1) << 52) - 1));
}

}  // namespace

void nethook_define_tables(nb::module_& m) {
  m.def("fold_flat", &fold_flat);
  m.def("count_odd", &count_odd);
  m.def("fold_numbers", &fold_numbers);
  m.def("follow", &follow);
  m.def("fingerprint", &fingerprint);
}
