"""What several experiments need is run once."""

from __future__ import annotations

import torch

from nethook.examining.probes.once import evaluated, once, with_graph
from tests.examining.experiments.healthy import HEALTHY


def test_once() -> None:
    rehearsal = HEALTHY["classifier"]().rehearsal()
    made: list[int] = []
    for _ in range(3):
        assert once(rehearsal, "a", lambda: made.append(1) or len(made)) == 1  # type: ignore[func-returns-value]
    assert made == [1]


def test_the_runs_that_are_shared() -> None:
    rehearsal = HEALTHY["dropout_as_it_should_be"]().rehearsal()
    assert evaluated(rehearsal) is evaluated(rehearsal)
    graph = with_graph(rehearsal)
    assert graph.loss is not None
    assert graph.loss.requires_grad
    assert rehearsal.recorded.loss is not None
    assert torch.equal(graph.loss.detach(), rehearsal.recorded.loss)  # in training mode
    assert not torch.equal(evaluated(rehearsal).output, graph.output)
