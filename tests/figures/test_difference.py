"""Two runs compared, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.figures.difference import Difference, loss_of, place_of, what_of
from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.reading.comparing.divergence import Point
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import changed, training


@pytest.fixture(scope="module")
def other() -> Difference:
    return Difference(training(), changed())


def test_equal_runs_say_how_much_was_compared() -> None:
    same = Difference(training(), training())
    assert same.headline().startswith("They are equal in all that both recorded: ")
    assert same.places() == []


def test_runs_that_differ_name_step_and_place(other: Difference) -> None:
    assert other.headline().startswith("They diverge at step 61, first in ")
    steps = [point.step for point in other.places()]
    assert min(steps) == 61
    assert len({(p.step, p.address, p.quantity) for p in other.places()}) == len(steps)


def test_the_text_has_both_losses_and_what_ran(other: Difference) -> None:
    text = other.text()
    assert text.startswith(other.headline())
    assert "difference" in text
    for name, loss in other.losses():
        assert f"{name}: loss {loss}" in text


def test_runs_without_anything_in_common(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    empty = Difference(training(), tmp_path / "a.db")
    assert empty.headline() == (
        "They have nothing in common that could be compared: no series at the same steps."
    )
    assert loss_of(Reading(tmp_path / "a.db")) == ""
    assert "Only in training: " in empty.text()


def test_a_loss_from_its_start_to_its_end() -> None:
    said = loss_of(Reading(training())).removesuffix(" in 120 steps (mean over batches)")
    first, last = said.split(" → ")
    assert float(first) > float(last) > 0


@pytest.mark.parametrize(
    ("address", "quantity", "place", "what"),
    [
        ("", names.OUTPUTS, "(model)", "outputs, mean"),
        ("fc1", names.GRADS, "fc1", "gradients at the outputs, mean"),
        ("fc1.weight", names.PARAMS, "fc1.weight", "parameters, mean"),
        (names.LOOP, names.GRAD_NORM, "the loop", "gradient norm, mean"),
        (names.LOOP, names.LOSS_SCALE, "the loop", "loss scale, mean"),
        (names.BATCH, names.BATCH_SIZE, "batches", "size, mean"),
        (names.loss_address("train.py:42"), names.LOSS, "the loss (train.py:42)", "loss, mean"),
    ],
)
def test_what_differs_in_words(address: str, quantity: str, place: str, what: str) -> None:
    point = Point(0.1, "10 %", 3, address, quantity, 1.0, 2.0, "mean")
    assert (place_of(point), what_of(point)) == (place, what)


def test_no_name_of_the_file_is_shown(other: Difference) -> None:
    assert "the loop" in other.text()
    for internal in ("@loop", "grad_norm", "param_grads"):
        assert internal not in other.text()
