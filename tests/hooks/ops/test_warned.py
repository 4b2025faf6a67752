"""Warnings of functions that a mode passes on: said once, of the place that called them."""

from __future__ import annotations

import inspect
import threading
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.hooks.ops.calls import EveryCall

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")
A, B = torch.zeros(4), torch.zeros(4, 1)


def broadcast() -> int:
    F.mse_loss(A, B)
    return inspect.currentframe().f_lineno - 1


def implicit() -> None:
    nn.Softmax()(B)  # its place is five frames up


def caught(*acts, action="default", **of):
    """What is shown, first without a mode and then with one."""
    shown = []
    for seen in (False, True):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warnings.filterwarnings(action, **of)
            calls = EveryCall(lambda function, args, kwargs, run: run())
            if seen:
                calls.put_on()
            try:
                for act in acts:
                    act()
            finally:
                calls.remove()
        shown.append([(str(each.message), each.filename, each.lineno) for each in found])
    return shown


def test_it_names_the_line_of_the_script():
    without, with_mode = caught(broadcast)
    assert without == with_mode
    assert [place[1:] for place in with_mode] == [(__file__, broadcast())]


def test_also_some_frames_further_up():
    without, with_mode = caught(implicit)
    assert without == with_mode
    assert len(with_mode) == 1


def test_what_was_said_before_is_not_said_again():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for seen in (False, True, True):
            calls = EveryCall(lambda function, args, kwargs, run: run())
            if seen:
                calls.put_on()
            broadcast()
            calls.remove()
    assert [(each.filename, each.lineno) for each in found] == [(__file__, broadcast())]


def test_filters_by_module_match():
    assert caught(broadcast, action="ignore", module=__name__.replace(".", r"\.")) == [[], []]


def test_an_error_is_raised_into_the_script():
    with pytest.raises(UserWarning, match="target size"):
        caught(broadcast, action="error", module=__name__.replace(".", r"\."))


def test_nothing_is_left_and_other_threads_are_let_be():
    before = warnings.showwarning

    def elsewhere() -> None:
        warnings.warn("of another thread", UserWarning, stacklevel=1)

    def seen(function, args, kwargs, run):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return run()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        during = warnings.showwarning
        calls = EveryCall(seen)
        calls.put_on()
        A + 1
        calls.remove()
        assert warnings.showwarning is during
    assert [str(each.message) for each in found] == ["of another thread"]
    assert warnings.showwarning is before
