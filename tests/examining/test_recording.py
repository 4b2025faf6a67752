"""What is noted of the functions that a script calls, and that the script does not notice."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from nethook.examining import recording as recordings
from nethook.examining.recording import Recording
from nethook.hooks.ops.calls import EveryCall


@pytest.fixture
def output() -> torch.Tensor:
    return torch.randn(4, 3, requires_grad=True) * 2


def record(recording: Recording, then) -> object:
    calls = EveryCall(recording.seen)
    calls.put_on()
    try:
        return then()
    finally:
        calls.remove()


def test_each_call_is_noted_with_its_line(output):
    y = torch.tensor([0, 1, 2, 0])
    recording = Recording(output)
    record(recording, lambda: F.cross_entropy(output.relu(), y.view(-1)))
    assert [op.name for op in recording.ops] == ["relu", "view", "cross_entropy"]
    assert all(op.line.startswith("test_recording.py:") for op in recording.ops)
    assert recording.ops[0].reads == (0,)
    (constant,) = recording.constants
    assert torch.equal(constant.value, y)
    (number, loss) = recording.losses[0]
    assert (number, loss.kind) == (2, "cross_entropy")


def test_what_computes_nothing_is_not_noted(output):
    recording = Recording(output)
    record(recording, lambda: (output.shape, output.dim(), output.dtype, len(output), str(output)))
    assert recording.ops == []


def test_reads_are_noted(output):
    recording = Recording(output)
    value = record(recording, lambda: output.sum().item())
    assert [read.how for read in recording.reads] == ["item"]
    assert recording.reads[0].value == value


def test_an_error_of_the_script_is_the_script_s(output):
    recording = Recording(output)
    with pytest.raises(RuntimeError, match="shape"):
        record(recording, lambda: output.view(5, 5))
    assert recording.problem == ""
    assert recording.ops == []


def test_an_error_of_our_own_is_not(output, monkeypatch):
    def fails(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(recordings, "cheap_copy", fails)
    recording = Recording(output)
    other = torch.ones(4, 3)
    result = record(recording, lambda: output + other)
    assert torch.equal(result, output + other)
    assert "`add` at test_recording.py:" in recording.problem


def test_too_much_is_not_kept(output, monkeypatch):
    monkeypatch.setattr(recordings, "MOST_BYTES", 100)
    recording = Recording(output)
    record(recording, lambda: output.sum() + torch.ones(26).sum() + torch.zeros(10))
    assert recording.problem == ""  # those were made in the passage
    large = torch.ones(26)
    record(recording, lambda: large + 1)
    assert "MB enter between output and loss" in recording.problem
    assert recording.constants == []


def test_too_many_operations(output, monkeypatch):
    monkeypatch.setattr(recordings, "MOST_OPS", 3)
    recording = Recording(output)
    record(recording, lambda: [output + 1 for _ in range(4)])
    assert "more than 3 operations" in recording.problem


def test_parts_of_the_input_are_known(output):
    x = torch.randn(4, 5)
    recording = Recording(output, ((x,), {"mask": torch.ones(4)}))
    record(recording, lambda: output.sum() + x[:, 1:].sum())
    assert [str(step) for step in recording.constants[0].path] == ["[0]", "[0]"]
