"""Values whose rows are behind their tokens: found, and handed on with rows first."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.addresses.inputs import as_inputs
from nethook.interp.estimates.gradients import record
from nethook.interp.estimates.layout import rows_first
from nethook.interp.estimates.sites import module_points


class Sequences(nn.Module):
    """A stack that wants tokens first, as torch's recurrent and transformer layers do."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(20, 6)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=batch_first)
            for _ in range(3)
        )
        self.out = nn.Linear(6, 2)
        self.batch_first = batch_first

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        x = x if self.batch_first else x.transpose(0, 1)
        for layer in self.layers:
            x = layer(x)
        out: torch.Tensor = self.out(x[:, -1] if self.batch_first else x[-1])
        return out


def both() -> tuple[nn.Module, nn.Module]:
    """The same network in both layouts."""
    first, behind = Sequences(batch_first=True), Sequences(batch_first=False)
    behind.load_state_dict(first.state_dict())
    return first.double().eval(), behind.double().eval()


def metric(out: torch.Tensor) -> torch.Tensor:
    return out[:, 0]


@pytest.mark.parametrize("shape", [(3, 7), (4, 4), (1, 5), (5, 1), (1, 1)])
def test_rows_are_found(shape: tuple[int, int]) -> None:
    _, model = both()
    tokens = torch.randint(0, 20, shape)
    points = module_points(model, "layers.*")
    values, _ = record(model, as_inputs(tokens), points, metric)
    found, runs = rows_first(model, as_inputs(tokens), values, len(tokens))
    assert [value.shape for value in found.values()] == [(*shape, 6)] * 3
    assert runs == 1
    if shape[0] > 1 or shape[1] > 1:
        assert {point.rows_dim for point in found} == {1}


def test_nothing_runs_where_shapes_tell() -> None:
    model, _ = both()
    tokens = torch.randint(0, 20, (3, 7))
    values, _ = record(model, as_inputs(tokens), module_points(model, "layers.*"), metric)
    assert rows_first(model, as_inputs(tokens), values, 3) == (values, 0)


@pytest.mark.parametrize("shape", [(3, 7), (4, 4)])
@pytest.mark.parametrize("options", [{}, {"steps": 3}, {"drop": ["layers.1"]}])
def test_estimates_are_those_of_the_other_layout(
    shape: tuple[int, int], options: dict[str, Any]
) -> None:
    base, source = torch.randint(0, 20, (2, *shape))
    for over in ("positions", "units", None):
        one, two = (
            interp.attribute(m, base, source, at="layers.*", over=over, metric=metric, **options)
            for m in both()
        )
        torch.testing.assert_close(one.values, two.values, rtol=0, atol=1e-12)
        assert one.cells == two.cells
        if not options:
            exact = [each.verify(top=2, sample=2).exact for each in (one, two)]
            torch.testing.assert_close(*exact, rtol=0, atol=1e-12)


def test_lens_and_causal_trace_too() -> None:
    first, behind = both()
    tokens = torch.randint(0, 20, (3, 7))
    one, two = (interp.lens(m, tokens) for m in (first, behind))
    torch.testing.assert_close(one.logits, two.logits, rtol=0, atol=1e-12)
    for samples in (3, 6):  # with 6 there are as many rows as tokens
        traces = [
            interp.causal_trace(
                m, tokens[:1], subject=slice(1, 3), at="layers.*", samples=samples, metric=metric
            )
            for m in (first, behind)
        ]
        torch.testing.assert_close(traces[0].values, traces[1].values, rtol=0, atol=1e-12)
        assert (traces[0].effect != 0).any()
