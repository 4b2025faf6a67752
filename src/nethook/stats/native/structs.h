// What Python fills in and the native kernel reads: each of these once here and once in structs.py,
// member by member. `nethook_define_structs` says where each member lies, kernel.py takes no module
// that says otherwise, and tests/stats/native/test_structs.py compares the two.

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pass.h"

// Where the tensors of many series go: `rows.Rows`. The first three are of the sheet that is open,
// and others when the next one is; the rest stay.
struct Rows {
  double* rows;         // (series, WIDTH)
  int64_t* histograms;  // (series, BIN_COUNT)
  int64_t* seen;        // steps in which each row was measured
  double* before;       // the tensors of each row when the last step ended
  int64_t* turns;       // the tensors whose histogram was taken
  int64_t limit;        // elements of one tensor that are read for it

  double* row(int64_t at) const { return rows + at * WIDTH; }
  int64_t* histogram(int64_t at) const { return histograms + at * BIN_COUNT; }
};

// Where the tensors of one series go: `rows.Slot`.
struct Slot {
  const Rows* rows;
  int64_t row;
  int64_t binned;    // whether it has a histogram
  uint8_t* bits;     // one byte per unit
  int64_t units;     // how many there are; -1: none yet
  int64_t unit_dim;  // from the end if negative; NO_UNITS: the series has none
  double low, high;  // near the ends of its bounds; equal: it has none
};

// One line of a table of tensors that lie in one piece: `tables.Table`.
struct Line {
  int64_t address;  // 0: the line is left out
  int64_t elements, type, row;
  int64_t minus, copy;  // addresses, see `Job`; 0: none
  double factor;
  int64_t odd;    // out: elements that are not finite
  double square;  // out: the sum of the squares of the finite ones
};

// What the sheet of some rows needs before it can be packed: `rows.Rows.note_units`.
struct Closing {
  const Rows* rows;
  int64_t used;            // rows that anything can be in
  const int64_t* series;   // of each of these rows; negative: it has none yet
  const int64_t* slots;    // addresses of those slots that have unit bits
  int64_t slot_count;
  const int64_t* offsets;  // where the unit bits of a series begin in `bits`
  int64_t room;            // series that `bits` has room for
  uint8_t* bits;           // of the sheet
  int64_t clears;          // whether the slots begin anew
};

// Every member is one word of 8 bytes, so no compiler leaves a gap.
template <class T> constexpr bool is_words(int members) {
  return std::is_standard_layout_v<T> && sizeof(T) == std::size_t(members) * 8 && alignof(T) == 8;
}
static_assert(sizeof(void*) == 8 && sizeof(double) == 8);
static_assert(is_words<Rows>(6));
static_assert(is_words<Slot>(8));
static_assert(is_words<Line>(9));
static_assert(is_words<Closing>(9));

constexpr int64_t NO_UNITS = INT64_MIN;
