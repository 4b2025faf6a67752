// The native kernel, for many tensors in one call: tables of tensors that lie in one piece, and
// single numbers. tables.py tells what they are for, and does the same without this file.

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstring>

#include "pass.h"
#include "structs.h"
#include "tensor.h"

namespace nb = nanobind;

extern void (*nethook_run)(Job&, int);  // the pass for the instruction set that was chosen

namespace {

// Whether a tensor has so many elements, and they lie in one piece, one row after the other.
bool lies_like(const Job& job, const Asked& asked, int64_t elements) {
  if (asked.elements != elements) return false;
  int64_t stride = 1;
  for (int i = job.dims - 1; i >= 0; --i) {
    if (job.dim[i].size != 1 && job.dim[i].stride != stride) return false;
    stride *= job.dim[i].size;
  }
  return true;
}

// What `fold_flat` has found in all lines with an address.
struct Folded {
  int64_t odd = 0;    // elements that are not finite
  double square = 0;  // the sum of the squares of the finite ones
  int64_t zeros = 0;  // lines that are zero throughout
};

// Folds the tensors of a table, each into its row; a line without an address is left out. `moved`,
// where it is not null, counts for each line the times that it was not zero, and then all times.
Folded fold_lines(uintptr_t table, int64_t lines, const Rows& into, uintptr_t moved) {
  nb::gil_scoped_release release;
  Line* line = reinterpret_cast<Line*>(table);
  int64_t* moves = reinterpret_cast<int64_t*>(moved);
  Folded all;
  for (Line* end = line + lines; line < end; ++line) {
    line->odd = 0;
    line->square = 0;
    if (!line->address || line->type < 0 || line->type >= TYPES || into.limit < 1) continue;
    Job job;
    job.dims = 1;
    job.dim[0] = {line->elements, 1, false};
    job.data = reinterpret_cast<const char*>(line->address);
    job.row = into.row(line->row);
    job.histogram = into.histogram(line->row);
    job.step = histogram_step(job, line->elements, into.limit);
    job.phase = into.turns[line->row]++ % job.step;
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
    all.odd += job.odd;
    all.square += job.square;
    all.zeros += job.square == 0;
    if (moves) {
      const int64_t at = lines - (end - line);
      moves[at] += job.square > 0;
      moves[lines + at] += 1;
    }
  }
  return all;
}

nb::tuple fold_flat(uintptr_t table, int64_t lines, uintptr_t rows, uintptr_t moved) {
  const Folded all = fold_lines(table, lines, *reinterpret_cast<const Rows*>(rows), moved);
  return nb::make_tuple(all.odd, all.square, all.zeros);
}

// How many tensors of a table have an element that is not finite (of floats and doubles alone),
// without measuring anything. Of a tensor with more than `most` elements every so manieth is looked
// at, another one each turn: where a gradient is not finite, all of a row of it is, as a rule.
template <class T> bool has_odd(const T* p, int64_t elements, int64_t step, int64_t start) {
  // x * 0 is 0 for every finite x, and NaN for all else.
  T sums[16] = {};
  int64_t i = start;
  if (step == 1)
    for (; i + 16 <= elements; i += 16)
      for (int k = 0; k < 16; ++k) sums[k] += p[i + k] * T(0);
  for (; i < elements; i += step) sums[0] += p[i] * T(0);
  bool odd = false;
  for (const T sum : sums) odd |= sum != 0;
  return odd;
}

int64_t count_odd(uintptr_t table, int64_t lines, int64_t most, int64_t turn) {
  Line* line = reinterpret_cast<Line*>(table);
  int64_t found = 0;
  for (Line* end = line + lines; line < end; ++line) {
    line->odd = 0;
    if (!line->address) continue;
    const int64_t step = line->elements <= most ? 1 : (line->elements / most) | 1;
    if (line->type == FLOAT32)
      line->odd = has_odd(reinterpret_cast<const float*>(line->address), line->elements, step,
                          turn % step);
    else if (line->type == FLOAT64)
      line->odd = has_odd(reinterpret_cast<const double*>(line->address), line->elements, step,
                          turn % step);
    found += line->odd;
  }
  return found;
}

// Folds one number into a row.
void fold_number(double x, double* row) {
  const double before = row[COUNT] - row[NANS] - row[POSINF] - row[NEGINF];
  row[TENSORS] += 1;
  row[COUNT] += 1;
  row[POSINF] += x == HUGE_VAL;
  row[NEGINF] += x == -HUGE_VAL;
  row[ZEROS] += x == 0;
  if (!std::isfinite(x)) return;
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

// Folds one number into each row of a list; a NaN is a number that was not there.
void fold_numbers(uintptr_t numbers, uintptr_t places, int64_t count, uintptr_t rows) {
  const double* number = reinterpret_cast<const double*>(numbers);
  const int64_t* place = reinterpret_cast<const int64_t*>(places);
  for (int64_t i = 0; i < count; ++i)
    if (number[i] == number[i])
      fold_number(number[i], reinterpret_cast<const Rows*>(rows)->row(place[i]));
}

// Folds a number of Python's into its row, unless it is None or NaN.
void fold_one(PyObject* number, double* row) {
  if (number == Py_None) return;
  const double x = PyFloat_AsDouble(number);
  if (x == -1.0 && PyErr_Occurred()) throw nb::python_error();
  if (x == x) fold_number(x, row);
}

// The same as `fold_numbers` for a list of Python's; None is a number that was not there.
void fold_list(nb::list numbers, uintptr_t places, uintptr_t rows) {
  const int64_t* place = reinterpret_cast<const int64_t*>(places);
  const Rows& into = *reinterpret_cast<const Rows*>(rows);
  for (size_t i = 0; i < numbers.size(); ++i) fold_one(numbers[i].ptr(), into.row(place[i]));
}

// The same for the numbers of several steps; each row that had one was seen in that step, which is
// what `count_seen` would find.
void fold_lists(nb::list steps, uintptr_t places, uintptr_t rows) {
  const int64_t* place = reinterpret_cast<const int64_t*>(places);
  const Rows& into = *reinterpret_cast<const Rows*>(rows);
  for (size_t i = 0; i < steps.size(); ++i) {
    nb::list numbers = nb::cast<nb::list>(steps[i]);
    for (size_t k = 0; k < numbers.size(); ++k) {
      double* row = into.row(place[k]);
      const double had = row[TENSORS];
      fold_one(numbers[k].ptr(), row);
      if (row[TENSORS] == had) continue;
      into.before[place[k]] = row[TENSORS];
      into.seen[place[k]] += 1;
    }
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
    if (!line->address || (line->type != FLOAT32 && line->type != FLOAT64)) continue;
    const int64_t step = line->elements <= width ? 1 : line->elements / width;
    double dot = 0, old_square = 0, new_square = 0;
    for (int64_t k = 0; k < width && k * step < line->elements; ++k) {
      const double x = line->type == FLOAT32
                           ? reinterpret_cast<const float*>(line->address)[k * step]
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

// A number of 52 bits that tensors with the same bytes share. Up to 4096 words of 8 bytes are all
// read; of more, one in each of 4096 stretches, at a place in it that differs from stretch to
// stretch. Words at equal distances would all lie in the black border of some images.
double fingerprint(uintptr_t address, int64_t bytes) {
  const char* p = reinterpret_cast<const char*>(address);
  const int64_t words = bytes / 8, step = words <= 4096 ? 1 : words / 4096;
  uint64_t hash = 1469598103934665603ull ^ uint64_t(bytes);
  for (int64_t i = 0; i < words; i += step) {
    const int64_t left = words - i < step ? words - i : step;
    const int64_t at = i + int64_t((uint64_t(i) * 0x9E3779B97F4A7C15ull >> 33) % uint64_t(left));
    uint64_t word;
    std::memcpy(&word, p + at * 8, 8);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  for (int64_t i = words * 8; i < bytes; ++i) hash = (hash ^ uint8_t(p[i])) * 1099511628211ull;
  hash ^= hash >> 32;
  return double(hash & ((uint64_t(1) << 52) - 1));
}

// Where the tensors of a list lie now, into the lines of a table. Returns how many are not what the
// line says: of another number of elements, or not in one piece; those get an address of 0.
int64_t find(uintptr_t table, nb::list tensors) {
  Line* line = reinterpret_cast<Line*>(table);
  int64_t changed = 0;
  for (size_t i = 0; i < tensors.size(); ++i, ++line) {
    Job job;
    const Asked asked = asking.tensor(tensors[i].ptr(), job);
    const bool fits = asked.type == line->type && lies_like(job, asked, line->elements);
    line->address = fits ? int64_t(job.data) : 0;
    changed += !fits;
  }
  return changed;
}

// Asks a parameter for its gradient; whether there is one. The line has its address if it is of
// the line's type and size, and lies in one piece. `ask` is how: see tensor.h.
bool find_grad(Line* line, PyObject* parameter, Asked (Asking::*ask)(PyObject*, Job&) const) {
  line->address = 0;
  PyObject* grad = asking.grad(parameter);
  const bool there = grad != Py_None;
  if (there) {
    Job job;
    Asked asked;
    try {
      asked = (asking.*ask)(grad, job);
    } catch (...) {
      Py_DECREF(grad);
      throw;
    }
    if (asked.type == line->type && lies_like(job, asked, line->elements))
      line->address = int64_t(job.data);
  }
  Py_DECREF(grad);  // the parameter holds it
  return there;
}

// The same for the gradients of a list of parameters. Where there is none the address is 0, where
// there is one of another kind it is 0 too, and its place goes to `others`; returns how many.
// `counts`, where it is not null, counts for each line the times that it had an address.
int64_t find_grads(uintptr_t table, nb::list parameters, uintptr_t others, uintptr_t counts) {
  Line* line = reinterpret_cast<Line*>(table);
  int64_t* other = reinterpret_cast<int64_t*>(others);
  int64_t count = 0;
  for (size_t i = 0; i < parameters.size(); ++i, ++line) {
    const bool there = find_grad(line, parameters[i].ptr(), &Asking::tensor);
    if (there && !line->address) other[count++] = int64_t(i);
    if (counts) reinterpret_cast<int64_t*>(counts)[i] += line->address != 0;
  }
  return count;
}

// Of the first of these parameters, each with its line, that has a gradient the kernel can read:
// whether an element of it is not finite. See `count_odd`.
bool probe(uintptr_t table, nb::list parameters, nb::list lines, int64_t most, int64_t turn) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    Line* line = reinterpret_cast<Line*>(table) + nb::cast<int64_t>(lines[i]);
    find_grad(line, parameters[i].ptr(), &Asking::readable_grad);
    if (line->address) return count_odd(reinterpret_cast<uintptr_t>(line), 1, most, turn) > 0;
  }
  return false;
}

}  // namespace

void nethook_define_tables(nb::module_& m) {
  m.def("fold_flat", &fold_flat);
  m.def("count_odd", &count_odd);
  m.def("find", &find);
  m.def("find_grads", &find_grads);
  m.def("probe", &probe);
  m.def("fold_numbers", &fold_numbers);
  m.def("fold_list", &fold_list);
  m.def("fold_lists", &fold_lists);
  m.def("follow", &follow);
  m.def("fingerprint", &fingerprint);
}
