"""The native kernel as a module: it is taken only where it is of this version."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import nethook.stats.native
from nethook.hooks.process.optimizers import of_kinds
from nethook.stats.fields import WIDTH
from nethook.stats.native import kernel, structs

LAYOUTS = {name: structs.layout(struct) for name, struct in structs.STRUCTS.items()}
SOURCE = Path(kernel.__file__).with_name("binding.cpp").read_text(encoding="utf-8")


def reloaded(monkeypatch, module):
    """What is taken where the built module is this one; None: it cannot be imported."""
    monkeypatch.setitem(sys.modules, "nethook.stats.native._native", module)
    if module is None:
        monkeypatch.delattr(nethook.stats.native, "_native", raising=False)
    else:
        monkeypatch.setattr(nethook.stats.native, "_native", module, raising=False)
    spec = importlib.util.find_spec("nethook.stats.native.kernel")
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again.functions


def built(**attributes):
    return types.SimpleNamespace(**attributes)


def version():
    (number,) = re.findall(r'attr\("VERSION"\) = (\d+)', SOURCE)
    return int(number)


def test_a_module_of_this_version_is_taken(monkeypatch):
    module = built(WIDTH=WIDTH, VERSION=version(), STRUCTS=LAYOUTS)
    assert reloaded(monkeypatch, module) is module


@pytest.mark.parametrize(
    "other",
    [
        built(WIDTH=WIDTH + 1, VERSION=version(), STRUCTS=LAYOUTS),
        built(WIDTH=WIDTH, VERSION=1, STRUCTS=LAYOUTS),
        built(WIDTH=WIDTH, STRUCTS=LAYOUTS),
        built(WIDTH=WIDTH, VERSION=version(), STRUCTS={**LAYOUTS, "Slot": (8, {})}),
        built(WIDTH=WIDTH, VERSION=version()),
    ],
)
def test_a_module_left_over_from_another_version_is_not(monkeypatch, other):
    assert reloaded(monkeypatch, other) is None


def test_without_a_module_there_are_no_functions(monkeypatch):
    assert reloaded(monkeypatch, None) is None


def test_it_is_loaded_without_torch():
    program = "import sys, nethook.stats.native.kernel; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.skipif(kernel.functions is None, reason="the native kernel was not built here")
def test_objects_of_a_class_are_those_that_pythons_own_loop_finds():
    class Base:
        pass

    class Derived(Base):
        pass

    made = [Base(), Base(), Derived(), 1, Base, "a", None, Derived(), Derived(), Base()]
    for things in (made, made[::-1], made * 2, []):
        for kinds in ({Base}, {Derived}, {Base, Derived}, {type, str}, set()):
            found = kernel.functions.of_kinds(things, kinds)
            assert [id(thing) for thing in found] == [id(one) for one in of_kinds(things, kinds)]


@pytest.mark.skipif(kernel.functions is None, reason="the native kernel was not built here")
def test_objects_of_a_class_are_looked_for_in_a_list_alone():
    with pytest.raises(TypeError):
        kernel.functions.of_kinds((1, 2), {int})
    with pytest.raises(TypeError):
        kernel.functions.of_kinds([1, 2], [int])

    class Unhashed(type):
        __hash__ = None

    with pytest.raises(TypeError, match="unhashable"):
        kernel.functions.of_kinds([Unhashed("Odd", (), {})()], {int})
