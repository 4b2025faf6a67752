"""Where a loss was made."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from nethook.watching.losses.where import where


def test_the_line_of_the_script():
    here, line = where(), sys._getframe().f_lineno
    assert here.short == f"test_losses_where.py:{line}"
    assert here.function == "test_the_line_of_the_script"
    assert Path(here.file).samefile(__file__)


def test_torch_in_between_is_passed_over():
    found = []

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    tensor = torch.ones(1, requires_grad=True)
    tensor.register_hook(lambda grad: found.append(where()))
    Own.apply(tensor).sum().backward()
    assert found[0].file == __file__


def run(file: str, inner=None):
    """Calls `where` from a function that says it stands in `file`."""
    scope = {"call": inner or where}
    exec(compile("def f():\n    return call()", file, "exec"), scope)
    return scope["f"]


def test_a_library_counts_only_where_no_script_is():
    library = str(Path(torch.__file__).parents[1] / "trainer" / "loop.py")
    from_script = run("/project/train.py", run(library))()
    assert from_script.short == "train.py:2"
