"""Long studies show how far they are; short ones and those that nobody looks at do not."""

import re

import pytest
import torch
from torch import nn

from nethook import edits, interp

MODEL = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def first(out):
    return out[:, 0]


STUDIES = {
    "sweeping": lambda **shown: interp.sweep(
        MODEL, X, at=["0", "1"], over="units", change=edits.zero(), metric=first, rows=3, **shown
    ),
    "8 steps": lambda **shown: interp.integrated_gradients(MODEL, X, 1, baseline=0, **shown),
    "sampling": lambda **shown: interp.smooth_grad(MODEL, X, 1, **shown),
    "comparing": lambda **shown: interp.cka(MODEL, MODEL, [X.repeat(2, 1)] * 2, at="0", **shown),
    "4 nodes": lambda **shown: interp.op_lift(MODEL, X, 1, baseline=0, nodes=4, **shown),
}


@pytest.mark.parametrize("label", STUDIES)
def test_a_bar_that_is_asked_for_ends_full(label, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    STUDIES[label](progress=True)
    shown = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capfd.readouterr().err)
    (done, total), *_ = re.findall(rf"{label} .*?(\d+)/(\d+) +batches", shown)[::-1]
    assert done == total != "0"


@pytest.mark.parametrize("label", STUDIES)
def test_nothing_is_shown_where_nobody_looks(label, capfd):
    STUDIES[label]()
    assert capfd.readouterr() == ("", "")
