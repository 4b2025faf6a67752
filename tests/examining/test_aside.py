"""Code of the script's that is run aside does nothing that could be noticed."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import numpy.random  # numpy loads it when it is first used, which opens files
import pytest
import torch
from torch import nn

from nethook.examining import aside
from nethook.examining.aside import ran_aside
from nethook.examining.experiment import NotReplayableError, OutOfTimeError
from nethook.examining.limits import Deadline

CALLS = [0]
LOSSES: list[float] = []
STEP = 0


class Tracker:
    def __init__(self) -> None:
        self.values: list[float] = []
        self.count = 0


TRACKER = Tracker()


class Net(nn.Module):
    """Does what it is told in its forward."""

    total = 0

    def __init__(self, act) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.act()
        return x


def globally() -> None:
    global STEP
    STEP = STEP + 1000


def in_class() -> None:
    Net.total += 1000


def counted() -> None:
    CALLS[0] += 1000


def tracked() -> None:
    TRACKER.values.append(1.0)


def tracked_count() -> None:
    TRACKER.count += 1000


def connected() -> None:
    with socket.socket() as outside:
        outside.connect(("127.0.0.1", 9))


STOPPED = {
    "prints": lambda: print("once more"),
    "opens a file": lambda: open("once-more", "w"),  # noqa: PTH123, SIM115
    "uses the file system": lambda: os.mkdir("once-more"),  # noqa: PTH102
    "writes to a file or a stream": lambda: sys.stdout.write("once more\n"),
    "starts a thread": lambda: threading.Thread(target=print).start(),
    "uses the network": lambda: connected(),
    "its forward": lambda: subprocess.run(["touch", "once-more"], check=False),
    "opens a file ": lambda: Path("once-more").write_text("x"),
    "writes to a file or a stream ": lambda: logging.getLogger("mine").error("once more"),
    "opens a file  ": lambda: np.save("once-more.npy", np.ones(2)),
    "writes a file": lambda: torch.save(torch.ones(2), "once-more.pt"),
}


@pytest.mark.parametrize("reason", STOPPED)
def test_it_is_stopped_before_anything_has_happened(reason, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger("mine").addHandler(handler)
    model, threads = Net(STOPPED[reason]), threading.enumerate()
    try:
        with pytest.raises(NotReplayableError, match=reason.strip()), ran_aside(model):
            model(torch.ones(1))
    finally:
        logging.getLogger("mine").removeHandler(handler)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert threading.enumerate() == threads
    assert sys.getprofile() is None


@pytest.mark.parametrize("act", [globally, in_class, counted, tracked, tracked_count])
def test_globals_are_put_back_and_named(act):
    before = (STEP, Net.total, list(CALLS), list(TRACKER.values), TRACKER.count)
    model = Net(act)
    with pytest.raises(NotReplayableError, match="its forward writes"), ran_aside(model):
        model(torch.ones(1))
    assert (STEP, Net.total, list(CALLS), list(TRACKER.values), TRACKER.count) == before


def quietly() -> None:
    random.random()
    np.random.rand()
    torch.rand(1)
    time.perf_counter()
    str(torch.ones(2))
    sorted([3, 1])
    os.getpid()
    Path("a") / "b"


def test_what_is_harmless_may_run():
    model = Net(quietly)
    with ran_aside(model):
        model(torch.ones(1))


def test_paths_may_be_looked_at():
    # In C from Python 3.12 on, in the module that reaches the file system.
    with ran_aside(Net(None)):
        assert os.path.normpath("a/../b") == "b"
        assert os.path.isdir(os.sep)  # noqa: PTH112
        if sys.version_info >= (3, 12):
            assert os.path.splitroot("/a")[1] == "/"


def test_warnings_are_not_shown_and_will_be(recwarn):
    def warn() -> None:
        warnings.warn("mind the gap", UserWarning, stacklevel=1)

    warnings.simplefilter("default")
    model = Net(warn)
    with ran_aside(model):
        model(torch.ones(1))
    assert len(recwarn) == 0
    model(torch.ones(1))
    assert [str(one.message) for one in recwarn] == ["mind the gap"]


def test_a_run_that_takes_far_too_long_is_cut_off():
    def forever() -> None:
        while True:
            _nothing()

    model = Net(forever)
    with pytest.raises(OutOfTimeError), ran_aside(model, Deadline(0.0)):
        model(torch.ones(1))
    assert sys.getprofile() is None


def _nothing() -> None:
    return


def test_under_a_profiler_nothing_runs_aside():
    sys.setprofile(lambda *_: None)
    try:
        with (
            pytest.raises(NotReplayableError, match="a profiler is running"),
            ran_aside(Net(quietly)),
        ):
            pass
    finally:
        sys.setprofile(None)


def test_errors_of_the_model_are_its_own():
    def fails() -> None:
        raise ValueError("no")

    model = Net(fails)
    with pytest.raises(ValueError, match="no"), ran_aside(model):
        model(torch.ones(1))


def test_a_handler_of_a_signal_is_the_script_s(capfd, monkeypatch):
    # Only the signal itself comes from outside here.
    monkeypatch.setattr(aside, "_HARMLESS", aside._HARMLESS | {"raise_signal"})
    model = Net(lambda: signal.raise_signal(signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
    try:
        with ran_aside(model):
            model(torch.ones(1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert capfd.readouterr().out == "handled\n"


def test_the_collector_waits(capfd):
    class Speaks:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            print("goodbye")

    Speaks()
    model = Net(lambda: [[] for _ in range(100_000)])
    with ran_aside(model):
        model(torch.ones(1))
    assert gc.isenabled()
    gc.collect()
    assert capfd.readouterr() == ("goodbye\n", "")
