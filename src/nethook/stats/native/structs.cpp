// The native kernel tells how it reads what Python fills in: STRUCTS, as `layout` of structs.py has
// it.

#include "structs.h"

#include <nanobind/nanobind.h>

#include <cstddef>

namespace nb = nanobind;

#define MEMBER(type, name) members[#name] = nb::make_tuple(offsetof(type, name), sizeof(type::name))

void nethook_define_structs(nb::module_& m) {
  nb::dict structs;
  {
    nb::dict members;
    MEMBER(Rows, rows);
    MEMBER(Rows, histograms);
    MEMBER(Rows, seen);
    MEMBER(Rows, before);
    MEMBER(Rows, turns);
    MEMBER(Rows, limit);
    structs["Rows"] = nb::make_tuple(sizeof(Rows), members);
  }
  {
    nb::dict members;
    MEMBER(Slot, rows);
    MEMBER(Slot, row);
    MEMBER(Slot, binned);
    MEMBER(Slot, bits);
    MEMBER(Slot, units);
    MEMBER(Slot, unit_dim);
    MEMBER(Slot, low);
    MEMBER(Slot, high);
    structs["Slot"] = nb::make_tuple(sizeof(Slot), members);
  }
  {
    nb::dict members;
    MEMBER(Line, address);
    MEMBER(Line, elements);
    MEMBER(Line, type);
    MEMBER(Line, row);
    MEMBER(Line, minus);
    MEMBER(Line, copy);
    MEMBER(Line, factor);
    MEMBER(Line, odd);
    MEMBER(Line, square);
    structs["Line"] = nb::make_tuple(sizeof(Line), members);
  }
  {
    nb::dict members;
    MEMBER(Closing, rows);
    MEMBER(Closing, used);
    MEMBER(Closing, series);
    MEMBER(Closing, slots);
    MEMBER(Closing, slot_count);
    MEMBER(Closing, offsets);
    MEMBER(Closing, room);
    MEMBER(Closing, bits);
    MEMBER(Closing, clears);
    structs["Closing"] = nb::make_tuple(sizeof(Closing), members);
  }
  m.attr("STRUCTS") = structs;
}
