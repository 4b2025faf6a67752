// The short way to what a plain tensor is: without a call of Python's, in a tenth of the time.
//
// torch has a C interface that stays as it is from release to release (torch/csrc/stable/c/shim.h).
// It takes the address of an at::Tensor, and has no question about dispatch keys. Where Python's
// object has its at::Tensor, and where that has its keys, is found out from tensors of which Python
// has said both, and is used only if it is so for every one of them, each of another kind. Then
// direct.py compares what this way and the long way say of many tensors. If anything is otherwise
// (another torch), this way stays off.

#pragma once

#include <nanobind/nanobind.h>

#include <cstring>

#include "native.h"

struct Asked {
  int type = -1;  // the place in CODES of native.py; -1: the kernel may not read it
  int64_t elements = 1;
};

class Direct {
 public:
  bool on = false;

  // `functions`: addresses of the functions below, in their order. `samples`: (tensor, its _cdata,
  // its dispatch keys) of tensors with different keys. `types`: a tensor of each type of CODES.
  bool learn(nanobind::tuple functions, nanobind::list samples, nanobind::list types) {
    on = false;
    if (functions.size() != 6 || types.size() != TYPES || samples.size() < 3) return false;
    uintptr_t addresses[6];
    for (size_t i = 0; i < 6; ++i)
      if (!(addresses[i] = nanobind::cast<uintptr_t>(functions[i]))) return false;
    std::memcpy(&dim_, &addresses[0], sizeof dim_);
    std::memcpy(&sizes_, &addresses[1], sizeof sizes_);
    std::memcpy(&strides_, &addresses[2], sizeof strides_);
    std::memcpy(&numel_, &addresses[3], sizeof numel_);
    std::memcpy(&type_, &addresses[4], sizeof type_);
    std::memcpy(&data_, &addresses[5], sizeof data_);
    if (!find_handle(samples) || !find_keys(samples)) return false;
    for (size_t i = 0; i < TYPES; ++i)
      if (type_(handle(nanobind::handle(types[i]).ptr()), &scalar_types_[i]) != 0) return false;
    return on = true;
  }

  uint64_t keys(PyObject* tensor) const {
    const char* held = impl(tensor);
    uint64_t found = 0;
    if (held) std::memcpy(&found, held + keys_at_, sizeof found);
    return found;
  }

  // Type, dimensions and address of a plain tensor, into a job.
  Asked described(PyObject* tensor, Job& job) const {
    Asked asked;
    void* at = handle(tensor);
    int32_t scalar_type;
    int64_t dims, *sizes, *strides;
    const void* data;
    if (type_(at, &scalar_type) || dim_(at, &dims) || sizes_(at, &sizes) ||
        strides_(at, &strides) || numel_(at, &asked.elements) || data_(at, &data))
      return Asked();
    int type = 0;
    while (type < TYPES && scalar_types_[type] != scalar_type) ++type;
    // Without memory there is nothing to read, whatever the sizes say: it was freed to save room.
    if (type == TYPES || dims > MAX_DIMS || (!data && asked.elements)) return Asked();
    job.dims = int(dims);
    for (int i = 0; i < job.dims; ++i) job.dim[i] = {sizes[i], strides[i], false};
    job.data = static_cast<const char*>(data);
    asked.type = type;
    return asked;
  }

 private:
  static constexpr size_t OBJECT = 64;  // bytes of a tensor's Python object that are looked at,
  static constexpr size_t IMPL = 176;   // and of what it holds: both are as large as that

  void* handle(PyObject* tensor) const { return reinterpret_cast<char*>(tensor) + handle_at_; }

  const char* impl(PyObject* tensor) const {
    const char* found;
    std::memcpy(&found, handle(tensor), sizeof found);
    return found;
  }

  // An at::Tensor is one word: the address that Python shows as `_cdata`.
  bool find_handle(nanobind::list samples) {
    for (handle_at_ = sizeof(PyObject); handle_at_ + 8 <= OBJECT; handle_at_ += 8) {
      bool fits = true;
      for (nanobind::handle each : samples) {
        PyObject* tensor = nanobind::handle(each[0]).ptr();
        if (Py_TYPE(tensor)->tp_basicsize < Py_ssize_t(handle_at_ + 8)) return false;
        fits &= uintptr_t(impl(tensor)) == nanobind::cast<uintptr_t>(each[1]);
      }
      if (fits) return true;
    }
    return false;
  }

  bool find_keys(nanobind::list samples) {
    int places = 0;
    size_t found = 0;
    for (keys_at_ = 0; keys_at_ + 8 <= IMPL; keys_at_ += 8) {
      bool fits = true;
      for (nanobind::handle each : samples)
        fits &= keys(nanobind::handle(each[0]).ptr()) == nanobind::cast<uint64_t>(each[2]);
      if (fits) {
        found = keys_at_;
        ++places;
      }
    }
    keys_at_ = found;
    return places == 1;
  }

  size_t handle_at_ = 0, keys_at_ = 0;
  int32_t scalar_types_[TYPES] = {};
  int32_t (*dim_)(void*, int64_t*) = nullptr;
  int32_t (*sizes_)(void*, int64_t**) = nullptr;
  int32_t (*strides_)(void*, int64_t**) = nullptr;
  int32_t (*numel_)(void*, int64_t*) = nullptr;
  int32_t (*type_)(void*, int32_t*) = nullptr;
  int32_t (*data_)(void*, const void**) = nullptr;
};
