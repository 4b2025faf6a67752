"""Answers are known by their numbers."""

from __future__ import annotations

import torch

from nethook.torch_private import version_of
from nethook.watching.evaluations.answers import LARGEST, Pass, is_followed, read


def of(*outputs: torch.Tensor) -> Pass:
    under_way = Pass()
    under_way.turn(False)
    under_way.outputs = [(output, version_of(output)) for output in outputs]
    return under_way


def test_of_positions() -> None:
    output = torch.randn(4, 6, 10)  # (batch, classes, time), or (batch, time, classes)
    labels = torch.randint(6, (4, 10))
    answers = output.argmax(1)
    found = read(answers, labels, answers == labels, of(output))
    assert found is not None
    assert (found.classes, found.shapes) == (6, ([4, 10], [4, 10]))
    assert found.numbers[:3].tolist() == [1, 40, (answers == labels).sum()]
    table = found.numbers[3:].reshape(6, 6)
    for said, wanted in zip(answers.flatten(), labels.flatten(), strict=True):
        table[said, wanted] -= 1
    assert not table.any()
    last = output.argmax(-1)
    found = read(last, torch.randint(10, (4, 6)), torch.ones(4, 6), of(output))
    assert found is not None
    assert found.classes == 10


def test_of_a_second_output() -> None:
    outputs = torch.randn(20, 3), torch.randn(20, 4)
    labels = torch.randint(4, (20,))
    answers = outputs[1].argmax(1)
    found = read(labels, answers, labels == answers, of(*outputs))
    assert found is not None
    assert found.classes == 4
    assert torch.equal(found.labels, labels)


def test_other_numbers_are_no_answers() -> None:
    output = torch.randn(20, 3)
    answers, labels = output.argmax(1), torch.randint(3, (20,))
    other = (answers + 1) % 3
    labels[:2] = other[:2] = (answers[:2] + 2) % 3
    for left, right in ((other, labels), (answers[:10], labels[:10]), (answers * 1j, labels)):
        assert read(left, right, torch.ones(20), of(output)) is None


def test_which_outputs_are_followed() -> None:
    assert is_followed(torch.zeros(4, 3))
    for other in (
        torch.zeros(4, dtype=torch.long), torch.zeros(0, 3), torch.zeros(4, 3, device="meta"),
        torch.zeros(1).expand(LARGEST + 1), torch.zeros(4, 3).to_sparse(),
    ):  # fmt: skip
        assert not is_followed(other)
