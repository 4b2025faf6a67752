"""Disks that fail: a small one that is really mounted, and a library that makes writes fail."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "2m") -> Iterator[Path]:
    """A disk of two megabytes; only root can make one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# Preloaded into a process. `fail_with(number, after)` makes every write to a file whose path has
# "faulty" in it fail with an error number, after this many writes that succeed; 0 ends that.
FAULTY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static int error_number = 0;
static long left = 0;
void fail_with(int number, long after) { error_number = number; left = after; }
static int fails_at(const char *path) {
  if (!error_number || !strstr(path, "faulty")) return 0;
  if (left > 0) { left--; return 0; }
  errno = error_number;
  return 1;
}
static int fails(int fd) {
  if (!error_number) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return fails_at(path);
}
#define REAL(name, type) static type real; if (!real) real = (type)dlsym(RTLD_NEXT, #name)
typedef ssize_t (*pwrite_t)(int, const void *, size_t, off_t);
typedef ssize_t (*write_t)(int, const void *, size_t);
typedef int (*truncate_t)(int, off_t);
typedef int (*open_t)(const char *, int, ...);
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite, pwrite_t); return fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite64, pwrite_t); return fails(fd) ? -1 : real(fd, data, size, at);
}
ssize_t write(int fd, const void *data, size_t size) {
  REAL(write, write_t); return fails(fd) ? -1 : real(fd, data, size);
}
int ftruncate(int fd, off_t at) {
  REAL(ftruncate, truncate_t); return fails(fd) ? -1 : real(fd, at);
}
int ftruncate64(int fd, off_t at) {
  REAL(ftruncate64, truncate_t); return fails(fd) ? -1 : real(fd, at);
}
#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name, open_t); va_list rest; va_start(rest, flags); \
    int mode = va_arg(rest, int); va_end(rest); \
    return (flags & O_CREAT) && fails_at(path) ? -1 : real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
"""


@functools.cache
def faulty_library() -> Path:
    """The library, compiled; a test that needs it is skipped where that cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("failing writes are made with a C compiler, on Linux")
    folder = Path(tempfile.mkdtemp(prefix="nethook-test-"))
    (folder / "writes.c").write_text(FAULTY)
    library = folder / "writes.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, folder / "writes.c", "-ldl"], check=True
    )
    return library
