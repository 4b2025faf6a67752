// The native kernel: what Python calls for one tensor, and the choice of the instruction set.
//
// `fold` is given addresses and shapes. `fold_tensor` is given the tensor and asks it for these by
// itself, through Python's own interface: no part of torch is linked, and a call takes a third of
// the time. See native.py and rows.py.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "pass.h"
#include "structs.h"
#include "tensor.h"

namespace nb = nanobind;

void nethook_pass_baseline(Job&, int);
#ifdef NETHOOK_X86
void nethook_pass_avx2(Job&, int);
void nethook_pass_avx512(Job&, int);
#endif

void (*nethook_run)(Job&, int) = nethook_pass_baseline;
void nethook_define_structs(nb::module_& m);  // structs.cpp
void nethook_define_tables(nb::module_& m);   // tables.cpp
void nethook_define_windows(nb::module_& m);  // windows.cpp
void nethook_define_objects(nb::module_& m);  // objects.cpp

Asking asking;

namespace {

std::string chosen = "baseline";

// Takes an instruction set, if this processor has it.
bool choose(const std::string& name) {
  if (name == "baseline") nethook_run = nethook_pass_baseline;
#ifdef NETHOOK_X86
  else if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    nethook_run = nethook_pass_avx2;
  else if (name == "avx512" && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl"))
    nethook_run = nethook_pass_avx512;
#endif
  else return false;
  chosen = name;
  return true;
}

constexpr int64_t SMALL = 4096;  // below it, letting go of the interpreter costs more than it gives

// The rest of a job whose data and dimensions are known; folds it, and returns how many elements
// are not finite. `turn` counts the tensors whose histogram was taken, `limit` is how many elements
// of one are read for it.
int64_t fold_job(Job& job, int type, int64_t elements, double* row, int64_t* histogram,
                 int64_t* turn, int64_t limit, uint8_t* bits, int unit, double low, double high,
                 double factor) {
  job.row = row;
  job.histogram = histogram;
  job.step = histogram_step(job, elements, limit);  // the next starts one element further
  job.phase = histogram ? (*turn)++ % job.step : 0;
  job.bits = bits;
  job.units = bits ? job.dim[unit].size : 0;
  job.bounded = low < high;
  job.low = low;
  job.high = high;
  job.factor = factor;
  if (elements >= SMALL) {
    nb::gil_scoped_release release;
    nethook_run(job, type);
  } else if (elements) {  // of an empty tensor the address may be null
    nethook_run(job, type);
  }
  job.row[TENSORS] += 1;
  if (bits) {
    int64_t active = 0;
    for (int64_t i = 0; i < job.units; ++i) active += job.bits[i];
    job.row[UNITS] = double(job.units);
    job.row[ACTIVE] = double(active);
  }
  return job.odd;
}

// Folds a tensor into a row. Addresses come as numbers, of tensors and arrays that the caller
// holds.
int64_t fold(uintptr_t storage, int64_t offset, int type, nb::tuple shape, nb::tuple strides,
             uintptr_t row, uintptr_t histogram, uintptr_t turn, int64_t limit, uintptr_t bits,
             int unit, double low, double high, double factor) {
  Job job;
  job.dims = int(shape.size());
  if (job.dims > MAX_DIMS || size_t(job.dims) != strides.size() || type < 0 || type >= TYPES ||
      limit < 1 || (bits && (unit < 0 || unit >= job.dims)))
    throw nb::value_error("the native kernel was given what it does not take");
  int64_t elements = 1;
  for (int i = 0; i < job.dims; ++i) {
    job.dim[i] = {nb::cast<int64_t>(shape[i]), nb::cast<int64_t>(strides[i]), bits && i == unit};
    elements *= job.dim[i].size;
  }
  job.data = reinterpret_cast<const char*>(storage + uintptr_t(offset * SIZES[type]));
  return fold_job(job, type, elements, reinterpret_cast<double*>(row),
                  reinterpret_cast<int64_t*>(histogram), reinterpret_cast<int64_t*>(turn), limit,
                  reinterpret_cast<uint8_t*>(bits), unit, low, high, factor);
}

constexpr int64_t NOT_PLAIN = -1, OTHER_UNITS = -2;

// Folds a tensor into a slot; returns how many elements are not finite. NOT_PLAIN: it was not
// read, for the kernel may not; OTHER_UNITS: it was not, for the slot must be fitted to it first.
int64_t fold_tensor(uintptr_t address, nb::handle tensor, double factor) {
  const Slot& slot = *reinterpret_cast<const Slot*>(address);
  Job job;
  const Asked asked = asking.tensor(tensor.ptr(), job);
  if (asked.type < 0) return NOT_PLAIN;
  uint8_t* bits = nullptr;
  int64_t unit = 0;
  if (slot.unit_dim != NO_UNITS) {
    unit = slot.unit_dim < 0 ? slot.unit_dim + job.dims : slot.unit_dim;
    // Else this tensor has no such dimension, or one that was expanded beyond all use.
    if (unit >= 0 && unit < job.dims && job.dim[unit].size <= MOST_UNITS) {
      if (job.dim[unit].size != slot.units) return OTHER_UNITS;
      bits = slot.units ? slot.bits : nullptr;
      job.dim[unit].unit = bits != nullptr;
    }
  }
  const Rows& rows = *slot.rows;
  return fold_job(job, asked.type, asked.elements, rows.row(slot.row),
                  slot.binned ? rows.histogram(slot.row) : nullptr, rows.turns + slot.row,
                  rows.limit, bits, int(unit), slot.low, slot.high, factor);
}

// For tests: (type, address, elements, sizes, strides) of a tensor; None where it is not plain.
nb::object describe(nb::handle tensor) {
  Job job;
  const Asked asked = asking.tensor(tensor.ptr(), job);
  if (asked.type < 0) return nb::none();
  nb::list sizes, strides;
  for (int i = 0; i < job.dims; ++i) {
    sizes.append(job.dim[i].size);
    strides.append(job.dim[i].stride);
  }
  return nb::make_tuple(asked.type, uintptr_t(job.data), asked.elements, sizes, strides);
}

// The value of a tensor of one number, of float32 or float64; None where it is something else.
nb::object number_of(nb::handle tensor) {
  Job job;
  const Asked asked = asking.tensor(tensor.ptr(), job);
  if (asked.type < 0 || job.dims) return nb::none();
  if (asked.type == FLOAT32) return nb::float_(*reinterpret_cast<const float*>(job.data));
  if (asked.type == FLOAT64) return nb::float_(*reinterpret_cast<const double*>(job.data));
  return nb::none();
}

// The bytes of memory that a plain tensor shows, however often; -1 where it is not plain.
int64_t bytes_of(nb::handle tensor) {
  Job job;
  const Asked asked = asking.tensor(tensor.ptr(), job);
  if (asked.type < 0) return -1;
  int64_t stored = asked.elements ? 1 : 0;
  for (int i = 0; i < job.dims && stored; ++i) stored += (job.dim[i].size - 1) * job.dim[i].stride;
  return (stored < asked.elements ? stored : asked.elements) * SIZES[asked.type];
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "The native kernel of nethook.stats. Call it through nethook.stats.native.binding.";
  for (const char* name : {"avx512", "avx2", "baseline"})
    if (choose(name)) break;
  m.def("fold", &fold);
  m.def("fold_tensor", &fold_tensor);
  m.def("choose", &choose);
  m.def("instruction_set", [] { return chosen; });
  m.def("learn_torch", [](nb::dict known) { asking.learn(known); });
  m.def("describe", &describe);
  m.def("number_of", &number_of);
  m.def("bytes_of", &bytes_of);
  nethook_define_structs(m);
  nethook_define_tables(m);
  nethook_define_windows(m);
  nethook_define_objects(m);
  m.attr("WIDTH") = int(WIDTH);
  m.attr("MOST_UNITS") = MOST_UNITS;
  m.attr("VERSION") = 8;  // of these functions; kernel.py takes no other
}
