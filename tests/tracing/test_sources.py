"""The line of the user's code that runs now."""

import sys

import torch
from torch import nn

from nethook.tracing.sources import Source, source_here


class Looks(nn.Module):
    def forward(self, x):
        self.found = source_here()  # here
        return x


def test_it_is_the_innermost_line_outside_torch() -> None:
    line = sys._getframe().f_lineno + 1
    assert source_here() == Source(__file__, line)
    model = nn.Sequential(Looks())
    model(torch.ones(1))
    assert model[0].found.file == __file__
    assert str(model[0].found).startswith("test_sources.py:")


def test_below_the_frame_that_stops_it_is_a_line_of_torch_or_none() -> None:
    class Marked(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(source_here(stop))
            return function(*args, **(kwargs or {}))

    # A mode written here is the user's code; only frames inside the call may be found.
    seen, stop = [], sys._getframe()
    with Marked():
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert {source.file for source in seen} == {__file__}
    assert source_here(sys._getframe()) is None
