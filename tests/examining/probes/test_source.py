"""Lines of the script that a finding names."""

from __future__ import annotations

from torch import nn

from nethook.examining.probes.source import line_of_class, line_of_loss, lines_of_layout
from tests.examining.experiments.healthy import HEALTHY, Reader
from tests.examining.experiments.ill import ILL


def test_the_line_of_a_class() -> None:
    name, _, line = line_of_class(Reader(causal=True)).partition(":")
    assert name == "healthy.py"
    assert int(line) > 1
    assert line_of_class(nn.Linear(1, 1)) == ""


def test_the_line_of_a_loss() -> None:
    assert line_of_loss(HEALTHY["language_model"]().rehearsal()).startswith("healthy.py:")
    assert line_of_loss(HEALTHY["critic_without_targets"]().rehearsal()) == ""
    assert line_of_loss(HEALTHY["model_that_returns_its_loss"]().rehearsal()) == ""


def test_what_lays_out_a_prediction() -> None:
    (line,) = lines_of_layout(ILL["scores_reshaped_for_the_loss"][1]().rehearsal())
    assert line.startswith("ill.py:")
    assert lines_of_layout(HEALTHY["classifier"]().rehearsal()) == []
