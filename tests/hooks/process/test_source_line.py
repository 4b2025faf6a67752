"""The line of the user's code that runs now."""

import sys
from pathlib import Path

import torch
from torch import nn

from nethook.hooks.process.source_line import LastLine, Source, line_of_model, line_of_script


class Looks(nn.Module):
    def forward(self, x):
        self.found = line_of_model()  # here
        return x


def test_it_is_the_innermost_line_outside_torch() -> None:
    line = sys._getframe().f_lineno + 1
    assert line_of_model() == Source(__file__, line)
    model = nn.Sequential(Looks())
    model(torch.ones(1))
    assert model[0].found.file == __file__
    assert str(model[0].found).startswith("test_source_line.py:")


def test_below_the_frame_that_stops_it_is_a_line_of_torch_or_none() -> None:
    class Marked(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(line_of_model(stop))
            return function(*args, **(kwargs or {}))

    # A mode written here is the user's code; only frames inside the call may be found.
    seen, stop = [], sys._getframe()
    with Marked():
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert {source.file for source in seen} == {__file__}
    assert line_of_model(sys._getframe()) is None


def test_the_line_of_the_script():
    here, line = line_of_script(), sys._getframe().f_lineno
    assert str(here) == f"test_source_line.py:{line}"
    assert here.function == "test_the_line_of_the_script"
    assert Path(here.file).samefile(__file__)
    assert here.text == f"{here.file}:{line} in test_the_line_of_the_script"


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
    tensor.register_hook(lambda grad: found.append(line_of_script()))
    Own.apply(tensor).sum().backward()
    assert found[0].file == __file__


def run(file: str, inner=None):
    """Calls `line_of_script` from a function that says it stands in `file`."""
    scope = {"call": inner or line_of_script}
    exec(compile("def f():\n    return call()", file, "exec"), scope)
    return scope["f"]


def test_a_library_counts_only_where_no_script_is():
    library = str(Path(torch.__file__).parents[1] / "trainer" / "loop.py")
    from_script = run("/project/train.py", run(library))()
    assert str(from_script) == "train.py:2"


def test_the_last_line_is_known_again_and_another_is_found() -> None:
    last = LastLine()

    def asks():
        return last.find(own=1)  # as if this function were one of ours

    for _ in range(3):
        first, line = asks(), sys._getframe().f_lineno
        again = asks()  # another instruction, on another line
        assert (first.file, first.line, first.function) == (
            __file__, line, "test_the_last_line_is_known_again_and_another_is_found",
        )  # fmt: skip
        assert again.line == line + 1
    same = [asks() for _ in range(2)]
    assert same[0] is same[1]


def test_the_last_line_is_found_from_any_depth() -> None:
    last = LastLine()

    def deep(times):
        return deep(times - 1) if times else (last.find(), line_of_script())

    for times in (0, 5, 0, 3):
        mine, plain = deep(times)
        assert mine == plain
