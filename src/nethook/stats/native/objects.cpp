// Which of many objects are of certain classes. Python's own loop takes ten times as long, and all
// objects of a process with torch are some 300,000.

#include <nanobind/nanobind.h>

namespace nb = nanobind;

// Objects that are on their way from memory while one is looked at.
static constexpr Py_ssize_t AHEAD = 16;

// The objects in a list that are of exactly these classes, in its order.
static nb::list of_kinds(nb::list things, nb::set kinds) {
  nb::list found;
  PyObject* last = nullptr;  // a class that is none of them: neighbours are often alike
  for (Py_ssize_t at = 0; at < PyList_Size(things.ptr()); ++at) {
    // The objects of a process lie all over its memory: waiting for each is most of the time.
    if (at + AHEAD < PyList_Size(things.ptr()))
      __builtin_prefetch(PyList_GetItem(things.ptr(), at + AHEAD));
    PyObject* thing = PyList_GetItem(things.ptr(), at);  // borrowed
    PyObject* kind = reinterpret_cast<PyObject*>(Py_TYPE(thing));
    if (kind == last) continue;
    const int known = PySet_Contains(kinds.ptr(), kind);
    if (known < 0) throw nb::python_error();
    if (known)
      found.append(nb::handle(thing));
    else
      last = kind;
  }
  return found;
}

void nethook_define_objects(nb::module_& m) { m.def("of_kinds", &of_kinds); }
