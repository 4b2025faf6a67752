// The native kernel, for whole windows: which series a step has measured, which units were active,
// and how a window is packed for the file.
//
// numpy does all of it, too, where there is no kernel: rows.py, and records.py, packing.py and
// levels.py of runs/format. Both give the same bytes (tests/runs/test_native_packing.py), and a run
// file does not tell which of them wrote it.
//
// Why it is here twice (benchmarks/windows.py, 1,000 series, microseconds): a window closes in 30
// to 70 and not in 180 to 270 on the training thread, which has 1 per series; and packed in 900 and
// not in 3,300 in the writer's thread, here without the interpreter's lock, of which zlib takes 770
// either way. The writer has a share of the time, so what packing takes decides how many windows a
// run has: with budget=None an MLP of 64 series wrote 2,050 windows in 2,100 steps, and 591 with
// numpy.
//
// No matrix is ever in the hands of two threads, and nothing here locks: sheet.py tells who owns
// one, and when.

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "pass.h"
#include "structs.h"

namespace nb = nanobind;

namespace {

// One more step: `seen` counts those rows whose number of tensors has grown. `before` has that
// number as it was at the end of the step before.
void count_seen(uintptr_t address, int64_t count) {
  const Rows& rows = *reinterpret_cast<const Rows*>(address);
  const double* row = rows.rows;
  for (int64_t i = 0; i < count; ++i, row += WIDTH) {
    rows.seen[i] += row[TENSORS] > rows.before[i];
    rows.before[i] = row[TENSORS];
  }
}

bool is_touched(const double* row) { return row[TENSORS] + row[SKIPPED] > 0; }

// Notes in a sheet which units were active. Returns false, and does nothing, where a row that was
// measured has no series yet, or one that the sheet has no room for.
bool note_units(uintptr_t address) {
  const Closing& c = *reinterpret_cast<const Closing*>(address);
  const auto has_place = [&](int64_t series) { return series >= 0 && series < c.room; };
  // A row is looked at only where it matters: the matrix is long out of the processor's cache.
  for (int64_t i = 0; i < c.used; ++i)
    if (!has_place(c.series[i]) && is_touched(c.rows->row(i))) return false;
  for (int64_t i = 0; i < c.slot_count; ++i) {
    const Slot& slot = *reinterpret_cast<const Slot*>(c.slots[i]);
    const int64_t series = slot.row < c.used ? c.series[slot.row] : -1;
    if (slot.units <= 0 || !has_place(series)) continue;  // the latter: no bit is set
    const int64_t room = c.offsets[series + 1] - c.offsets[series];
    uint8_t* to = c.bits + c.offsets[series];
    for (int64_t k = 0; k < slot.units && k < room; ++k) to[k] |= slot.bits[k];
    if (c.clears) std::memset(slot.bits, 0, size_t(slot.units));
  }
  return true;
}

// ------------------------------------------------------------------------------------- packing

constexpr int ROW_BLOCK = 64;  // series of one record: BLOCK of schema.py
// How a column is kept, in the order of KINDS of packing.py.
enum Kind { ZERO, SAME, U1, I1, U2, I2, U4, I4, F4, F8, F3 };

uint64_t bits_of(double x) { uint64_t b; std::memcpy(&b, &x, 8); return b; }
uint32_t bits_of(float x) { uint32_t b; std::memcpy(&b, &x, 4); return b; }

// The smallest kind that holds a column to the last bit. Bits are compared, not values, so that −0
// and NaN come back.
Kind kind_of(const double* column, int64_t rows) {
  if (rows == 0) return ZERO;
  bool same = true, whole = true, exact = true, narrow = true;
  double low = column[0], high = column[0];
  for (int64_t i = 0; i < rows; ++i) {
    const double x = column[i];
    const uint64_t bits = bits_of(x);
    same &= bits == bits_of(column[0]);
    const bool fits = x >= -0x1p62 && x <= 0x1p62;  // else the conversion is undefined
    whole &= fits && bits_of(double(int64_t(fits ? x : 0))) == bits;
    const float single = float(x);
    exact &= bits_of(double(single)) == bits;
    narrow &= (bits_of(single) & 0xff) == 0;
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  if (same) return bits_of(column[0]) == 0 ? ZERO : SAME;
  if (whole) {
    if (low >= 0 && high <= 255) return U1;
    if (low >= -128 && high <= 127) return I1;
    if (low >= 0 && high <= 65535) return U2;
    if (low >= -32768 && high <= 32767) return I2;
    if (low >= 0 && high <= 4294967295.0) return U4;
    if (low >= -2147483648.0 && high <= 2147483647.0) return I4;
  }
  return exact ? (narrow ? F3 : F4) : F8;
}

// Appends a column as numbers of type T, sorted by byte: all first bytes, then all second ones, …,
// since the high bytes of neighbours are alike, and zlib finds that. `first` bytes are left out.
template <class T>
void planes(const double* column, int64_t rows, std::vector<uint8_t>& out, int first = 0) {
  const size_t begin = out.size(), width = sizeof(T) - size_t(first);
  out.resize(begin + width * size_t(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const T x = T(column[i]);
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &x, sizeof x);  // little-endian, as every machine that torch runs on
    uint8_t* to = out.data() + begin + i;
    for (size_t k = 0; k < width; ++k) to[k * size_t(rows)] = bytes[k + size_t(first)];
  }
}

// A matrix, column by column, as packing.py has it: the head in `head`, the rest in `body`.
void pack_columns(const double* columns, int64_t rows, int count, std::vector<uint8_t>& head,
                  std::vector<uint8_t>& body) {
  head.assign({uint8_t(count), uint8_t(rows & 255), uint8_t(rows >> 8)});
  body.clear();
  for (int c = 0; c < count; ++c) {
    const double* column = columns + c * rows;
    const Kind kind = kind_of(column, rows);
    head.push_back(uint8_t(kind));
    switch (kind) {
      case ZERO: break;
      case SAME: planes<double>(column, 1, body); break;
      case U1: planes<uint8_t>(column, rows, body); break;
      case I1: planes<int8_t>(column, rows, body); break;
      case U2: planes<uint16_t>(column, rows, body); break;
      case I2: planes<int16_t>(column, rows, body); break;
      case U4: planes<uint32_t>(column, rows, body); break;
      case I4: planes<int32_t>(column, rows, body); break;
      case F4: planes<float>(column, rows, body); break;
      case F8: planes<double>(column, rows, body); break;
      case F3: planes<float>(column, rows, body, 1); break;
    }
  }
}

// Moments to 13 digits: see `_shorten` of records.py.
void shorten(double* row, double finite) {
  constexpr int DIGITS = 42;
  const double m2 = row[M2];
  if (!(m2 > 1e-290 && m2 < 1e290 && finite > 0)) return;
  int exponent;
  std::frexp(m2, &exponent);
  double quantum = std::ldexp(1.0, exponent - DIGITS - 1);
  row[M2] = std::nearbyint(m2 / quantum) * quantum;
  std::frexp(std::sqrt(m2 / (finite > 1 ? finite : 1.0)), &exponent);
  quantum = std::ldexp(1.0, exponent - DIGITS - 1);
  if (!(std::fabs(row[MEAN]) < 0x1p51 * quantum)) return;
  row[MEAN] = std::nearbyint(row[MEAN] / quantum) * quantum;
  row[MEAN_LOW] = 0;
}

nb::bytes as_bytes(const std::vector<uint8_t>& data) {
  return nb::bytes(reinterpret_cast<const char*>(data.data()), data.size());
}

// Any matrix, row by row: (head, body).
nb::tuple pack_matrix(uintptr_t matrix, int64_t rows, int count) {
  std::vector<uint8_t> head, body;
  {
    nb::gil_scoped_release release;
    const double* from = reinterpret_cast<const double*>(matrix);
    std::vector<double> columns(size_t(rows) * size_t(count));
    for (int64_t i = 0; i < rows; ++i)
      for (int c = 0; c < count; ++c) columns[size_t(c * rows + i)] = *from++;
    pack_columns(columns.data(), rows, count, head, body);
  }
  return nb::make_tuple(as_bytes(head), as_bytes(body));
}

struct Record {
  int64_t block;
  std::vector<uint8_t> head, body;
};

nb::list as_list(const std::vector<Record>& made) {
  nb::list records;
  for (const Record& record : made)
    records.append(nb::make_tuple(record.block, as_bytes(record.head), as_bytes(record.body)));
  return records;
}

// The rows of a window as records: [(block, head, body), …]. `usual` has count, binned and
// units of each series, as Basis of records.py does.
nb::list pack_rows(uintptr_t rows, uintptr_t seen, int64_t count, uintptr_t usual) {
  constexpr int COLUMNS = 2 + WIDTH;  // number in the block, fields, seen
  std::vector<Record> made;
  {
    nb::gil_scoped_release release;
    const double* all = reinterpret_cast<const double*>(rows);
    const int64_t* steps = reinterpret_cast<const int64_t*>(seen);
    const double* basis = reinterpret_cast<const double*>(usual);
    double columns[COLUMNS * ROW_BLOCK];
    for (int64_t first = 0; first < count; first += ROW_BLOCK) {
      int64_t members[ROW_BLOCK], n = 0;
      for (int64_t i = first; i < count && i < first + ROW_BLOCK; ++i)
        if (steps[i] > 0 || all[i * WIDTH + TENSORS] > 0 || all[i * WIDTH + SKIPPED] > 0)
          members[n++] = i;
      if (n == 0) continue;
      for (int64_t k = 0; k < n; ++k) {
        double row[WIDTH];
        std::memcpy(row, all + members[k] * WIDTH, sizeof row);
        shorten(row, row[COUNT] - ((row[NANS] + row[POSINF]) + row[NEGINF]));
        const double* expected = basis + members[k] * 3;
        row[COUNT] -= expected[0] * row[TENSORS];
        row[BINNED] -= expected[1] * row[TENSORS];
        row[UNITS] -= expected[2];
        columns[k] = double(members[k] - first);
        for (int f = 0; f < WIDTH; ++f) columns[(1 + f) * n + k] = row[f];
        columns[(1 + WIDTH) * n + k] = double(steps[members[k]]);
      }
      made.push_back({first / ROW_BLOCK, {}, {}});
      pack_columns(columns, n, COLUMNS, made.back().head, made.back().body);
    }
  }
  return as_list(made);
}

// ------------------------------------------------------------------------------------- overviews

constexpr int SHOWN = 8;

// What an overview shows of one row: see `shown_numbers` of levels.py.
void shown_of(const double* row, double* out) {
  const double none = __builtin_nan("");
  const double count = row[COUNT], finite = count - ((row[NANS] + row[POSINF]) + row[NEGINF]);
  const double mean = row[MEAN], variance = row[M2] / finite;
  const double values[SHOWN] = {mean, std::sqrt(variance), std::sqrt(variance + mean * mean),
                                row[MIN], row[MAX], row[ZEROS] / count, (count - finite) / count,
                                (row[NEAR_LOW] + row[NEAR_HIGH]) / row[BOUNDED]};
  for (int i = 0; i < SHOWN; ++i) out[i] = i < 5 && finite == 0 ? none : values[i];
}

// Takes the rows of a window into the course of a group: (series, 3, SHOWN), least, greatest, last.
void add_course(uintptr_t rows, int64_t count, uintptr_t course, bool first) {
  nb::gil_scoped_release release;
  const double* row = reinterpret_cast<const double*>(rows);
  double* numbers = reinterpret_cast<double*>(course);
  for (int64_t i = 0; i < count; ++i, row += WIDTH, numbers += 3 * SHOWN) {
    double shown[SHOWN];
    shown_of(row, shown);
    for (int k = 0; k < SHOWN; ++k) {
      const double x = shown[k];
      if (first) {
        numbers[k] = numbers[SHOWN + k] = numbers[2 * SHOWN + k] = x;
      } else if (x == x) {
        if (!(numbers[k] <= x)) numbers[k] = x;  // also where it was NaN
        if (!(numbers[SHOWN + k] >= x)) numbers[SHOWN + k] = x;
        numbers[2 * SHOWN + k] = x;
      }
    }
  }
}

// With 12 bits of mantissa: towards -inf (-1), +inf (1) or zero (0). See `_rounded` of levels.py.
double rounded(double x, int towards) {
  constexpr double LIMIT = 3.4028234663852886e38;
  if (std::isfinite(x)) x = x > LIMIT ? LIMIT : x < -LIMIT ? -LIMIT : x;
  const float near = float(x);
  // float rounds to the nearest; one step back where that was away from zero.
  uint32_t bits = bits_of(near) - uint32_t(std::fabs(double(near)) > std::fabs(x));
  bits &= 0xfffff800u;
  float kept;
  std::memcpy(&kept, &bits, 4);
  if ((towards < 0 && double(kept) > x) || (towards > 0 && double(kept) < x)) {
    bits += 0x800u;  // towards zero was the wrong way
    std::memcpy(&kept, &bits, 4);
  }
  return double(kept);
}

// The course of a group as records: [(block, head, body), …]; see `Group.pack`.
nb::list pack_course(uintptr_t course, int64_t count) {
  constexpr int COLUMNS = 1 + 3 * SHOWN;
  std::vector<Record> made;
  {
    nb::gil_scoped_release release;
    const double* all = reinterpret_cast<const double*>(course);
    std::vector<double> columns(COLUMNS * ROW_BLOCK);
    for (int64_t first = 0; first < count; first += ROW_BLOCK) {
      int64_t members[ROW_BLOCK], n = 0;
      for (int64_t i = first; i < count && i < first + ROW_BLOCK; ++i) {
        bool there = false;
        const double* row = all + i * 3 * SHOWN;
        for (int k = 0; k < 3 * SHOWN; ++k) there |= row[k] == row[k];
        if (there) members[n++] = i;
      }
      if (n == 0) continue;
      for (int64_t i = 0; i < n; ++i) {
        const double* row = all + members[i] * 3 * SHOWN;
        columns[size_t(i)] = double(members[i] - first);
        for (int k = 0; k < SHOWN; ++k)
          for (int which = 0; which < 3; ++which)
            columns[size_t((1 + 3 * k + which) * n + i)] =
                rounded(row[which * SHOWN + k], which == 0 ? -1 : which == 1 ? 1 : 0);
      }
      made.push_back({first / ROW_BLOCK, {}, {}});
      pack_columns(columns.data(), n, COLUMNS, made.back().head, made.back().body);
    }
  }
  return as_list(made);
}

}  // namespace

void nethook_define_windows(nb::module_& m) {
  m.def("count_seen", &count_seen);
  m.def("note_units", &note_units);
  m.def("pack_matrix", &pack_matrix);
  m.def("pack_rows", &pack_rows);
  m.def("add_course", &add_course);
  m.def("pack_course", &pack_course);
}
