// What the native kernel asks a tensor by itself, as guard.py and native.py would: which dispatch
// keys it carries, its type, where it lies. It asks through Python's interface, with the functions
// of torch that `learn` was given.

#pragma once

#include <nanobind/nanobind.h>

#include "pass.h"

struct Asked {
  int type = -1;  // the place in CODES of native.py; -1: the kernel may not read it
  int64_t elements = 1;
};

class Asking {
 public:
  // `known` has what native.py puts together: types, functions, keys and dtypes of torch.
  void learn(nanobind::dict known) {
    known_ = known.release().ptr();  // for as long as the process lives
    tensor_ = item("Tensor");
    parameter_ = item("Parameter");
    data_address_ = item("data_address");
    keys_ = item("keys");
    PyObject* plain = item("plain");
    plain_count_ = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(plain) && i < 4; ++i)
      plain_[plain_count_++] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(plain, i));
    PyObject* types = item("types");
    for (int i = 0; i < TYPES; ++i) types_[i] = PyTuple_GetItem(types, i);
    raw_repr_ = PyUnicode_InternFromString("raw_repr");
    dtype_ = PyUnicode_InternFromString("dtype");
    shape_ = PyUnicode_InternFromString("shape");
    stride_ = PyUnicode_InternFromString("stride");
    offset_ = PyUnicode_InternFromString("storage_offset");
    grad_ = PyUnicode_InternFromString("grad");
    layout_ = PyUnicode_InternFromString("layout");
    is_cpu_ = PyUnicode_InternFromString("is_cpu");
    strided_ = item("strided");
    is_contiguous_ = PyUnicode_InternFromString("is_contiguous");
    numel_ = PyUnicode_InternFromString("numel");
  }

  // Whether the kernel may read the tensor's memory: see guard.py. Raises what torch raises.
  bool is_plain(PyObject* tensor) const {
    PyObject* kind = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    if (kind != tensor_ && kind != parameter_) return false;
    PyObject* set = checked(call(keys_, tensor));
    PyObject* raw = ask(set, raw_repr_);
    Py_DECREF(set);
    const uint64_t keys = PyLong_AsUnsignedLongLong(checked(raw));
    Py_DECREF(raw);
    return is_plain_set(keys);
  }

  // Whether memory of the gradient of a plain parameter may be read to see if all of it is finite.
  // Such a gradient has the parameter's device and kind of number, and may be sparse; a bit that
  // says that it is to be negated changes nothing.
  bool is_readable_grad(PyObject* grad) const {
    if (reinterpret_cast<PyObject*>(Py_TYPE(grad)) != tensor_) return false;
    PyObject* layout = checked(PyObject_GetAttr(grad, layout_));
    Py_DECREF(layout);  // there is one of each, for ever
    if (layout != strided_) return false;
    PyObject* on_cpu = checked(PyObject_GetAttr(grad, is_cpu_));
    Py_DECREF(on_cpu);
    return on_cpu == Py_True;
  }

  // Type, dimensions and address of a plain tensor, into a job; type -1 where it is not plain.
  Asked tensor(PyObject* tensor, Job& job) const {
    if (!known_ || !is_plain(tensor)) return Asked();
    return described(tensor, job);
  }

  // The same for a gradient of which only is asked whether it is finite, in every step: one that
  // lies in one piece has one dimension.
  Asked readable_grad(PyObject* grad, Job& job) const {
    if (!known_ || !is_readable_grad(grad)) return tensor(grad, job);
    PyObject* flat = checked(ask(grad, is_contiguous_));
    Py_DECREF(flat);
    if (flat != Py_True) return tensor(grad, job);
    Asked asked;
    const int type = type_of(grad);
    if (type == TYPES) return asked;
    asked.type = type;
    asked.elements = int64_t(number(ask(grad, numel_)));
    job.dims = 1;
    job.dim[0] = {asked.elements, 1, false};
    job.data = reinterpret_cast<const char*>(start(grad, type));
    if (!job.data && asked.elements) asked.type = -1;
    return asked;
  }

  Asked described(PyObject* tensor, Job& job) const {
    Asked asked;
    const int type = type_of(tensor);
    if (type == TYPES) return asked;
    PyObject* shape = checked(PyObject_GetAttr(tensor, shape_));
    PyObject* stride = ask(tensor, stride_);
    if (!stride) Py_DECREF(shape);
    checked(stride);
    job.dims = int(PyTuple_Size(shape));
    if (job.dims <= MAX_DIMS) asked.type = type;
    for (int i = 0; i < job.dims && i < MAX_DIMS; ++i) {
      job.dim[i] = {PyLong_AsLongLong(PyTuple_GetItem(shape, i)),
                    PyLong_AsLongLong(PyTuple_GetItem(stride, i)), false};
      asked.elements *= job.dim[i].size;
    }
    Py_DECREF(shape);
    Py_DECREF(stride);
    job.data = reinterpret_cast<const char*>(start(tensor, type));
    // Without memory there is nothing to read, whatever the sizes say.
    if (!job.data && asked.elements) asked.type = -1;
    return asked;
  }

  // The address of the first element, to be read only: `data_ptr()` would make a copy-on-write
  // tensor a real copy.
  uintptr_t start(PyObject* tensor, int type) const {
    const uintptr_t storage = number(call(data_address_, tensor));
    if (!storage) return 0;
    const int64_t offset = int64_t(number(ask(tensor, offset_)));
    return storage + uintptr_t(offset * SIZES[type]);
  }

  // The `.grad` of a parameter: a new reference, or None.
  PyObject* grad(PyObject* parameter) const { return checked(PyObject_GetAttr(parameter, grad_)); }

 private:
  bool is_plain_set(uint64_t keys) const {
    for (int i = 0; i < plain_count_; ++i)
      if (keys == plain_[i]) return true;
    return false;
  }

  // The place of its dtype in CODES of native.py; TYPES where that has none.
  int type_of(PyObject* tensor) const {
    PyObject* dtype = checked(PyObject_GetAttr(tensor, dtype_));
    Py_DECREF(dtype);  // there is one of each, for ever
    int type = 0;
    while (type < TYPES && types_[type] != dtype) ++type;
    return type;
  }

  PyObject* item(const char* name) const {
    PyObject* found = PyDict_GetItemString(known_, name);
    if (!found) throw nanobind::key_error(name);
    return found;
  }

  // Only what the stable interface of Python has: one build serves 3.12 and every later version.
  static PyObject* call(PyObject* function, PyObject* argument) {
    PyObject* arguments[] = {nullptr, argument};
    const size_t count = 1 | PY_VECTORCALL_ARGUMENTS_OFFSET;
    return PyObject_Vectorcall(function, arguments + 1, count, nullptr);
  }

  static PyObject* ask(PyObject* object, PyObject* method) {
    PyObject* arguments[] = {nullptr, object};
    return PyObject_VectorcallMethod(method, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                     nullptr);
  }

  static PyObject* checked(PyObject* made) {
    if (!made) throw nanobind::python_error();
    return made;
  }

  static uintptr_t number(PyObject* made) {
    const uintptr_t value = uintptr_t(PyLong_AsUnsignedLongLong(checked(made)));
    Py_DECREF(made);
    return value;
  }

  PyObject *known_ = nullptr, *tensor_, *parameter_, *data_address_, *keys_;
  PyObject *raw_repr_, *dtype_, *shape_, *stride_, *offset_, *grad_, *layout_, *is_cpu_, *strided_;
  PyObject *is_contiguous_, *numel_;
  PyObject* types_[TYPES];
  uint64_t plain_[4];
  int plain_count_ = 0;
};

extern Asking asking;  // binding.cpp
