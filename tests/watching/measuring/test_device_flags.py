"""What was not finite on a device: counts that grow are told, step by step."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from nethook.watching.fail_open import Guard
from nethook.watching.measuring.device_flags import DeviceFlags
from tests.watching.fakes import journal


@pytest.fixture
def of():
    of = journal()
    of.told = []
    of.flight = SimpleNamespace(
        call="call", device_flags=lambda step, call, keys, skipped: of.told.append((step, keys))
    )
    for name in ("a", "b"):
        of.row(name, "outputs")
    return of


def folded(of, *numbers: float) -> None:
    of.train.fold_numbers([0, 1], torch.tensor(numbers, dtype=torch.float64))


def test_where_everything_is_on_the_cpu_nobody_is_asked(of):
    DeviceFlags(of, of.flight).ask(0)
    assert of.told == []


def test_a_series_is_told_in_the_step_in_which_its_count_grew(of):
    flags = DeviceFlags(of, of.flight)
    inf = float("inf")
    for step, numbers in enumerate([(1.0, 1.0), (1.0, inf), (1.0, 1.0), (inf, 1.0)]):
        folded(of, *numbers)
        flags.ask(step)
    keys = [[address for address, _ in keys] for _, keys in of.told]
    assert keys == [[], ["b"], [], ["a"]]


def test_a_new_window_counts_from_nothing(of):
    flags = DeviceFlags(of, of.flight)
    folded(of, float("inf"), 1.0)
    flags.ask(0)
    of.train.collect()
    flags.end_window()
    folded(of, float("inf"), 1.0)
    flags.ask(1)
    assert [len(keys) for _, keys in of.told] == [1, 1]


def test_an_error_turns_it_off_and_nothing_else(of):
    failed = []
    of.guard = Guard(lambda part, error, trace: failed.append(part), lambda: None)
    of.guard.silent = True
    flags = DeviceFlags(of, of.flight)

    def fails(numbers):
        raise ValueError("odd")

    flags.put(torch.ones(1), fails)
    assert (flags.off, failed, of.guard.alive) == (True, ["what devices tell later"], True)
    folded(of, float("inf"), 1.0)
    flags.ask(0)
    flags.end_window()
    flags.flush()
    assert of.told == []
